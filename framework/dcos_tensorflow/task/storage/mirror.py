"""Keeps a copy of a directory in S3: event files as they grow, finished models.

For ``shared_filesystem: s3://...`` the runners of chief and evaluator each make one of their log
directory; that of each task that trains makes one of its OUTPUT_DIR. S3 has no append, so a grown
file is put again whole, at most once an interval. Files keep their names, so TensorBoard and
everybody else can read them; nothing in the bucket is ever deleted. Checkpoints in a log directory
are not its business: their parts must not become visible one by one (see ``publisher``).
"""

from __future__ import annotations

import os
import posixpath
import time
from dataclasses import replace
from typing import Callable, Dict, FrozenSet, Iterator, List, Set, Tuple

from dcos_tensorflow.task.storage import layout, status
from dcos_tensorflow.task.storage.layout import FileFacts
from dcos_tensorflow.task.storage.rounds import Uploading
from dcos_tensorflow.task.storage.s3.errors import Cancelled, StorageError
from dcos_tensorflow.task.storage.s3.location import Location
from dcos_tensorflow.task.storage.s3.object_store import Connection
from dcos_tensorflow.task.storage.s3.upload import CheckpointUpload, SourceChanged
from dcos_tensorflow.task.storage.s3.workers import run_all

#: These make a model visible to its readers, so they go up after its other files.
_LAST = ("saved_model.pb", "fingerprint.pb", "keras_metadata.pb")


class Mirror(Uploading):
    """Copies one directory. ``start`` and ``finish``, or ``copy_once`` without the thread.

    A file is put again ``interval_seconds`` after it was put at the soonest; files other than event
    files when they have been quiet for ``quiet_seconds``. ``others`` returns the files that are not
    this task's own: each task copies its own. ``what`` is what a person calls the directory;
    with ``checkpoints`` those in it are copied like all else.
    """

    def __init__(
        self,
        directory: str,
        place: Location,
        connection: Connection,
        others: Callable[[], FrozenSet[str]] = frozenset,
        *,
        what: str = "log directory",
        checkpoints: bool = False,
        interval_seconds: float = 15.0,
        quiet_seconds: float = 2.0,
    ) -> None:
        super().__init__("mirror", interval_seconds, connection)
        self._what = what
        self._checkpoints = checkpoints
        self._directory = directory
        self._place = place
        self._quiet_seconds = quiet_seconds
        self._others = others
        self._copied: Dict[str, Tuple[FileFacts, float]] = {}

    def copy_once(self, ended: bool = False) -> int:
        """Copy what has changed and return how many files that was. Raises nothing."""
        copied: List[str] = []
        try:
            due = self._due(ended)
            self._board.unpublished(time.monotonic() if due else None)
            self._saw_end = self._saw_end or ended
            for group in _in_order(due):
                jobs = (lambda fact=fact: self._copy(fact, copied) for fact in group)
                run_all(jobs, self._connection.settings.threads)
            self._board.recovered(status.STATE_IDLE)
            if due:
                self._board.change(published_at=time.time())
            if ended or not self._due(True):
                self._board.unpublished(None)
        except Cancelled as cancelled:
            if self._board.read().problem is None:
                self._board.failed(cancelled.problem)
        except Exception as error:  # Training must go on whatever this was.
            self._went_wrong(error, f"copy the {self._what}", self._what, "training goes on")
        return len(copied)

    _round = copy_once

    def _due(self, ended: bool) -> List[FileFacts]:
        listing = self._looked_at(self._directory)
        checkpoints = {posixpath.dirname(path) for path in listing.states}
        others = self._others()
        now = time.monotonic()
        quiet_since = listing.now_ns - int(self._quiet_seconds * 1e9)
        return [
            fact
            for fact in listing.files
            if fact.path not in others
            and self._belongs(fact.path, checkpoints)
            and self._is_due(fact, now, ended)
            and (ended or layout.is_event_file(fact.path) or fact.modified_ns <= quiet_since)
        ]

    def _belongs(self, path: str, checkpoints: Set[str]) -> bool:
        if layout.is_event_file(path):
            return True
        if self._checkpoints:
            return not layout.is_passing(path)
        in_checkpoint = posixpath.dirname(path) in checkpoints and layout.is_checkpoint_part(path)
        return not layout.is_passing(path) and not in_checkpoint

    def _is_due(self, fact: FileFacts, now: float, ended: bool) -> bool:
        known = self._copied.get(fact.path)
        if known is None:
            return True
        return known[0] != fact and (ended or now - known[1] >= self._interval_seconds)

    def _copy(self, fact: FileFacts, copied: List[str]) -> None:
        """Put the first ``fact.size`` bytes of a file: what is appended meanwhile comes later."""
        source = os.path.join(self._directory, fact.path)
        store = self._connection.store(self._place.bucket)
        upload = CheckpointUpload(
            store,
            settings=replace(self._connection.settings, threads=1),
            folder=self._place,
            sources={fact.path: (source, fact.size)},
            on_bytes=self._board.add_bytes,
        )
        try:
            upload.run()
        except SourceChanged:
            upload.abort()
            return
        except StorageError:
            # A file that is gone needs no copy.
            if os.path.exists(source):
                raise
            upload.abort()
            return
        self._copied[fact.path] = (fact, time.monotonic())
        copied.append(fact.path)


def _in_order(due: List[FileFacts]) -> Iterator[List[FileFacts]]:
    """Yield the files that may go up together; those that make a model visible come last."""
    last = [fact for fact in due if posixpath.basename(fact.path) in _LAST]
    yield [fact for fact in due if fact not in last]
    yield last
