"""How one member failed, and how it was lost, as its peers see it.

``core.failures.incidents`` opens an incident for it, ``charges`` counts its cost, and ``waits``
makes one of a gang that does nothing. Pure.
"""

from __future__ import annotations

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.failures.causes import INVALID_OFFERS_REASON, Cause
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.restarts.restart_table import Loss
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Failure:
    """How one member failed."""

    record: TaskRecord
    cause: Cause
    #: One sentence.
    summary: str
    exit_code: int | None
    #: When the start began that failed: a failure before it is none of its.
    began_at: float
    #: The exception of the user's code that it was, as far as that is known yet.
    error: OwnError | None = None

    @classmethod
    def of(cls, record: TaskRecord) -> Failure:
        """Return how this attempt, or the start in it, failed."""
        code = record.exit_code if record.process_failed else causes.exit_code(record.message)
        cause, summary = causes.cause_of(record), causes.describe(record)
        error = record.error if record.process_failed else None
        return cls(record, cause, summary, code, record.began_at, error)

    @classmethod
    def before_it_was_held(cls, record: TaskRecord) -> Failure:
        """Return how the start before failed, in a member that was then told to stop."""
        cause, summary = causes.cause_of_start(record), causes.describe_start(record)
        return cls(record, cause, summary, record.exit_code, record.launched_at, record.error)

    @property
    def is_effect(self) -> bool:
        """Say whether it can only be the effect of another failure."""
        return self.cause.kind == causes.PEER_LOST


def loss_of(record: TaskRecord) -> Loss:
    """Return how a member was lost, as its peers see it."""
    if _never_ran(record):
        # Its peers know of nothing but of the end before.
        return Loss.PROCESS
    if record.state is TaskState.UNREACHABLE or record.state is TaskState.LOST:
        return Loss.SILENT
    if record.process_failed and record.exit_class == contract.EXIT_CLASS_STALLED:
        return Loss.STALLED
    return Loss.PROCESS


def _never_ran(record: TaskRecord) -> bool:
    """Say whether the user's process was never started in this container."""
    refused = record.state is TaskState.LOST and record.reason == INVALID_OFFERS_REASON
    return refused or (record.start == 1 and record.held)
