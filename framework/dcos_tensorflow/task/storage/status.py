"""The status of the engines: a snapshot for the runner's status JSON, safe to read at any
time from any thread. Nothing in it is secret.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any, Dict, Optional

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage.s3.errors import S3Problem

#: Data or a checkpoint are brought before a start.
STATE_FETCHING = "fetching"
#: Nothing to do, or not begun.
STATE_IDLE = "idle"
STATE_PUBLISHING = "publishing"
#: The last try failed; waiting may help.
STATE_RETRYING = "retrying"
#: The last try failed and an operator must change something. It is tried again all the same.
STATE_BLOCKED = "blocked"
#: Another writer owns the place; this one does nothing any more.
STATE_LOST = "lost"
STATE_STOPPED = "stopped"


#: How much has come is told in such steps: often enough to see that it goes on.
_PERCENT = 5


class Transfer:
    """What is brought to this disk, or from it, and how much of it is there.

    Any thread may tell or ask.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._what, self._size, self._there = "", 0, 0

    def begin(self, what: str, size: int) -> None:
        """Say what is on its way from now on, as a sentence begins; ``size`` in bytes."""
        with self._lock:
            self._what, self._size, self._there = what, size, 0

    def add(self, count: int) -> None:
        """Count bytes that are there."""
        with self._lock:
            self._there += count

    def told(self) -> str:
        """Return it, and how much; '' while there is nothing."""
        with self._lock:
            if not self._there or not self._size:
                return ""
            # What came damaged comes again.
            percent = min(100, 100 * self._there // self._size) // _PERCENT * _PERCENT
            told = f"{percent} % of {self._size / 1e6:,.1f} MB"
            return f"{self._what}: {told}" if self._what else told


@dataclass(frozen=True)
class SyncStatus:
    """How far the publishing is. Times are unix seconds.

    ``lag_seconds`` is the age of the oldest complete state that is not published, 0 when there is
    none. ``problem`` is what keeps it from being published, since ``problem_since``.
    """

    state: str = STATE_IDLE
    published_id: str = ""
    published_step: Optional[int] = None
    published_at: Optional[float] = None
    checkpoints: int = 0
    lag_seconds: float = 0.0
    uploaded_bytes: int = 0
    problem: Optional[S3Problem] = None
    problem_since: Optional[float] = None
    warning: str = ""

    def as_json(self) -> Dict[str, Any]:
        """Return what ``GET /v1/status`` shows."""
        document = dict(vars(self))
        document["problem"] = self.problem.as_json() if self.problem else None
        return document


class StatusBoard:
    """Holds the newest SyncStatus."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status = SyncStatus()
        self._waiting_since: Optional[float] = None

    def read(self) -> SyncStatus:
        """Return the status now."""
        with self._lock:
            lag = 0.0 if self._waiting_since is None else time.monotonic() - self._waiting_since
            return replace(self._status, lag_seconds=round(max(0.0, lag), 3))

    def change(self, **changes: Any) -> None:
        """Replace fields of the status."""
        with self._lock:
            self._status = replace(self._status, **changes)

    def add_bytes(self, count: int) -> None:
        """Count bytes that have reached the bucket."""
        with self._lock:
            uploaded = self._status.uploaded_bytes + count
            self._status = replace(self._status, uploaded_bytes=uploaded)

    def unpublished(self, since: Optional[float]) -> None:
        """Say since when (monotonic seconds) something complete waits; None: nothing does."""
        with self._lock:
            if since is None or self._waiting_since is None:
                self._waiting_since = since

    @property
    def waits(self) -> bool:
        """Say whether something complete is not published."""
        return self._waiting_since is not None

    def failed(self, problem: S3Problem) -> None:
        """Show ``problem``; the same kind as before keeps its beginning."""
        with self._lock:
            known = self._status.problem
            since = self._status.problem_since if known and known.kind == problem.kind else None
            self._status = replace(
                self._status,
                state=STATE_RETRYING if problem.retryable else STATE_BLOCKED,
                problem=problem,
                problem_since=since if since is not None else time.time(),
            )

    def recovered(self, state: str) -> None:
        """Show that nothing is wrong (any more)."""
        with self._lock:
            self._status = replace(self._status, state=state, problem=None, problem_since=None)
