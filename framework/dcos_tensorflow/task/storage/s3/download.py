"""Brings the files of a published checkpoint onto this disk, verified part by part.

``restorer`` calls it with a folder of its own. It keeps pieces that are there and right, so that a
transfer that was cut goes on, after a crash too. Nothing is held in memory but one piece a thread.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import Iterator, NamedTuple, Sequence, Tuple

from dcos_tensorflow.task.storage.manifest import FileEntry
from dcos_tensorflow.task.storage.s3.disk import check_room, write_all
from dcos_tensorflow.task.storage.s3.errors import (
    DamagedCheckpoint,
    ObjectChanged,
    ObjectMissing,
    S3Problem,
    StorageError,
    storage_error,
)
from dcos_tensorflow.task.storage.s3.location import MEBIBYTE
from dcos_tensorflow.task.storage.s3.object_store import Connection, ObjectStore
from dcos_tensorflow.task.storage.s3.workers import WorkItem, run_all

#: One request brings so many parts at most: fewer requests, and several for a large file.
PARTS_A_REQUEST = 8
_HASH_PIECE = MEBIBYTE


class Download:
    """Fetches entries of one bucket into a folder."""

    def __init__(self, store: ObjectStore, connection: Connection) -> None:
        self._store = store
        self._settings = connection.settings
        self._gate = connection.gate
        self._backoff = connection.backoff
        self._draw = connection.draw
        self._arrival = connection.arrival
        self._lock = threading.Lock()
        self.bytes_fetched = 0

    def run(self, entries: Sequence[FileEntry], folder: str) -> None:
        """Bring ``entries`` below ``folder``. Raises DamagedCheckpoint and StorageError."""
        try:
            self._arrival.begin("Brings a checkpoint", sum(entry.size for entry in entries))
            check_room(((os.path.join(folder, e.path), e.size) for e in entries), folder)
            run_all(self._jobs(entries, folder), self._settings.threads)
        except OSError as error:
            raise storage_error(error, "write a checkpoint") from error

    def _jobs(self, entries: Sequence[FileEntry], folder: str) -> Iterator[WorkItem]:
        for entry in entries:
            path = os.path.join(folder, entry.path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            resumed = os.path.exists(path)
            with open(path, "ab") as file:
                file.truncate(entry.size)
            for first in range(0, len(entry.parts), PARTS_A_REQUEST):
                last = min(first + PARTS_A_REQUEST, len(entry.parts))
                span = _Span(entry, path, first, last)
                yield lambda span=span, resumed=resumed: self._span(span, resumed)  # type: ignore[misc]

    def _span(self, span: "_Span", resumed: bool) -> None:
        with open(span.path, "r+b", buffering=0) as file:
            missing = [
                number
                for number in range(span.first, span.last)
                if not resumed
                or _part_digest(file.fileno(), span.entry, number) != span.entry.parts[number]
            ]
            whole = set(range(span.first, span.last)).difference(missing)
            self._arrival.add(sum(span.entry.part_range(number)[1] for number in whole))
            for first, last in _runs(missing):
                self._fetch(file.fileno(), span.entry, first, last)

    def _fetch(self, target: int, entry: FileEntry, number: int, last: int) -> None:
        """Fetch the parts from ``number`` up to ``last``; go on behind the last good one."""
        attempt, wrong = 0, False
        while number < last:
            try:
                for done in self._parts(target, entry, number, last):
                    number, attempt, wrong = done, 0, False
            except ObjectMissing as error:
                raise _damaged(f"{entry.path} is not in the bucket any more") from error
            except ObjectChanged as error:
                raise _damaged(f"{entry.path} is shorter than it was") from error
            except _WrongContent as error:
                # Once it may have been the network; the same again is the object.
                if wrong:
                    raise _damaged(f"{entry.path} has not the content it had") from error
                wrong = True
            except StorageError as error:
                attempt += 1
                if not error.problem.retryable or attempt >= self._backoff.attempts:
                    raise
                self._gate.wait(self._backoff.delay(attempt, self._draw()))

    def _parts(self, target: int, entry: FileEntry, number: int, last: int) -> Iterator[int]:
        """Write the parts from ``number`` up to ``last``; yield after each the number behind it."""
        position, _ = entry.part_range(number)
        boundary, end = sum(entry.part_range(number)), sum(entry.part_range(last - 1))
        digest = hashlib.sha256()
        pieces = self._store.chunks(entry.key, position, end - position) if entry.size else [b""]
        for piece in pieces:
            with self._lock:
                self.bytes_fetched += len(piece)
            self._arrival.add(len(piece))
            view = memoryview(piece)
            while view or position == boundary == 0:
                take = view[: boundary - position]
                write_all(target, take, position)
                digest.update(take)
                position += len(take)
                view = view[len(take) :]
                if position == boundary:
                    if digest.hexdigest() != entry.parts[number]:
                        raise _WrongContent(S3Problem("damaged", False, entry.path))
                    number += 1
                    yield number
                    if number == last:
                        return
                    digest, boundary = hashlib.sha256(), sum(entry.part_range(number))


def _runs(numbers: Sequence[int]) -> Iterator[Tuple[int, int]]:
    """Yield first and last + 1 of each run of consecutive numbers."""
    start = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield numbers[start], numbers[place - 1] + 1
            start = place


class _Span(NamedTuple):
    entry: FileEntry
    path: str
    first: int
    last: int


class _WrongContent(StorageError):
    """A part arrived whole, but it is another one."""


def matches(path: str, entry: FileEntry) -> bool:
    """Say whether the file at ``path`` is the one that ``entry`` describes."""
    try:
        if os.path.getsize(path) != entry.size or os.path.islink(path):
            return False
        with open(path, "rb", buffering=0) as file:
            return all(
                _part_digest(file.fileno(), entry, number) == digest
                for number, digest in enumerate(entry.parts)
            )
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False


def _part_digest(source: int, entry: FileEntry, number: int) -> str:
    start, length = entry.part_range(number)
    digest = hashlib.sha256()
    while length > 0:
        piece = os.pread(source, min(_HASH_PIECE, length), start)
        if not piece:
            break
        digest.update(piece)
        start += len(piece)
        length -= len(piece)
    return digest.hexdigest()


def _damaged(summary: str) -> DamagedCheckpoint:
    return DamagedCheckpoint(
        S3Problem("damaged", False, summary, "the checkpoint before it is used")
    )
