"""The newest that was told of a task, and its number, for requests that wait for the next.

``showing`` tells it and waits for it, in the threads of the requests.
"""

from __future__ import annotations

import threading
from typing import Generic, Tuple, TypeVar

Told = TypeVar("Told")


class News(Generic[Told]):
    """Counts what is told. ``newest`` is the number of the newest, and what it was."""

    def __init__(self, first: Told) -> None:
        self.newest: Tuple[int, Told] = (1, first)
        self._changed = threading.Condition()

    def tell(self, what: Told) -> None:
        """``what`` is new, unless it is what was told last. Any thread, not a signal handler."""
        with self._changed:
            revision, newest = self.newest
            if what != newest:
                self.newest = (revision + 1, what)
                self._changed.notify_all()

    def wait(self, after: int, seconds: float) -> None:
        """Return when the number is another one than ``after``, or so many seconds later."""
        with self._changed:
            self._changed.wait_for(lambda: self.newest[0] != after, seconds)
