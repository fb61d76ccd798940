"""Says the same thing once a minute: for lines that a client can have written at will.

Used by servers for errors of a request or a connection. A log that grows with each of
them fills the disk, and writing it holds up everybody else; dropped lines are counted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable

#: Seconds between two of a kind.
SECONDS = 60.0
#: Kinds that are remembered; the one that was said longest ago goes first.
_MOST_KINDS = 100


class Seldom:
    """Remembers when each kind of thing was said. Thread-safe. ``clock`` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: When a kind was said, and how often it was not said since.
        self._said: dict[Hashable, tuple[float, int]] = {}

    def may_say(self, kind: Hashable) -> int | None:
        """Return how often this kind was left out since it was said last; None to leave it out."""
        now = self._clock()
        with self._lock:
            at, left_out = self._said.get(kind, (float("-inf"), 0))
            if now - at < SECONDS:
                self._said[kind] = (at, left_out + 1)
                return None
            self._said.pop(kind, None)
            self._said[kind] = (now, 0)
            if len(self._said) > _MOST_KINDS:
                self._said.pop(next(iter(self._said)))
            return left_out


class SeldomFilter(logging.Filter):
    """Of a handler: lets each message, whatever its arguments, and kind of error pass seldom.

    It looks at the records of those loggers alone that are named, and of those below them.
    """

    def __init__(self, *loggers: str) -> None:
        super().__init__()
        self._loggers = loggers
        self._seldom = Seldom()

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the record is written; one that is tells how many like it were not."""
        if not any(f"{record.name}.".startswith(f"{name}.") for name in self._loggers):
            return True
        error = record.exc_info[0] if record.exc_info else None
        left_out = self._seldom.may_say((record.levelno, record.msg, error))
        if left_out:
            record.msg = f"{record.msg} ({left_out} more like this were not written)"
        return left_out is not None
