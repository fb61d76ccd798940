"""Where a gang's job stands: its phase, its restart, its failures, its verdict.

Part of ``core.model.gang.Gang``, and kept in the state store. ``core.advance`` moves a job from
phase to phase along the edges of ``TRANSITIONS``; ``core.restarts`` says when.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.spec.service_spec import Shape
from dcos_tensorflow.records import dataclass


class JobPhase(StrEnum):
    """Where the job stands.

    The first deployment goes PLACING, (STAGING,) STARTING, RUNNING. A restart concerns the members
    in ``Restart.members`` only and goes STOPPING, BACKING_OFF, PLACING, STAGING, (STOPPING,)
    STARTING, RUNNING, leaving out what it does not need; the other members train on.
    """

    #: Members have no container: they are wanted from offers, all of them or none.
    PLACING = "placing"
    #: Their containers were launched with the process held; not every runner is ready yet.
    STAGING = "staging"
    #: Told to run; not every one does yet.
    STARTING = "starting"
    RUNNING = "running"
    #: The processes that are to restart are being stopped.
    STOPPING = "stopping"
    #: Stopped; waits for ``Restart.due_at``.
    BACKING_OFF = "backing off"
    #: The decider finished; the others may end by themselves until ``deadline``.
    FINISHING = "finishing"
    #: The verdict is known; whatever still runs is being stopped.
    ENDING = "ending"
    #: The verdict is known and nothing runs.
    DONE = "done"


#: Phases in which the job is on its way to RUNNING.
RESTARTING_PHASES = frozenset(
    {JobPhase.STOPPING, JobPhase.BACKING_OFF, JobPhase.PLACING, JobPhase.STAGING, JobPhase.STARTING}
)
#: Phases in which a member's end is looked at.
WATCHED_PHASES = RESTARTING_PHASES | {JobPhase.RUNNING}
#: Phases in which no task of a restart set has been told to start.
STOPPED_PHASES = RESTARTING_PHASES - {JobPhase.STARTING}
#: Phases in which every member is wanted to run.
BEGUN_PHASES = frozenset({JobPhase.STARTING, JobPhase.RUNNING})
#: Phases in which the verdict is known.
ENDED_PHASES = frozenset({JobPhase.ENDING, JobPhase.DONE})

#: (from, to) -> why this can happen. The simulation holds every step of every history against it.
TRANSITIONS: dict[tuple[JobPhase, JobPhase], str] = {
    (JobPhase.PLACING, JobPhase.STARTING): "a gang that starts as a whole was launched",
    (JobPhase.PLACING, JobPhase.STAGING): "members that join others were launched, held",
    (JobPhase.STAGING, JobPhase.PLACING): "a launched member's container is gone again",
    (JobPhase.STAGING, JobPhase.STARTING): "every new container is ready",
    (JobPhase.STARTING, JobPhase.RUNNING): "every member runs",
    (JobPhase.RUNNING, JobPhase.STAGING): "members that join training ones were launched, held",
    (JobPhase.STOPPING, JobPhase.BACKING_OFF): "all have stopped; it is too early to start",
    (JobPhase.STOPPING, JobPhase.PLACING): "all have stopped; some have no container",
    (JobPhase.STOPPING, JobPhase.STARTING): "all have stopped, and have their containers",
    (JobPhase.BACKING_OFF, JobPhase.STOPPING): "a member that had stopped runs again",
    (JobPhase.BACKING_OFF, JobPhase.PLACING): "the wait is over; some have no container",
    (JobPhase.BACKING_OFF, JobPhase.STARTING): "the wait is over; all have their containers",
    **{
        (phase, JobPhase.STOPPING): "a failure or a planned change begins a restart, or joins one"
        for phase in (
            JobPhase.PLACING,
            JobPhase.STAGING,
            JobPhase.STARTING,
            JobPhase.RUNNING,
            JobPhase.BACKING_OFF,
        )
    },
    **{
        (phase, JobPhase.FINISHING): "the deciding tasks have finished with 0"
        for phase in WATCHED_PHASES
    },
    **{
        (phase, JobPhase.ENDING): "the verdict is known: failed, stopped, or succeeded"
        for phase in (*WATCHED_PHASES, JobPhase.FINISHING)
    },
    (JobPhase.ENDING, JobPhase.DONE): "nothing runs any more",
    (JobPhase.DONE, JobPhase.ENDING): "an uninstall: tasks that have outlived the job end too",
}


class Outcome(StrEnum):
    """How a job ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Verdict:
    """The job's end."""

    outcome: Outcome
    exit_code: int
    #: Why, in one sentence.
    summary: str


#: How many names of collateral an incident keeps; of the others it keeps their number.
COLLATERAL_NAMES = 20


@dataclass(frozen=True)
class Incident:
    """One cause, and what became of it. Times are unix seconds."""

    #: The member that failed first: it classifies the incident.
    task: str
    task_id: str
    at: float
    #: One of the words of ``core.failures.causes``.
    kind: str
    #: What happened, in one sentence.
    summary: str
    #: Whether it cost a retry.
    charged: bool
    #: The first members that died of it, at most COLLATERAL_NAMES ...
    collateral: tuple[str, ...] = ()
    #: ... and how many more there were.
    more_collateral: int = 0
    #: The highest training step that was known when it happened.
    step: int | None = None
    #: What the task's sandbox told about its end, when that was read.
    evidence: str = ""
    #: The exception of the user's code that it was, if it was one ...
    error: OwnError | None = None
    #: ... and when the start that failed of it had begun.
    began_at: float = 0.0
    #: The newest checkpoint that any member's runner had seen.
    checkpoint: int | None = None
    #: A signal ended its container, and nothing tells whose: its machine's, or the job's own.
    unexplained: bool = False

    @property
    def told(self) -> str:
        """Return what happened, with what the sandbox has told."""
        return f"{self.summary}: {self.evidence}" if self.evidence else self.summary


@dataclass(frozen=True)
class Restart:
    """The restart under way, and what the next one is told of those before."""

    #: The members it concerns: none of them starts before all of them have stopped. Empty at a
    #: first start and at one of a gang that has lost every container: it concerns all.
    members: tuple[str, ...] = ()
    #: Nothing failed: a task that saves may take the whole grace, the decider first, servers last.
    planned: bool = False
    #: Members whose containers are given up on purpose.
    replacing: tuple[str, ...] = ()
    #: The checkpoint step that every member of a gang which must agree on one restores; None: there
    #: is no checkpoint.
    restore_step: int | None = None
    #: Unix seconds before which no task starts again.
    due_at: float = 0.0
    #: How many there were after failures.
    count: int = 0
    #: The plan whose work it is, where that is one that an operator has restarted, or an update;
    #: empty for any other restart.
    plan: str = ""

    @functools.cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.members)

    def concerns(self, name: str) -> bool:
        """Say whether it concerns a member; one that names no members concerns them all."""
        return not self.members or name in self._names


@dataclass(frozen=True)
class Membership:
    """How the gang differs from what the options ask for."""

    #: Members that the job goes on without.
    absent: tuple[str, ...] = ()
    #: Those of them that the options have added: they join as soon as there is room.
    joining: tuple[str, ...] = ()


@dataclass(frozen=True)
class Update:
    """How far the tasks are on their way to the target configuration."""

    #: The configuration that one task was sent ahead to; empty for none.
    canary: str = ""
    #: Tasks whose containers are given up for the target's options.
    updating: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobState:
    """The job of one gang. Times are unix seconds."""

    phase: JobPhase = JobPhase.PLACING
    #: Why it is there, in one sentence.
    why: str = "waiting for offers"
    #: When the present phase was entered.
    phase_since: float = 0.0
    #: When a restart last took it out of RUNNING; 0 when none has.
    trained_until: float = 0.0
    #: The incidents inside the retry window, oldest first.
    incidents: tuple[Incident, ...] = ()
    #: Until when the others may end by themselves (FINISHING).
    deadline: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    #: True once every member ran at the same time.
    deployed: bool = False
    verdict: Verdict | None = None
    #: What the deciding task reported last (test accuracy, where the model lies, ...).
    result: Mapping[str, Any] = field(default_factory=dict)
    #: The uncharged incidents without progress in between.
    fruitless: int = 0
    #: The highest step known at the newest incident of all.
    best_step: int | None = None
    #: The strategy that a task runner recognised in the job's code; empty while none was.
    strategy_seen: str = ""
    restart: Restart = Restart()
    membership: Membership = Membership()
    update: Update = Update()
    #: Of a slot: which units it takes.
    shape: Shape = ()

    @property
    def is_over(self) -> bool:
        """Say whether nothing of the job is started any more."""
        return self.verdict is not None or self.phase is JobPhase.FINISHING
