"""When the jobs of a queue are likely to begin and to end.

``service`` asks for the times that it shows; ``jobs`` reports the real ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from dcos_tensorflow.queue.forecast import Calibration, Captured, Forecast, forecast

#: So long a forecast is shown, and so many times as long as it took to make; seconds.
_FRESH_SECONDS, _PER_COST = 2.0, 20.0


class Estimates:
    """The newest forecast; it is made again when it is old, the later the longer that takes.

    What it said of a start first is held against the start, and the next ones are told by that.
    """

    def __init__(self, kept: Iterable[float]) -> None:
        #: One forecast is made at a time; a turn, which holds the queue's lock, never waits for it.
        self._making = threading.Lock()
        self._known = Forecast({}, {})
        self._good_until = 0.0
        self._lock = threading.Lock()
        self._calibration = Calibration(kept)

    def of(self, captured: Callable[[], Captured]) -> Forecast:
        """Return one that is not too old."""
        with self._making:
            began = time.monotonic()
            if began >= self._good_until:
                state = captured()
                found = forecast(state)
                with self._lock:
                    starts = self._calibration.told(found.starts, state.now)
                    self._calibration.foretold(found.starts, state.now)
                self._known = Forecast(starts, found.ends)
                took = time.monotonic() - began
                self._good_until = began + max(_FRESH_SECONDS, _PER_COST * took)
            return self._known

    def began(self, job: str, now: float) -> None:
        """Take that a job has begun."""
        with self._lock:
            self._calibration.began(job, now)

    def left(self, job: str) -> None:
        """Take that a job has ended, and may not have begun."""
        with self._lock:
            self._calibration.left(job)

    def kept(self) -> tuple[float, ...]:
        """Return what a restart of the queue has to know."""
        with self._lock:
            return self._calibration.kept()
