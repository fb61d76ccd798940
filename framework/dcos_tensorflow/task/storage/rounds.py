"""Does one thing again and again on a thread of its own, until it is told to stop.

The engines that work while a task runs are made of it: ``follower`` and ``log_copy`` bring down,
``publisher`` and ``mirror`` bring up, and also the rest at the end.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import FrozenSet, Optional

from dcos_tensorflow.task.storage import layout, snapshot, status
from dcos_tensorflow.task.storage.s3.errors import Cancelled, storage_error
from dcos_tensorflow.task.storage.s3.object_store import Connection


class Rounds:
    """Makes rounds from ``start`` to ``stop``. An engine says what a round is; it raises nothing.

    ``stop`` closes the connection's gate, which ends a request under way.
    """

    def __init__(self, name: str, interval_seconds: float, connection: Connection) -> None:
        self._name = name
        self._interval_seconds = interval_seconds
        self._board = status.StatusBoard()
        self._connection = replace(connection, noticed=self._board.failed)
        self._gate = connection.gate
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def _round(self) -> object:
        """Look, and bring what is new."""
        raise NotImplementedError

    def status(self) -> status.SyncStatus:
        """Return how far it is; from any thread."""
        return self._board.read()

    def start(self) -> None:
        """Begin to make rounds. Returns at once."""
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop at once; nothing is done any more when this returns, unless the disk hangs."""
        self._ending.set()
        self._gate.close()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(5.0)

    def _went_wrong(self, error: Exception, what: str, area: str, consequence: str) -> None:
        """Show why a round could not do ``what``; log the first of a row of failures."""
        problem = storage_error(error, what).problem
        if self._board.read().problem is None:
            self._connection.log(f"{area}: {problem.text}; {consequence}")
        self._board.failed(problem)

    def _before_rounds(self) -> None:
        """Do what comes before the first round."""

    def _after_rounds(self) -> None:
        """Do what comes after the last one."""

    def _pause(self, took: float) -> float:
        """Return the seconds until the next round, after one that took so long."""
        return self._interval_seconds

    def _work(self) -> None:
        self._before_rounds()
        while not self._ending.is_set():
            began = time.monotonic()
            self._round()
            if self._board.read().state == status.STATE_LOST:
                return
            self._wake.wait(self._pause(time.monotonic() - began))
            self._wake.clear()
        self._after_rounds()
        if self._board.read().problem is None:
            self._board.change(state=status.STATE_STOPPED)


def _is_utf_8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class Uploading(Rounds):
    """Rounds that bring something up, and one more for what is left at the end.

    An engine sets ``_saw_end`` once it has looked after the end of the user's process.
    """

    _finishing = False
    _saw_end = False
    _nameless: FrozenSet[str] = frozenset()

    def _looked_at(
        self, directory: str, looked: Optional[snapshot.Looked] = None
    ) -> layout.Listing:
        """Return what a directory holds, less the files that no key of S3 can name.

        A key is UTF-8, a file's name is bytes. Each such file is logged once.
        """
        listing = snapshot.look(directory, looked)
        nameless = {fact.path for fact in listing.files if not _is_utf_8(fact.path)}
        for path in sorted(nameless - self._nameless):
            shown = path.encode("utf-8", "backslashreplace").decode()
            self._connection.log(f"{shown}: is not kept in S3: its name is not UTF-8")
        self._nameless = frozenset(nameless)
        files = tuple(fact for fact in listing.files if fact.path not in nameless)
        return replace(listing, files=files)

    def _round(self, ended: bool = False) -> object:
        """Look, and bring up what is new. ``ended``: the user's process has ended."""
        raise NotImplementedError

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

    def _pause(self, took: float) -> float:
        return max(0.0, self._wait_seconds() - took)

    def _wait_seconds(self) -> float:
        """Return how long the next round may be away from the beginning of this one."""
        return self._interval_seconds

    def _after_rounds(self) -> None:
        if self._finishing:
            self._last()

    def _last(self) -> None:
        self._round(ended=True)
        while self._board.read().state == status.STATE_RETRYING and not self._gate.closed:
            try:
                self._gate.wait(self._connection.backoff.first)
            except Cancelled:
                return
            self._round(ended=True)
