"""That something has happened to a task, for requests that wait for it.

``runner`` tells it; ``server`` waits, in the threads of its requests. It says that there is
something new, never what.
"""

from __future__ import annotations

import threading


class News:
    """Counts what has happened. ``revision`` is the number of the newest."""

    def __init__(self) -> None:
        self.revision = 1
        self._changed = threading.Condition()

    def tell(self) -> None:
        """Something has happened. Any thread, not a signal handler."""
        with self._changed:
            self.revision += 1
            self._changed.notify_all()

    def wait(self, after: int, seconds: float) -> None:
        """Return when the revision is another one than ``after``, or so many seconds later."""
        with self._changed:
            self._changed.wait_for(lambda: self.revision != after, seconds)
