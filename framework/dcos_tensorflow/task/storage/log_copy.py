"""Keeps a copy of a log directory in S3 on this disk while TensorBoard reads it.

The other direction of ``mirror``. TensorBoard's runner makes one. It brings the files that
TensorBoard shows, under the names that it has in the bucket. An event file only ever grows: its new
part is appended here, after a check that the present end is the same there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import time
from typing import Dict, Iterator, List, Tuple

from dcos_tensorflow.task.storage import layout, status
from dcos_tensorflow.task.storage.manifest import safe_path
from dcos_tensorflow.task.storage.rounds import Rounds
from dcos_tensorflow.task.storage.s3.errors import (
    Cancelled,
    ConditionFailed,
    ObjectChanged,
    ObjectMissing,
)
from dcos_tensorflow.task.storage.s3.location import Location
from dcos_tensorflow.task.storage.s3.object_store import Connection, Listed, ObjectStore
from dcos_tensorflow.task.storage.s3.workers import run_all

#: So much of the end of a file is compared before it is appended to.
OVERLAP = 64 << 10
#: What TensorBoard's plugins read beside event files: profiles, embeddings and their pictures.
_PLUGINS = "plugins"
_PROJECTOR = ("projector_config.pbtxt",)
_PROJECTOR_ENDS = (".tsv", ".png", ".jpg")


class LogCopy(Rounds):
    """Copies one prefix. ``start`` and ``stop``, or ``copy_once`` without the thread."""

    def __init__(
        self,
        directory: str,
        place: Location,
        connection: Connection,
        *,
        interval_seconds: float = 10.0,
    ) -> None:
        super().__init__("log-copy", interval_seconds, connection)
        self._directory = directory
        self._place = place
        self._here: Dict[str, Listed] = {}

    def copy_once(self) -> int:
        """Bring what is new, remove what is gone; return how many files came. Raises nothing."""
        came: List[str] = []
        try:
            place = self._place
            store = self._connection.store(place.bucket)
            there = dict(_shown(store, place))
            due = {path: one for path, one in there.items() if self._here.get(path) != one}
            self._board.unpublished(time.monotonic() if due else None)
            jobs = (
                lambda path=path, one=one: self._bring(store, path, one, came)
                for path, one in due.items()
            )
            run_all(jobs, self._connection.settings.threads)
            for path in [path for path in self._here if path not in there]:
                self._remove(path)
            self._board.recovered(status.STATE_IDLE)
            self._board.unpublished(None)
            if came:
                self._board.change(published_at=time.time())
        except Cancelled:
            return len(came)
        except Exception as error:  # TensorBoard shows what is here whatever this was.
            self._went_wrong(
                error, "copy the log directory", "logs", "TensorBoard shows the files that are here"
            )
        return len(came)

    _round = copy_once

    def _bring(self, store: ObjectStore, path: str, one: Listed, came: List[str]) -> None:
        target = os.path.join(self._directory, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            if not self._append(store, target, path, one):
                self._fetch(store, target, one)
        except (ConditionFailed, ObjectChanged, ObjectMissing):
            # It was replaced since it was listed: the next look has it.
            return
        self._here[path] = one
        came.append(path)

    def _append(self, store: ObjectStore, target: str, path: str, one: Listed) -> bool:
        """Append what is new of an event file; False where that is not all that has changed."""
        if path not in self._here or not layout.is_event_file(path):
            return False
        with open(target, "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size >= one.size:
                return False
            common = min(size, OVERLAP)
            file.seek(size - common)
            known = _read(file.fileno(), common)
            for piece in store.chunks(one.key, size - common, one.size - size + common, one.etag):
                same, new = known[: len(piece)], piece[len(known) :]
                if piece[: len(same)] != same:
                    return False
                known = known[len(same) :]
                self._write(file.fileno(), new)
        return True

    def _fetch(self, store: ObjectStore, target: str, one: Listed) -> None:
        """Bring a whole file; it gets its name when it is whole."""
        # TensorBoard takes whatever has "tfevents" in its name for an event file.
        name = hashlib.sha256(one.key.encode()).hexdigest()[:20]
        part = os.path.join(self._directory, f"{layout.STAGING_PREFIX}log-{name}")
        try:
            with open(part, "wb", buffering=0) as file:
                if one.size:
                    for piece in store.chunks(one.key, 0, one.size, one.etag):
                        self._write(file.fileno(), piece)
            os.replace(part, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)

    def _write(self, target: int, content: bytes) -> None:
        view = memoryview(content)
        while view:
            view = view[os.write(target, view) :]
        self._board.add_bytes(len(content))

    def _remove(self, path: str) -> None:
        del self._here[path]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self._directory, path))


def _shown(store: ObjectStore, place: Location) -> Iterator[Tuple[str, Listed]]:
    """Yield the objects that TensorBoard shows something of, by their paths below ``place``."""
    base = f"{place.prefix}/" if place.prefix else ""
    for one in store.list(base):
        path = one.key[len(base) :]
        if path and safe_path(path) and is_shown(path):
            yield path, one


def is_shown(path: str) -> bool:
    """Say whether TensorBoard reads a file of this name; checkpoints and models it does not."""
    *folders, name = path.split("/")
    if layout.is_event_file(path) or _PLUGINS in folders or name in _PROJECTOR:
        return True
    return posixpath.splitext(name)[1] in _PROJECTOR_ENDS


def _read(source: int, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = os.read(source, count - len(found))
        if not piece:
            break
        found += piece
    return found
