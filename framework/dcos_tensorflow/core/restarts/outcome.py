"""The tasks whose end is the job's end, and the end of the others then.

Called by ``core.advance``. A parameter server never ends by itself (TensorFlow:
``Server.join`` never returns): the policy ends it, and that counts as success.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcos_tensorflow.core.cluster.serving import serving_roles
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.spec.service_spec import (
    TRAINING_ROLES,
    OutcomePolicy,
    ServiceSpec,
    split_task_name,
)


def deciding_tasks(spec: ServiceSpec) -> tuple[str, ...]:
    """Return the tasks whose success is the job's success, of a service that runs one job."""
    if spec.outcome is OutcomePolicy.CHIEF:
        return (spec.decider,)
    return tuple(n for r in spec.roles if r.role in TRAINING_ROLES for n in r.task_names())


def deciders_of(view: GangView) -> tuple[str, ...]:
    """Return the gang's deciding tasks; the job does not wait for those that it goes on without."""
    if view.spec.outcome is OutcomePolicy.CHIEF:
        return (view.roster.decider,)
    return tuple(n for n in view.roster.names if split_task_name(n)[0] in TRAINING_ROLES)


def has_succeeded(view: GangView) -> bool:
    """Say whether every deciding task has finished with exit code 0."""
    finished = view.tasks.having(Fact.FINISHED)
    if not view.roster.names or (view.spec.outcome is not OutcomePolicy.CHIEF and not finished):
        return False
    return finished.issuperset(deciders_of(view))


def servers(view: GangView) -> Iterator[str]:
    """Yield the tasks that have nothing to end for before the job does: their processes serve.

    Many workers that have finished are not asked again and again.
    """
    serving = serving_roles(view.spec, view.job.strategy_seen)
    for role in view.spec.roles:
        if role.role in serving:
            names = view.roster.names_of(role)
            yield from (name for name in names if name != view.roster.decider)


def still_ending(view: GangView) -> tuple[str, ...]:
    """Return the tasks that may be expected to end by themselves once the deciders have."""
    serving = frozenset(servers(view))
    return tuple(
        record.name
        for record in view.tasks.live
        if record.role.runs_job
        and not record.held
        and not record.process_failed
        and record.name not in serving
    )
