"""The forms in which parts of the state are kept, where they are not a noun of the model itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields

from dcos_tensorflow.core.model.service_state import Maintenance, ServiceState, Uninstall
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.records import dataclass

#: Fields of TaskRecord that change after the launch; they live in TaskStatus, the rest in TaskInfo.
STATUS_FIELDS = frozenset(
    {
        "state",
        "changed_at",
        "source",
        "reason",
        "message",
        "kill_reason",
        "killed_at",
        "epoch",
        "start",
        "held",
        "ordered_at",
        "failed_start",
        "exit_class",
        "exit_code",
        "exit_summary",
        "error",
    }
)
INFO_FIELDS = frozenset(f.name for f in fields(TaskRecord)) - STATUS_FIELDS


@dataclass(frozen=True)
class KeptService:
    """What is kept of a service beside what has a place of its own."""

    attempt: int = 0
    configurations: tuple[str, ...] = ()
    maintenance: Maintenance = Maintenance()
    agent_failures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    uninstall: Uninstall = Uninstall()
    run: int = 1
    #: No more units of work will come.
    last_unit_given: bool = False
    seeks_former_life: bool = False

    @classmethod
    def of(cls, state: ServiceState) -> KeptService:
        """Return what is to be kept of ``state``."""
        return cls(
            state.attempt,
            state.configurations,
            state.maintenance,
            state.agent_failures,
            state.uninstall,
            state.run,
            state.units.last,
            state.seeks_former_life,
        )
