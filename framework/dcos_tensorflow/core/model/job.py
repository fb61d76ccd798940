"""Where the job stands: its phase, its failures, its verdict. Kept in the state store.

``core.advance`` moves a job from phase to phase; ``core.recovery.restart_table`` and
``core.recovery.outcome`` say when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class JobPhase(StrEnum):
    """Where the job stands.

    The first deployment goes PLACING, (STAGING,) STARTING, RUNNING. A restart concerns the members
    in ``JobState.restarting`` only and goes STOPPING, BACKING_OFF, PLACING, STAGING, (STOPPING,)
    STARTING, RUNNING, leaving out what it does not need; whoever is not concerned trains on.
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
    #: Stopped; waits for ``restart_at``.
    BACKING_OFF = "backing off"
    #: The decider finished; the others may end by themselves until ``deadline``.
    FINISHING = "finishing"
    #: The verdict is known; whatever still runs is being stopped.
    ENDING = "ending"
    #: The verdict is known and nothing runs.
    DONE = "done"


#: Phases in which the job is on its way to RUNNING.
RESTARTING_PHASES = frozenset(
    {
        JobPhase.STOPPING,
        JobPhase.BACKING_OFF,
        JobPhase.PLACING,
        JobPhase.STAGING,
        JobPhase.STARTING,
    }
)
#: Phases in which a member's end is looked at.
WATCHED_PHASES = RESTARTING_PHASES | {JobPhase.RUNNING}
#: Phases in which nobody of a restart set has been told to start.
STOPPED_PHASES = RESTARTING_PHASES - {JobPhase.STARTING}


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

    ``task`` failed first and classifies the incident; ``collateral`` are the members that died of
    it. ``charged`` says whether it cost a retry. ``step`` is the highest training step that was
    known when it happened.
    """

    task: str
    task_id: str
    at: float
    kind: str
    summary: str
    charged: bool
    collateral: tuple[str, ...] = ()
    step: int | None = None


@dataclass(frozen=True)
class JobState:
    """The job. Times are unix seconds.

    ``attempt`` numbers the launches of any task of the service, upwards only, so that no Mesos
    task id is ever used twice. ``incidents`` holds those inside the retry window, oldest first.
    ``deployed`` is true once every member ran at the same time. ``result`` is what the deciding
    task reported last (test accuracy, where the model lies, ...).

    ``restarting`` are the members that the restart under way concerns: nobody of them starts before
    all of them have stopped. ``planned`` says that nothing failed: members may take their whole
    grace, the decider first. ``phase_since`` is when the present phase was entered.
    ``fruitless`` counts the uncharged incidents without progress in between, ``best_step`` is the
    highest step known at the newest of all. ``absent`` are the members that the job goes on
    without, ``joining`` those of them that the options have added: they join as soon as there is
    room. ``restore_step`` is the checkpoint step that every member of a gang which must agree on
    one restores (None: there is no checkpoint). ``strategy_seen`` is what a task runner recognised
    in the job's code.
    ``agent_failures`` are the times of recent failures by agent, ``leaving`` the starts of
    maintenance by agent, ``leaving_told`` when that was last said. ``replacing`` are members whose
    containers are given up on purpose.
    ``canary`` is the configuration that one task was sent ahead to, ``updating`` are tasks whose
    containers are given up for the target's options.
    ``uninstalling`` cannot be taken back; ``given_up`` is what an uninstall could not reach.
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

    restarting: tuple[str, ...] = ()
    planned: bool = False
    phase_since: float = 0.0
    fruitless: int = 0
    best_step: int | None = None
    absent: tuple[str, ...] = ()
    joining: tuple[str, ...] = ()
    restore_step: int | None = None
    strategy_seen: str = ""
    agent_failures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    leaving: Mapping[str, float] = field(default_factory=dict)
    leaving_told: Mapping[str, float] = field(default_factory=dict)
    replacing: tuple[str, ...] = ()
    canary: str = ""
    updating: tuple[str, ...] = ()
    uninstalling: bool = False
    given_up: tuple[str, ...] = ()
