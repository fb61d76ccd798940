"""Tasks that the options do not name any more are never ended in silence.

Used by ``run``, ``scheduler`` and ``validate``. A release before this one ran the published counts
where options named none (``options.default_tasks``). A job of that time that has not ended keeps
them when it is taken up; any other job whose tasks the options pass over is taken up when they are
named.
"""

from __future__ import annotations

from collections.abc import Callable

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec
from dcos_tensorflow.options import Options, OptionsError, service_spec
from dcos_tensorflow.options.default_tasks import lost, unnamed
from dcos_tensorflow.options.sections.section import GROUP_OF_ROLE


def runs_as_published(
    options: Options, published: Callable[[], Options], known: ServiceState | None
) -> bool:
    """Say whether a job that has not ended runs by published counts where ``options`` name none.

    ``published`` reads the options with these counts, ``known`` is what is stored of the service.
    Raises OptionsError where a job runs that has other tasks of a section that is not named.
    """
    if known is None or known.job.phase is JobPhase.DONE:
        return False
    unsaid = lost(options, known.spec)
    if not unsaid:
        return False
    before = service_spec(published())
    if all(_same(_role(before, g), _role(known.spec, g)) for g in unnamed(options)):
        return True
    raise OptionsError(unsaid)


def kept_note(options: Options) -> str:
    """Return what to say of tasks that an earlier release has brought unasked."""
    sections = " and ".join(unnamed(options))
    return (
        f"The job that runs has tasks of {sections} by the published default, and keeps them; say"
        " how many in the options, which do not name them."
    )


def _role(spec: ServiceSpec, group: str) -> RoleSpec | None:
    return next((role for role in spec.roles if GROUP_OF_ROLE[role.role] == group), None)


def _same(one: RoleSpec | None, other: RoleSpec | None) -> bool:
    """Say whether two are as many tasks of the same size; a volume is no part of the size."""
    if one is None or other is None:
        return one is other
    return (one.count, one.resources) == (other.count, other.resources)
