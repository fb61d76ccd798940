"""Brings something up again and again on a thread of its own, and what is left at the end.

The engines that write to S3 while a task runs are made of it: ``publisher``, ``mirror``. (What
comes down has no end to look after: ``repeating``.)
"""

from __future__ import annotations

import threading
import time
from typing import Optional

from dcos_tensorflow.task.storage import status
from dcos_tensorflow.task.storage.connection import Connection
from dcos_tensorflow.task.storage.errors import Cancelled


class Uploading:
    """Makes rounds from ``start`` to ``finish`` or ``stop``.

    An engine says what a round is, which raises nothing, and sets ``_saw_end`` once it has looked
    after the end of the user's process.
    """

    def __init__(self, name: str, interval_seconds: float, connection: Connection) -> None:
        self._name = name
        self._interval_seconds = interval_seconds
        self._connection = connection
        self._gate = connection.gate
        self._board = status.StatusBoard()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._finishing = False
        self._saw_end = False
        self._thread: Optional[threading.Thread] = None

    def _round(self, ended: bool = False) -> object:
        """Look, and bring up what is new. ``ended``: the user's process has ended."""
        raise NotImplementedError

    def status(self) -> status.SyncStatus:
        """Return how far it is; from any thread."""
        return self._board.read()

    def start(self) -> None:
        """Begin to make rounds. Returns at once."""
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> bool:
        """Bring up what the ended process left, within ``seconds``, and stop.

        Say whether everything is there now: False too where the time was over before anybody could
        look.
        """
        self._gate.limit(seconds)
        self._finishing = True
        self._ending.set()
        self._wake.set()
        if self._thread is not None:
            self._gate.wait_for(self._thread)
        else:
            self._last()
        self._gate.close()
        return self._saw_end and not self._board.waits

    def limit(self, seconds: float) -> None:
        """Leave a ``finish`` no more than ``seconds`` from now on."""
        self._gate.limit(seconds)

    def stop(self) -> None:
        """Stop without bringing up anything more."""
        self._ending.set()
        self._gate.close()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(5.0)

    def _before_rounds(self) -> None:
        """Do what comes before the first round."""

    def _wait_seconds(self) -> float:
        """Return how long the next round may be away from the beginning of this one."""
        return self._interval_seconds

    def _work(self) -> None:
        self._before_rounds()
        while not self._ending.is_set():
            began = time.monotonic()
            self._round()
            if self._board.read().state == status.STATE_LOST:
                return
            self._wake.wait(max(0.0, began + self._wait_seconds() - time.monotonic()))
            self._wake.clear()
        if self._finishing:
            self._last()
        if self._board.read().problem is None:
            self._board.change(state=status.STATE_STOPPED)

    def _last(self) -> None:
        self._round(ended=True)
        while self._board.read().state == status.STATE_RETRYING and not self._gate.closed:
            try:
                self._gate.wait(self._connection.backoff.first)
            except Cancelled:
                return
            self._round(ended=True)
