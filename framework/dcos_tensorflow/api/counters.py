"""What only passes by (calls to the master, changes of tasks, durations), for ``metrics``.

The scheduler calls ``Metrics.observe`` after each turn, from its first one on; so this imports
nothing of what shows the numbers. Everything begins at 0 with each scheduler.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from dcos_tensorflow.core.model.actions import (
    Accept,
    Action,
    Decline,
    Kill,
    Release,
    Revive,
    Suppress,
)
from dcos_tensorflow.core.model.events import Event, OffersReceived, RunnerReported
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.report import checkpoint_step_of
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.recoveries import PLANNED, Recoveries
from dcos_tensorflow.scheduler.turn import Turn

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

#: A decline for longer than this is a long one.
_LONG_DECLINE_SECONDS = 60.0

#: Every counter, by the SDK's dotted name: one that is missing could not be asked for its rise.
_COUNTERS = (
    *("declines.long", "declines.short", "revives", "suppresses"),
    *(f"operation.{op}" for op in ("launch", "kill", "reserve", "create", "unreserve", "destroy")),
    *(f"task_status.{state.lower()}" for state in MESOS_STATES.values()),
)

#: Upper bounds of histograms, in seconds: of what holds the event loop up ...
_OF_A_TURN = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
#: ... and of what a job waits for.
_OF_A_JOB = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0)

LATENCY, STEP = "event_loop_latency_seconds", "step_seconds"
COMMIT, CALLS = "commit_seconds", "calls_seconds"
PLACEMENT, RECOVERY, OFFERS = "placement_seconds", "recovery_seconds", "offers.process"


@dataclass(frozen=True)
class Histogram:
    """How long something took, how often."""

    #: Upper bounds in seconds, without the last, which is none.
    bounds: tuple[float, ...]
    #: How many took as long as each of them at most and longer than the one before.
    counts: tuple[int, ...]
    #: Of all together, in seconds.
    sum: float = 0.0

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> Histogram:
        """Return one of nothing yet."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    @property
    def count(self) -> int:
        """Return how often it was."""
        return sum(self.counts)

    def with_one(self, seconds: float) -> Histogram:
        """Return it with one more."""
        at, counts = bisect_left(self.bounds, seconds), self.counts
        return Histogram(
            self.bounds, (*counts[:at], counts[at] + 1, *counts[at + 1 :]), self.sum + seconds
        )


@dataclass(frozen=True)
class Measured:
    """All that has passed by, at one moment."""

    #: By the SDK's dotted names.
    counts: Mapping[str, int] = field(default_factory=dict)
    #: By name, and the value of the one label that it has; empty for none.
    histograms: Mapping[tuple[str, str], Histogram] = field(default_factory=dict)
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
        turn, job = Histogram.empty(_OF_A_TURN), Histogram.empty(_OF_A_JOB)
        self._histograms: dict[tuple[str, str], Histogram] = {
            **{(name, ""): turn for name in (LATENCY, STEP, COMMIT, CALLS, OFFERS)},
            (PLACEMENT, ""): job,
            (RECOVERY, PLANNED): job,
        }
        self._lost_steps = 0
        self._checkpoint: tuple[int, float] | None = None
        self._recoveries = Recoveries()

    def observe(self, turn: Turn) -> None:
        """Count what a turn did and how long it took, and the changes of tasks since the last."""
        before, state = turn.before, turn.decision.state
        seen = Counter[str]()
        for action in turn.decision.actions:
            seen.update(_counted(action, before))
        seen.update(_changes(turn))
        took = [*_took(turn), *_placed(turn)]
        recovered = tuple(self._recoveries.follow(turn))
        took += [((RECOVERY, r.cause), r.seconds) for r in recovered if r.seconds is not None]
        goes_on = before.run == state.run
        checkpoint = _newest_checkpoint(self._checkpoint if goes_on else None, turn)
        with self._lock:
            self._counts.update(seen)
            for key, seconds in took:
                known = self._histograms.get(key) or Histogram.empty(_OF_A_JOB)
                self._histograms[key] = known.with_one(seconds)
            self._lost_steps += sum(recovery.lost_steps for recovery in recovered)
            self._checkpoint = checkpoint

    def measured(self) -> Measured:
        """Return all of it."""
        waiting, busy = self._loop()
        with self._lock:
            return Measured(
                dict(self._counts),
                dict(self._histograms),
                self._lost_steps,
                self._checkpoint,
                waiting,
                busy,
            )


def _took(turn: Turn) -> Iterator[tuple[tuple[str, str], float]]:
    yield (LATENCY, ""), turn.waited
    yield (STEP, ""), turn.decided
    yield (CALLS, ""), turn.performed
    if turn.committed is not None:
        yield (COMMIT, ""), turn.committed
    if any(isinstance(event, OffersReceived) for event in turn.events):
        yield (OFFERS, ""), turn.decided


def _placed(turn: Turn) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield for how long gangs have waited that have found their places in this turn."""
    if not any(isinstance(action, Accept) for action in turn.decision.actions):
        return
    for name, gang in turn.decision.state.gangs.items():
        was = turn.before.gangs.get(name)
        waited = was is not None and was.job.phase is JobPhase.PLACING
        if was is not None and waited and gang.job.phase is not JobPhase.PLACING:
            yield (PLACEMENT, ""), max(0.0, gang.job.phase_since - was.job.phase_since)


def _newest_checkpoint(known: tuple[int, float] | None, turn: Turn) -> tuple[int, float] | None:
    state = turn.decision.state
    if state.spec.units is not None:
        return None
    for event in turn.events:
        step = _checkpoint_of(event)
        if step is not None and (known is None or step > known[0]):
            known = step, turn.ended_at
    return known


def _checkpoint_of(event: Event) -> int | None:
    return checkpoint_step_of(event.report) if isinstance(event, RunnerReported) else None


def _changes(turn: Turn) -> Iterator[str]:
    """Yield the state of each task whose state is another one than before."""
    for name in turn.decision.changed:
        record, old = _record(turn.decision.state, name), _record(turn.before, name)
        if record is None:
            continue
        if old is None or (old.task_id, old.state) != (record.task_id, record.state):
            yield f"task_status.{MESOS_STATES[record.state].lower()}"


def _record(state: ServiceState, name: str) -> TaskRecord | None:
    gang = state.gang_with(name)
    return gang.tasks[name] if gang is not None else None


def _counted(action: Action, before: ServiceState) -> dict[str, int]:
    match action:
        case Decline(offer_ids, seconds):
            kind = "long" if seconds > _LONG_DECLINE_SECONDS else "short"
            return {f"declines.{kind}": len(offer_ids)}
        case Accept():
            known = before.reservations
            orders = [launch.reservation for launch in action.launches]
            made = sum(1 for r in orders if r is not None and r.resource_id not in known)
            return {
                "operation.launch": len(action.launches),
                "operation.reserve": made,
                "operation.create": made,
            }
        case Release(everything=everything):
            return {
                "operation.unreserve": len(action.resource_ids),
                "operation.destroy": len(everything),
            }
        case Kill():
            return {"operation.kill": 1}
        case Revive():
            return {"revives": 1}
        case Suppress():
            return {"suppresses": 1}
    return {}
