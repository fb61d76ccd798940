"""How long to wait before a request is tried again, and when to give up.

``object_store`` sends every request through a ``Retrier``. The engines stop or hurry it through the
``Cancellation`` they share with it, so that no back-off outlives a task's grace period.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Callable, Optional, TypeVar

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage.s3.errors import (
    Cancelled,
    ConditionFailed,
    S3Problem,
    storage_error,
)

Result = TypeVar("Result")

#: Not of the random numbers that a user's code in its own process may have seeded.
JITTER = random.Random().random


@dataclass(frozen=True)
class RetryBackoff:
    """Exponential back-off with jitter; seconds. ``attempts`` counts the first one too."""

    first: float = 0.2
    longest: float = 20.0
    attempts: int = 8

    def delay(self, attempt: int, draw: float) -> float:
        """Return the wait after failed ``attempt`` (1, 2, ...). ``draw`` is from 0 to 1.

        Between half and the whole of the step, so that tasks which failed together spread out.
        """
        step = min(self.longest, self.first * 2.0 ** min(attempt - 1, 60))
        return step * (0.5 + 0.5 * draw)


class Cancellation:
    """Tells work in progress to stop, now or at a deadline. Shared between threads."""

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._deadline: Optional[float] = None

    def close(self) -> None:
        """Stop all work at its next step."""
        self._closed.set()

    def limit(self, seconds: float) -> None:
        """Give the work ``seconds`` from now. A later call may shorten that, never lengthen it."""
        deadline = time.monotonic() + seconds
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def wait_for(self, thread: threading.Thread, slack: float = 1.0) -> None:
        """Wait until ``thread`` has ended, or ``slack`` seconds after no more work may be done."""
        over: Optional[float] = None
        while thread.is_alive() and (over is None or time.monotonic() < over):
            if over is None and self.closed:
                over = time.monotonic() + slack
            thread.join(0.05)

    @property
    def closed(self) -> bool:
        """Say whether no more work may be done."""
        return self._closed.is_set() or (
            self._deadline is not None and time.monotonic() >= self._deadline
        )

    def check(self) -> None:
        """Raise Cancelled when no more work may be done."""
        if self.closed:
            raise Cancelled(S3Problem("cancelled", True, "stopped before it was done"))

    def wait(self, seconds: float) -> None:
        """Wait, but not beyond the end. Raises Cancelled when that comes first."""
        if self._deadline is not None:
            seconds = min(seconds, self._deadline - time.monotonic())
        if seconds > 0:
            self._closed.wait(seconds)
        self.check()


class Retrier:
    """Tries requests again while that may help. ``noticed`` is told of each failed attempt."""

    def __init__(
        self,
        gate: Cancellation,
        backoff: RetryBackoff = RetryBackoff(),
        noticed: Callable[[S3Problem], None] = lambda problem: None,
        draw: Callable[[], float] = JITTER,
    ) -> None:
        self._gate = gate
        self._backoff = backoff
        self._noticed = noticed
        self._draw = draw

    def call(self, what: str, request: Callable[[], Result]) -> Result:
        """Return what ``request`` returns. Raises StorageError when it fails for good."""
        attempt = 0
        while True:
            self._gate.check()
            attempt += 1
            try:
                return request()
            except Exception as error:
                failure = storage_error(error, what)
                known = failure.problem
                hopeless = not known.retryable or isinstance(failure, (Cancelled, ConditionFailed))
                if hopeless or attempt >= self._backoff.attempts:
                    raise failure from error
                self._noticed(known)
            self._gate.wait(self._backoff.delay(attempt, self._draw()))
