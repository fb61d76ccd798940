"""Does one thing again and again on a thread of its own, until it is told to stop.

The engines that bring something down while a task runs are made of it: ``follower``, ``log_copy``.
"""

from __future__ import annotations

import threading
from typing import Callable, Optional

from dcos_tensorflow.task.storage.retry import Gate


class Repeating:
    """Calls ``work``, which raises nothing, every ``seconds``, for the first time at once.

    ``stop`` closes ``gate``, which ends a request under way.
    """

    def __init__(self, name: str, seconds: float, work: Callable[[], object], gate: Gate) -> None:
        self._name = name
        self._seconds = seconds
        self._work = work
        self._gate = gate
        self._ending = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        """Begin. Returns at once."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop; nothing is done any more when this returns, unless the disk hangs."""
        self._gate.close()
        self._ending.set()
        if self._thread is not None:
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._ending.is_set():
            self._work()
            self._ending.wait(self._seconds)
