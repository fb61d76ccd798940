"""Counts of passing events (calls to the master, changes of tasks, durations), for ``metrics``.

The scheduler calls ``Metrics.observe`` after each turn, from its first one on; so this imports
nothing of the code that shows the numbers. Everything begins at 0 with each scheduler.
"""

from __future__ import annotations

import copy
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from dcos_tensorflow.core.failures.causes import KINDS
from dcos_tensorflow.core.model.actions import Accept, Decline, Kill, Release, Revive, Suppress
from dcos_tensorflow.core.model.events import OffersReceived, RunnerReported
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.report import checkpoint_step_of
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.loop.turn import Turn
from dcos_tensorflow.scheduler.recoveries import PLANNED, Recoveries

#: The Mesos state that stands for each of ours (mesos.proto, TaskState).
MESOS_STATES = {
    TaskState.LAUNCHING: "TASK_STAGING",
    TaskState.STAGING: "TASK_STAGING",
    TaskState.STARTING: "TASK_STARTING",
    TaskState.RUNNING: "TASK_RUNNING",
    TaskState.UNREACHABLE: "TASK_UNREACHABLE",
    TaskState.FINISHED: "TASK_FINISHED",
    TaskState.FAILED: "TASK_FAILED",
    TaskState.KILLED: "TASK_KILLED",
    TaskState.LOST: "TASK_LOST",
}

_STATUSES = {ours: f"task_status.{theirs.lower()}" for ours, theirs in MESOS_STATES.items()}

#: A decline for longer than this is a long one.
_LONG_DECLINE_SECONDS = 60.0

#: Every counter, by the SDK's dotted name: one that is missing could not be asked for its rise.
_COUNTERS = (
    *("declines.long", "declines.short", "revives", "suppresses"),
    *(f"operation.{op}" for op in ("launch", "kill", "reserve", "create", "unreserve", "destroy")),
    *_STATUSES.values(),
)

#: Upper bounds of histograms, in seconds: of what holds the event loop up ...
_OF_A_TURN = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
#: ... and of what a job waits for.
_OF_A_JOB = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0)

LATENCY, STEP = "event_loop_latency_seconds", "step_seconds"
COMMIT, CALLS = "commit_seconds", "calls_seconds"
#: What every turn takes.
_ALWAYS = (LATENCY, STEP, CALLS)
PLACEMENT, RECOVERY, OFFERS = "placement_seconds", "recovery_seconds", "offers.process"
#: A recovery is told apart by whether something has failed.
FAILURE = "failure"
_RECOVERIES = ((RECOVERY, FAILURE), (RECOVERY, PLANNED))


class Histogram:
    """How long something took, how often. It changes in place: it is counted in at every turn."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        #: Upper bounds in seconds, without the last, which is none.
        self.bounds = bounds
        #: How many took as long as each of them at most and longer than the one before.
        self.counts = [0] * (len(bounds) + 1)
        #: Of all together, in seconds.
        self.sum = 0.0

    @property
    def count(self) -> int:
        """Return how often it was."""
        return sum(self.counts)

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds


@dataclass(frozen=True)
class Measured:
    """All that has passed by, at one moment."""

    #: By the SDK's dotted names.
    counts: Mapping[str, int] = field(default_factory=dict)
    #: By name, and the value of the one label that it has; empty for none.
    histograms: Mapping[tuple[str, str], Histogram] = field(default_factory=dict)
    #: Recoveries by their cause.
    causes: Mapping[str, int] = field(default_factory=dict)
    lost_steps: int = 0
    #: The newest checkpoint's step, and since when it is known, in unix seconds; None for none.
    checkpoint: tuple[int, float] | None = None
    #: Events that wait, and for how many seconds the event loop has been at the present ones.
    waiting: int = 0
    busy_seconds: float = 0.0


class Metrics:
    """Counts what passes by. ``observe`` is called by one thread, the rest by any.

    ``loop`` answers how many events wait, and how long the present turn has lasted.
    """

    def __init__(self, loop: Callable[[], tuple[int, float]] = lambda: (0, 0.0)) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter(dict.fromkeys(_COUNTERS, 0))
        self._histograms: dict[tuple[str, str], Histogram] = {
            **{(name, ""): Histogram(_OF_A_TURN) for name in (*_ALWAYS, COMMIT, OFFERS)},
            **{key: Histogram(_OF_A_JOB) for key in ((PLACEMENT, ""), *_RECOVERIES)},
        }
        self._waited, self._decided, self._performed = (
            self._histograms[name, ""] for name in _ALWAYS
        )
        self._causes = dict.fromkeys((PLANNED, *KINDS), 0)
        self._lost_steps = 0
        self._checkpoint: tuple[int, float] | None = None
        self._recoveries = Recoveries()

    def observe(self, turn: Turn) -> None:
        """Count what a turn did and how long it took, and the changes of tasks since the last."""
        before, state = turn.before, turn.decision.state
        seen: Counter[str] = Counter()
        for action in turn.decision.actions:
            count = _COUNTED.get(type(action))
            if count is not None:
                seen.update(count(action, before))
        seen.update(_changes(turn))
        recovered = tuple(self._recoveries.follow(turn))
        checkpoint = self._checkpoint if before.run == state.run else None
        looked_at_offers = False
        for event in turn.events:
            if isinstance(event, RunnerReported):
                checkpoint = _newer(checkpoint, event, turn)
            elif isinstance(event, OffersReceived):
                looked_at_offers = True
        with self._lock:
            if seen:
                self._counts.update(seen)
            self._waited.add(turn.waited)
            self._decided.add(turn.decided)
            self._performed.add(turn.performed)
            if turn.committed is not None:
                self._took(COMMIT, turn.committed)
            if looked_at_offers:
                self._took(OFFERS, turn.decided)
            for seconds in _placed(turn) if seen["operation.launch"] else ():
                self._took(PLACEMENT, seconds)
            for recovery in recovered:
                self._lost_steps += recovery.lost_steps
                if recovery.seconds is not None:
                    known = self._causes.get(recovery.cause, 0)
                    self._causes[recovery.cause] = known + 1
                    kind = PLANNED if recovery.cause == PLANNED else FAILURE
                    self._took(RECOVERY, recovery.seconds, kind)
            self._checkpoint = checkpoint if state.spec.units is None else None

    def _took(self, name: str, seconds: float, label: str = "") -> None:
        self._histograms[name, label].add(seconds)

    def measured(self) -> Measured:
        """Return all of it."""
        waiting, busy = self._loop()
        with self._lock:
            return Measured(
                dict(self._counts),
                copy.deepcopy(self._histograms),
                dict(self._causes),
                self._lost_steps,
                self._checkpoint,
                waiting,
                busy,
            )


def _placed(turn: Turn) -> Iterator[float]:
    """Yield for how long gangs have waited that have found their places in this turn."""
    for name, gang in turn.decision.state.gangs.items():
        was = turn.before.gangs.get(name)
        waited = was is not None and was.job.phase is JobPhase.PLACING
        if was is not None and waited and gang.job.phase is not JobPhase.PLACING:
            yield max(0.0, gang.job.phase_since - was.job.phase_since)


def _newer(
    known: tuple[int, float] | None, event: RunnerReported, turn: Turn
) -> tuple[int, float] | None:
    """Return the newest checkpoint and since when it is known, after a report."""
    step = checkpoint_step_of(event.report)
    is_newer = step is not None and (known is None or step > known[0])
    return (step, turn.ended_at) if step is not None and is_newer else known


def _changes(turn: Turn) -> Iterator[str]:
    """Yield the state of each task whose state is another one than before."""
    if not turn.decision.changed:
        return
    find, find_before = _finder(turn.decision.state), _finder(turn.before)
    for name in turn.decision.changed:
        record, old = find(name), find_before(name)
        if record is None:
            continue
        if old is None or (old.task_id, old.state) != (record.task_id, record.state):
            yield _STATUSES[record.state]


def _finder(state: ServiceState) -> Callable[[str], TaskRecord | None]:
    """Return what finds a task by its name, without a look at all of them."""
    if len(state.gangs) == 1:
        return state.only_gang.tasks.get

    def find(name: str) -> TaskRecord | None:
        gang = state.gang_with(name)
        return gang.tasks[name] if gang is not None else None

    return find


def _accepted(action: Accept, before: ServiceState) -> dict[str, int]:
    orders = [launch.reservation for launch in action.launches]
    known = before.reservations
    made = sum(1 for r in orders if r is not None and r.resource_id not in known)
    return {
        "operation.launch": len(action.launches),
        "operation.reserve": made,
        "operation.create": made,
    }


def _declined(action: Decline, before: ServiceState) -> dict[str, int]:
    kind = "long" if action.refuse_seconds > _LONG_DECLINE_SECONDS else "short"
    return {f"declines.{kind}": len(action.offer_ids)}


def _released(action: Release, before: ServiceState) -> dict[str, int]:
    given_back = {"operation.unreserve": len(action.resource_ids)}
    return {**given_back, "operation.destroy": len(action.everything)}


#: What counts an action, by its type: most are acknowledgements, of which nothing is counted.
_COUNTED: Mapping[type, Callable[[Any, ServiceState], Mapping[str, int]]] = {
    Accept: _accepted,
    Decline: _declined,
    Release: _released,
    Kill: lambda action, before: {"operation.kill": 1},
    Revive: lambda action, before: {"revives": 1},
    Suppress: lambda action, before: {"suppresses": 1},
}
