"""How long a job still runs: by its own speed, else its time limit, else its team's other jobs.

Called by ``line`` for reservations, and by ``forecast`` for the times that are shown. It never
waits for a number: each job has an estimate, and an interval of its error.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque

from dcos_tensorflow.queue.model import Interval, JobProgress

# Of a team whose jobs never ended before.
_UNKNOWN = Interval(600.0, 3_600.0, 86_400.0)
# How many of a team's last jobs are remembered.
_REMEMBERED = 500
# Below that many it is no history.
_FEW = 5


class RunTimes:
    """How long the last jobs of a team ran, in seconds."""

    def __init__(self) -> None:
        self._last: deque[float] = deque()
        self._sorted: list[float] = []

    def add(self, seconds: float) -> None:
        """Remember one that ended by itself."""
        self._last.append(seconds)
        insort(self._sorted, seconds)
        if len(self._last) > _REMEMBERED:
            oldest = self._last.popleft()
            del self._sorted[bisect_right(self._sorted, oldest) - 1]

    def rest(self, ran: float) -> Interval:
        """Return how much longer jobs ran that had run so long: quarter, half, nine tenths."""
        longer = self._sorted[bisect_right(self._sorted, ran) :]
        if len(longer) < _FEW:
            # Longer than all: what has run long runs as long again.
            return Interval(0.25 * ran, ran, 4 * ran) if len(self._sorted) >= _FEW else _UNKNOWN

        def quantile(part: float) -> float:
            return longer[min(int(part * len(longer)), len(longer) - 1)] - ran

        return Interval(quantile(0.25), quantile(0.5), quantile(0.9))

    def kept(self) -> tuple[float, ...]:
        """Return what a restart of the queue has to know, oldest first."""
        return tuple(self._last)


def rest_of(
    now: float,
    ran: float,
    progress: JobProgress | None,
    time_limit: float | None,
    history: RunTimes,
) -> Interval:
    """Return how much longer a job runs that has ``ran`` so long."""
    if progress is not None and progress.rest is not None:
        passed = now - progress.at
        rest = progress.rest
        left = [max(part - passed, 0.0) for part in (rest.low, rest.likely, rest.high)]
        estimate = Interval(*left)
    else:
        estimate = history.rest(ran)
    if time_limit is None:
        return estimate
    most = max(time_limit - ran, 0.0)
    return Interval(min(estimate.low, most), min(estimate.likely, most), min(estimate.high, most))
