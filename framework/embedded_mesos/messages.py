"""Messages between master, agents and executors, and orders of the cores to their shells.

Plain frozen values. ``master`` and ``agent`` take messages in and hand effects out; ``cluster``
carries them. Mesos has the same messages (``src/messages/messages.proto``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

#: What the state of a task that has ended can be.
TERMINAL_STATES = frozenset(
    {
        "TASK_FINISHED",
        "TASK_FAILED",
        "TASK_KILLED",
        "TASK_ERROR",
        "TASK_LOST",
        "TASK_DROPPED",
        "TASK_GONE",
        "TASK_GONE_BY_OPERATOR",
    }
)


# -- agent to master ---------------------------------------------------------------------------


@dataclass(frozen=True)
class RegisterAgent:
    """An agent asks to be known. ``agent_id`` is None the first time.

    ``tasks`` are those that still run there, as ``{"framework_id", "info", "state", ...}``.
    """

    agent_id: str | None
    info: Json
    tasks: tuple[Json, ...] = ()
    frameworks: tuple[Json, ...] = ()
    #: Reservations and volumes that the agent carries, as Resource JSON; None when there are none.
    total: tuple[Json, ...] | None = None


@dataclass(frozen=True)
class Pong:
    """The answer to a ping."""


@dataclass(frozen=True)
class UnregisterAgent:
    """The agent shuts down for good, and its tasks with it (SIGUSR1 in Mesos)."""


@dataclass(frozen=True)
class StatusUpdate:
    """A task's status on its way to the scheduler.

    ``latest_state`` is the newest state that the agent knows, which may be ahead of the one that
    waits for its acknowledgement.
    """

    framework_id: str
    status: Json
    latest_state: str


@dataclass(frozen=True)
class OperationUpdate:
    """The outcome of a RESERVE, CREATE, ... on its way to the scheduler."""

    framework_id: str
    status: Json


@dataclass(frozen=True)
class ExecutorExited:
    """An executor ended that should not have: raw wait status."""

    framework_id: str
    executor_id: str
    status: int


# -- master to agent ---------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentRegistered:
    """The master knows the agent now."""

    agent_id: str


@dataclass(frozen=True)
class Ping:
    """Are you there?"""


@dataclass(frozen=True)
class RunTasks:
    """Start tasks: one alone, or the members of a group together under ``executor``."""

    framework_id: str
    framework_info: Json
    tasks: tuple[Json, ...]
    executor: Json | None = None


@dataclass(frozen=True)
class KillTask:
    """End a task.

    ``draining`` marks the updates with REASON_AGENT_DRAINING; with ``mark_gone`` the agent will
    not come back, and a task that was killed is told as TASK_GONE_BY_OPERATOR.
    """

    framework_id: str
    task_id: str
    grace_seconds: float | None = None
    max_grace_seconds: float | None = None
    draining: bool = False
    mark_gone: bool = False


@dataclass(frozen=True)
class ShutdownExecutor:
    """End an executor and its tasks."""

    framework_id: str
    executor_id: str


@dataclass(frozen=True)
class ShutdownFramework:
    """End every executor of a framework; no framework wants updates."""

    framework_id: str


@dataclass(frozen=True)
class ShutdownAgent:
    """Leave the cluster, tasks and all (the answer to an agent that was marked gone)."""

    message: str


@dataclass(frozen=True)
class AcknowledgeUpdate:
    """The scheduler has seen this update."""

    framework_id: str
    task_id: str
    uuid: str


@dataclass(frozen=True)
class ApplyOperation:
    """Resources of the agent changed: its new total, the update to send, volumes to remove."""

    framework_id: str
    total: tuple[Json, ...]
    status: Json | None
    destroyed: tuple[Json, ...] = ()


@dataclass(frozen=True)
class AcknowledgeOperation:
    """The scheduler has seen this operation's outcome."""

    framework_id: str
    uuid: str


# -- effects of the master ---------------------------------------------------------------------


@dataclass(frozen=True)
class SendEvent:
    """Write an event to a scheduler's stream."""

    stream_id: str
    event: Json


@dataclass(frozen=True)
class CloseStream:
    """End a scheduler's stream."""

    stream_id: str


@dataclass(frozen=True)
class ToAgent:
    """Carry ``message`` to the agent at ``link`` (its place in the cluster)."""

    link: int
    message: object


# -- effects of an agent -----------------------------------------------------------------------


@dataclass(frozen=True)
class ToMaster:
    """Carry ``message`` to the master."""

    message: object


@dataclass(frozen=True)
class StartExecutor:
    """Start an executor process for a container. ``spec`` is what the process is told."""

    container_id: str
    sandbox: str
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TellExecutor:
    """Write a command to an executor process."""

    container_id: str
    command: Mapping[str, Any]


@dataclass(frozen=True)
class DestroyExecutor:
    """End an executor process and all its children at once."""

    container_id: str


@dataclass(frozen=True)
class RemoveDirectory:
    """Remove a destroyed volume, or the sandbox of a task that is forgotten."""

    path: str


# -- from an executor process to its agent -----------------------------------------------------


@dataclass(frozen=True)
class ExecutorStarted:
    """The process of a container is there."""

    container_id: str
    pid: int


@dataclass(frozen=True)
class ExecutorReport:
    """One line of an executor: ``{"type": "ready" | "running" | "exited" | ...}``."""

    container_id: str
    report: Mapping[str, Any]


@dataclass(frozen=True)
class ExecutorGone:
    """The process of a container has ended."""

    container_id: str
