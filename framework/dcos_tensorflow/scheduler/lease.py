"""Knowing for certain that no other scheduler leads, while something is ordered.

Used by ``scheduler.scheduler`` for ``runner_client``. The state store fences writes and Mesos its
calls, but a task runner obeys each caller that has its token: a leader that was frozen or cut off
from ZooKeeper, would give orders that its successor has changed. So orders are given only for a
while after the store has confirmed the leadership, and for less than the session lasts that it
hangs on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from dcos_tensorflow.scheduler.loop.clock import steady_time
from dcos_tensorflow.state.errors import StateError, StateUnavailable

log = logging.getLogger(__name__)

#: A session may be shorter than asked for, but no server's limit is below this by default
#: (ZooKeeper: maxSessionTimeout, twenty ticks).
_LONGEST_SECONDS = 5.0


class Lease:
    """A thread that has the leadership confirmed again and again.

    ``confirm`` returns while this process leads and raises StateError otherwise; it may block for
    seconds. ``session_seconds`` is how long the leadership outlives the last sign of life. The
    clock counts while the machine sleeps: the session's servers do.
    """

    def __init__(
        self,
        confirm: Callable[[], None],
        session_seconds: float,
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self._confirm = confirm
        self._seconds = min(session_seconds / 2, _LONGEST_SECONDS)
        self._clock = clock
        self._until = float("-inf")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def holds(self) -> bool:
        """Say whether no other scheduler can lead now."""
        return self._clock() < self._until

    def start(self) -> None:
        """Begin; it holds once the leadership has been confirmed for the first time."""
        self._thread.start()

    def stop(self) -> None:
        """End it; it does not hold any more."""
        self._stopping.set()
        self._until = float("-inf")
        if self._thread.is_alive():
            self._thread.join()
        # A question that was under way may have been answered meanwhile.
        self._until = float("-inf")

    def _run(self) -> None:
        while self._renewed() and not self._stopping.wait(self._seconds / 4):
            pass

    def _renewed(self) -> bool:
        """Have it confirmed once; False when it never will be again."""
        asked_at = self._clock()
        try:
            self._confirm()
        except StateUnavailable as error:
            log.info("task runners are given no orders for now: %s", error)
        except StateError as error:
            log.info("task runners are given no orders any more: %s", error)
            self._until = float("-inf")
            return False
        else:
            # From when it was asked: the session was alive then, whatever has been since.
            self._until = asked_at + self._seconds
        return True
