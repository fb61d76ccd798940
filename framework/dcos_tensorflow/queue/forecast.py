"""When the jobs of a queue are likely to begin and to end: the queue played on, by its own rules.

``capture`` takes the needed part of a queue, ``forecast`` plays it on three times: with running
jobs that end early, as is likely, and late (``rest``). The service asks for the times that it
shows; the replay of a trace measures the error. Pure, and it changes nothing of the queue.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from dcos_tensorflow.queue.books import Entry
from dcos_tensorflow.queue.kept import KeptJob, KeptTeam, kept_job, kept_teams, restore
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import Host, Interval, JobState, QueueDecision, Rules, Team
from dcos_tensorflow.queue.rest import rest_of
from dcos_tensorflow.records import dataclass

#: So many jobs of the line are played: what comes behind them is told no time.
_MOST_WAITING = 200
#: So many decisions are played, and none is further away from the one before; seconds.
_MOST_STEPS = 1_000
_STEP_SECONDS = 900.0
#: So many of the newest starts are learned from.
_RATIOS = 400
#: What is assumed before there are any: some starts come much later than is foretold.
_BEFORE = (0.25, 0.5, 1.0, 1.0, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
#: The parts of starts that come before an interval, and before its end.
_LOW, _HIGH = 0.05, 0.95
#: To be off by that little is not to be off.
_LEAST_SECONDS = 60.0


@dataclass(frozen=True)
class Captured:
    """What is needed of a queue to play it on."""

    now: float
    rules: Rules
    teams: tuple[Team, ...]
    hosts: tuple[Host, ...]
    jobs: tuple[KeptJob, ...]
    of_teams: Mapping[str, KeptTeam]


class Calibration:
    """How far off forecasts of starts were, by which the next ones are told.

    A forecast knows nothing of the jobs that will come and go first, so that starts come later than
    it says; how much later is a matter of the cluster. What was foretold and has not come counts as
    well, as far as it is late by now: else only those are learned from that came soon (Kaplan and
    Meier, 1958). The interval is the measured one (conformal prediction). It is made for nine of
    ten, so that four of five come within: those that were foretold together are late together.
    """

    def __init__(self, kept: Iterable[float] = ()) -> None:
        #: Of each start that was foretold: the time that passed over the time that was likely.
        self._ratios = deque(kept or _BEFORE, maxlen=_RATIOS)
        #: Of each job that waits: when a start was first foretold, and after how many seconds.
        self._open: dict[str, tuple[float, float]] = {}

    def foretold(self, starts: Mapping[str, Interval], now: float) -> None:
        """Take what a forecast says; of each job what was said first counts."""
        for job, found in starts.items():
            self._open.setdefault(job, (now, found.likely))

    def began(self, job: str, now: float) -> None:
        """Take that a job has begun."""
        if job in self._open:
            self._ratios.append(_ratio(*self._open.pop(job), now))

    def left(self, job: str) -> None:
        """Take that a job will not begin."""
        self._open.pop(job, None)

    def told(self, starts: Mapping[str, Interval], now: float) -> dict[str, Interval]:
        """Return the intervals in which four of five starts come that are foretold like these."""
        came = [(ratio, True) for ratio in self._ratios]
        late = [(_ratio(*said, now), False) for said in self._open.values() if said[0] < now]
        low, likely, high = _quantiles(sorted(came + late), (_LOW, 0.5, _HIGH))

        def after(found: Interval, ratio: float) -> float:
            return max((found.likely + _LEAST_SECONDS) * ratio - _LEAST_SECONDS, 0.0)

        return {
            job: Interval(after(one, low), after(one, likely), after(one, high))
            for job, one in starts.items()
        }

    def kept(self) -> tuple[float, ...]:
        """Return what a restart of the queue has to know, oldest first."""
        return tuple(self._ratios)


def _ratio(told_at: float, likely: float, now: float) -> float:
    return (now - told_at + _LEAST_SECONDS) / (likely + _LEAST_SECONDS)


def _quantiles(ratios: Sequence[tuple[float, bool]], parts: Iterable[float]) -> list[float]:
    """Return the ratios that these parts of all lie below; ``ratios`` in order, each if it is over.

    Beyond all that is over, half as many are twice as far.
    """
    left, at_risk, steps = 1.0, len(ratios), [(0.0, 1.0)]
    for ratio, is_over in ratios:
        if is_over:
            left *= 1.0 - 1.0 / at_risk
            steps.append((ratio, left))
        at_risk -= 1
    furthest = ratios[-1][0]
    return [
        next((ratio for ratio, rest in steps if 1.0 - rest >= part), furthest * left / (1.0 - part))
        for part in parts
    ]


@dataclass(frozen=True)
class Forecast:
    """When jobs begin and end, in seconds from the moment that it was made."""

    starts: Mapping[str, Interval]
    ends: Mapping[str, Interval]


def capture(queue: Queue, now: float) -> Captured:
    """Return what is needed of a queue: all that runs, and the first of the line."""
    waiting = islice(queue.waiting(), _MOST_WAITING)
    return Captured(
        now,
        queue.rules,
        tuple(account.team for account in queue.accounts.values()),
        queue.places.hosts(),
        tuple(_ready(kept_job(entry)) for entry in (*queue.running(), *waiting)),
        kept_teams(queue),
    )


def _ready(kept: KeptJob) -> KeptJob:
    """Return a job without the one that it came after, which has ended."""
    return replace(kept, job=replace(kept.job, after=None))


def forecast(captured: Captured) -> Forecast:
    """Play a queue on, and return what came of it."""
    played = [_Play(captured, part).run() for part in ("low", "likely", "high")]
    starts, ends = zip(*played, strict=True)
    return Forecast(_intervals(starts), _intervals(ends))


def _intervals(played: tuple[dict[str, float], ...]) -> dict[str, Interval]:
    """Return the three times of each job that every play has come to, in their order."""
    common = set(played[0]).intersection(*played[1:])
    return {job: Interval(*sorted(one[job] for one in played)) for job in common}


class _Play:
    """One way in which it may go on: all jobs end at this part of their interval."""

    def __init__(self, captured: Captured, part: str) -> None:
        self._part = part
        self._began = captured.now
        queue = Queue(captured.rules, captured.teams, captured.now)
        queue.hosts_are(captured.hosts, captured.now)
        self._queue = restore(queue, captured.jobs, captured.of_teams, captured.now)
        self._ends: list[tuple[float, str]] = []
        self._starts: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        for entry in self._queue.running():
            if entry.state is not JobState.PROMISED:
                self._expect(entry, captured.now)

    def run(self) -> tuple[dict[str, float], dict[str, float]]:
        """Play, and return the starts of waiting jobs and the ends of all, from now on."""
        now = self._began
        for _ in range(_MOST_STEPS):
            self._apply(self._queue.decide(now), now)
            if not self._queue.has_waiting and not self._ends:
                break
            following = self._ends[0][0] if self._ends else now + _STEP_SECONDS
            now = max(min(following, now + _STEP_SECONDS), now)
            while self._ends and self._ends[0][0] <= now:
                _, job = heapq.heappop(self._ends)
                if self._queue.entries[job].state is JobState.RUNNING:
                    self._ended.setdefault(job, now - self._began)
                    self._queue.ended(job, JobState.SUCCEEDED, now)
        return self._starts, self._ended

    def _apply(self, decision: QueueDecision, now: float) -> None:
        for admitted in decision.admit:
            self._starts.setdefault(admitted.job, now - self._began)
            self._expect(self._queue.entries[admitted.job], now)
        for asked in decision.give_way:
            if self._queue.entries[asked.job].state is not JobState.GIVING_WAY:
                self._ended.setdefault(asked.job, now - self._began)
                self._queue.ended(asked.job, JobState.FAILED, now)
            else:
                self._queue.gave_way(asked.job, now)
        for resized in decision.resize:
            self._queue.resized(resized.job, resized.slots, now)

    def _expect(self, entry: Entry, now: float) -> None:
        job = entry.job
        history = self._queue.run_times[job.team]
        rest = rest_of(now, entry.ran(now), entry.progress, job.time_limit, history)
        heapq.heappush(self._ends, (now + max(getattr(rest, self._part), 1.0), job.id))
