"""A task's container beside its image: secrets, resource limits, shared memory.

Part of ``core.spec.service_spec.RoleSpec`` and stored with it, so there is never a secret in here,
only where one is: the scheduler follows the source at each launch
(``scheduler.secrets.secret_sources``), or Mesos itself does.
"""

from __future__ import annotations

from dcos_tensorflow.records import dataclass

#: Sources that the scheduler reads itself; any other is a path of the cluster's secret store.
FILE_SOURCE = "file:"
ENVIRONMENT_SOURCE = "env:"


@dataclass(frozen=True)
class TaskSecret:
    """One secret, and where a task finds it: in the variable ``env``, or in ``file``.

    ``source`` is ``file:/path`` or ``env:NAME`` on the scheduler's side, or a path of the cluster's
    secret store. ``file`` is below the sandbox. ``option`` is the option that asks for it, for
    messages.
    """

    source: str
    env: str = ""
    file: str = ""
    option: str = ""

    @property
    def in_store(self) -> bool:
        """Say whether the cluster's secret store has it, as far as its source tells."""
        return not self.source.startswith((FILE_SOURCE, ENVIRONMENT_SOURCE))


@dataclass(frozen=True)
class ResourceLimit:
    """A limit of a process, named as in getrlimit(2): ``RLIMIT_NOFILE``. None is no limit."""

    name: str
    soft: int | None = None
    hard: int | None = None
