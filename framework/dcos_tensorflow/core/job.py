"""Where the job stands: its phase, its failures, its verdict. Kept in the state store.

``core.advance`` moves a job from phase to phase; ``core.recovery`` and ``core.outcome`` say when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class JobPhase(StrEnum):
    """Where the job stands. The usual way is downwards; STOPPING leads back to PLACING."""

    #: The gang is wanted; nothing of it runs.
    PLACING = "placing"
    #: Launched; not every member runs yet.
    STARTING = "starting"
    RUNNING = "running"
    #: A member failed: the rest is being stopped, to start all of them again.
    STOPPING = "stopping"
    #: Stopped; waits for ``restart_at``.
    BACKING_OFF = "backing off"
    #: The decider finished; the others may end by themselves until ``deadline``.
    FINISHING = "finishing"
    #: The verdict is known; whatever still runs is being stopped.
    ENDING = "ending"
    #: The verdict is known and nothing runs.
    DONE = "done"


#: Phases in which the tasks of the gang should live.
LIVING_PHASES = frozenset({JobPhase.STARTING, JobPhase.RUNNING, JobPhase.FINISHING})
#: Phases in which a member's end is a failure of the gang.
WATCHED_PHASES = frozenset({JobPhase.STARTING, JobPhase.RUNNING})


class Outcome(StrEnum):
    """How a job ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Verdict:
    """The job's end: how, with which exit code, and why in one sentence."""

    outcome: Outcome
    exit_code: int
    summary: str


@dataclass(frozen=True)
class Incident:
    """One cause, and what became of it.

    ``task`` failed first and classifies the incident; members that end while the gang is being
    stopped are collateral and are not looked at. ``charged`` says whether it cost a retry.
    """

    task: str
    task_id: str
    at: float
    kind: str
    summary: str
    charged: bool


@dataclass(frozen=True)
class JobState:
    """The job. Times are unix seconds.

    ``attempt`` numbers the launches of any task of the service, upwards only, so that no Mesos
    task id is ever used twice. ``incidents`` holds those inside the retry window, oldest first.
    ``deployed`` is true once every member ran at the same time. ``result`` is what the deciding
    task reported last (test accuracy, where the model lies, ...).
    """

    phase: JobPhase = JobPhase.PLACING
    why: str = "waiting for offers"
    attempt: int = 0
    incidents: tuple[Incident, ...] = ()
    restarts: int = 0
    restart_at: float = 0.0
    deadline: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    deployed: bool = False
    verdict: Verdict | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
