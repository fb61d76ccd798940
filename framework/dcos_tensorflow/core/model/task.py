"""A task: its record, its states, and the table of allowed transitions.

The state store keeps one record per task. Each launch of a task is a new *attempt* with a
new Mesos task id that is never used again.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from dcos_tensorflow.core.model.offer import AttributeValue
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.records import dataclass


class TaskState(StrEnum):
    """Where one attempt of a task stands."""

    #: Written to the store; the ACCEPT may or may not have reached the master.
    LAUNCHING = "launching"
    STAGING = "staging"
    STARTING = "starting"
    RUNNING = "running"
    #: The agent does not answer the master; the task may still run (Mesos: TASK_UNREACHABLE).
    UNREACHABLE = "unreachable"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    #: It never ran, or is gone for good: DROPPED, GONE, GONE_BY_OPERATOR, UNKNOWN, LOST, ERROR.
    LOST = "lost"


TERMINAL_STATES = frozenset(
    {TaskState.FINISHED, TaskState.FAILED, TaskState.KILLED, TaskState.LOST}
)

#: Launched and not running yet.
COMING_UP = frozenset({TaskState.LAUNCHING, TaskState.STAGING, TaskState.STARTING})

#: (from, to) -> why this can happen. Any pair not listed is refused by ``advance``.
TRANSITIONS: dict[tuple[TaskState, TaskState], str] = {
    **dict.fromkeys(
        [
            (TaskState.LAUNCHING, TaskState.STAGING),
            (TaskState.LAUNCHING, TaskState.STARTING),
            (TaskState.LAUNCHING, TaskState.RUNNING),
            (TaskState.STAGING, TaskState.STARTING),
            (TaskState.STAGING, TaskState.RUNNING),
            (TaskState.STARTING, TaskState.RUNNING),
        ],
        "the usual order of a launch; Mesos may skip states when updates merge",
    ),
    **{
        (before, after): "a live task ends"
        for before in (
            TaskState.LAUNCHING,
            TaskState.STAGING,
            TaskState.STARTING,
            TaskState.RUNNING,
            TaskState.UNREACHABLE,
        )
        for after in TERMINAL_STATES
    },
    **{
        (before, TaskState.UNREACHABLE): "its agent stopped answering the master"
        for before in (
            TaskState.LAUNCHING,
            TaskState.STAGING,
            TaskState.STARTING,
            TaskState.RUNNING,
        )
    },
    **{
        (TaskState.UNREACHABLE, after): "its agent came back with the task alive"
        for after in (TaskState.STAGING, TaskState.STARTING, TaskState.RUNNING)
    },
}


@dataclass(frozen=True)
class TaskRecord:
    """One attempt of one task.

    ``ports`` are the ports taken from the offer: the first is the gRPC port, the last the task
    runner's. Where the container has an address of its own they are its own, and ``address`` is
    empty until Mesos has told it. ``peer_address`` is the one by which peers reach it, where the
    options name a network for that; empty until its runner has told it. ``epoch`` is the
    ClusterSpec it was launched with.
    ``kill_reason`` is set when we asked Mesos to kill it (and says why); ``killed_at`` when that
    call was last sent. ``failures`` and ``interruptions`` count the earlier ends of a sidecar
    (``core.restarts.sidecars``).

    In one attempt the user's process may be started many times (docs/task-runner.md): ``start`` is
    the number of the start that is wanted, ``held`` says that it is wanted stopped. When a start
    failed and its runner kept the container, ``failed_start`` is its number and ``exit_class``,
    ``exit_code`` and ``exit_summary`` say how, and ``error`` which exception of the user's code it
    was, if it was one. ``fingerprint`` stands for everything in the options
    that this container was launched with. ``resource_id`` is the reservation that it runs on, empty
    for none (``core.spec.volume_spec``). ``data_service`` is where its runner is to find the
    dispatcher of the job's tf.data service, empty while there is none. Times are unix seconds.
    """

    name: str
    role: TaskRole
    index: int
    attempt: int
    task_id: str
    state: TaskState
    epoch: int
    agent_id: str
    hostname: str
    address: str
    ports: tuple[int, ...]
    launched_at: float
    changed_at: float
    failures: int = 0
    interruptions: int = 0
    source: str = ""
    reason: str = ""
    message: str = ""
    kill_reason: str = ""
    killed_at: float = 0.0
    start: int = 1
    held: bool = False
    ordered_at: float = 0.0
    failed_start: int = 0
    exit_class: str = ""
    exit_code: int | None = None
    exit_summary: str = ""
    error: OwnError | None = None
    fingerprint: str = ""
    resource_id: str = ""
    peer_address: str = ""
    data_service: str = ""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    zone: str | None = None
    region: str | None = None

    @functools.cached_property
    def remembered(self) -> dict[str, Any]:
        """Hold what others work out of this record once."""
        return {}

    @property
    def terminal(self) -> bool:
        """Say whether this attempt has ended for good."""
        return self.state in TERMINAL_STATES

    @property
    def process_failed(self) -> bool:
        """Say whether the start that is wanted has failed, in a container that is still there."""
        return not self.terminal and self.failed_start == self.start

    @property
    def had_failed_when_held(self) -> bool:
        """Say whether the start before had failed when it was told to stop for another task."""
        return self.held and 0 < self.failed_start == self.start - 1

    @property
    def ended_start(self) -> int:
        """Return the number of the start that ran last, or runs: one that is held does not yet."""
        return self.start - 1 if self.held else self.start

    @property
    def newest_error(self) -> OwnError | None:
        """Return the exception of the user's code that ended the start that ran last."""
        return self.error if self.failed_start == self.ended_start else None

    @property
    def began_at(self) -> float:
        """Return when the start that is wanted was asked for, or its container was."""
        return max(self.launched_at, self.ordered_at)

    def advance(self, state: TaskState, now: float, **fields: str) -> TaskRecord:
        """Return the record in ``state``; unchanged when the table does not allow the step.

        Mesos may repeat updates, deliver reconciliation answers behind newer ones, and report a
        task again after its end: such steps are not in the table and change nothing.
        """
        if state is self.state or (self.state, state) not in TRANSITIONS:
            return self
        return replace(self, state=state, changed_at=now, **fields)  # type: ignore[arg-type]


def mesos_task_id(service: str, task: str, unique: str) -> str:
    """Return the Mesos task id ``<service>__<task>__<unique>``; ``/`` in a name becomes ``.``."""
    return f"{service.strip('/').replace('/', '.')}__{task}__{unique}"


def parse_task_id(task_id: str) -> tuple[str, str, str] | None:
    """Return (service, task, unique) of a task id of ours; None when it is not of that form."""
    parts = task_id.split("__")
    if len(parts) < 3:
        return None
    return "__".join(parts[:-2]), parts[-2], parts[-1]
