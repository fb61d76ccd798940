"""Fetches objects that others wrote, several at a time, and verifies them by S3's checksums.

``data`` and ``initial`` use it. Unlike a published checkpoint such an object has no digest of ours;
its ETag is the MD5 of its content, or of its parts' MD5s, unless the bucket encrypts with KMS.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from typing import BinaryIO, Iterator, List, Optional, Sequence

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage.s3.disk import check_room, write_all
from dcos_tensorflow.task.storage.s3.errors import (
    ConditionFailed,
    ObjectChanged,
    S3Problem,
    StorageError,
    problem_error,
    storage_error,
)
from dcos_tensorflow.task.storage.s3.location import MEBIBYTE
from dcos_tensorflow.task.storage.s3.object_store import Connection, ObjectStore
from dcos_tensorflow.task.storage.s3.workers import WorkItem, run_all

#: One request brings so much at most.
SPAN = 64 * MEBIBYTE

_PLAIN = re.compile(r"[0-9a-f]{32}\Z")
_COMPOSITE = re.compile(r"(?P<digest>[0-9a-f]{32})-(?P<parts>\d+)\Z")


@dataclass(frozen=True)
class WantedObject:
    """An object as it was listed, and the relative path that it is to have."""

    key: str
    size: int
    etag: str
    path: str


class ObjectFetch:
    """Fetches objects of one bucket. A file gets its name when it is whole and verified."""

    def __init__(self, store: ObjectStore, connection: Connection) -> None:
        self._store = store
        self._connection = connection
        self._lock = threading.Lock()
        self.bytes_fetched = 0
        self.warnings: List[str] = []

    def run(self, wanted: Sequence[WantedObject], folder: str) -> None:
        """Bring ``wanted`` below ``folder``; what is there already is kept. Raises StorageError."""
        try:
            missing = [one for one in wanted if not os.path.exists(os.path.join(folder, one.path))]
            os.makedirs(folder, exist_ok=True)
            self._connection.arrival.begin("Brings data", sum(one.size for one in missing))
            parts = ((os.path.join(folder, f"{one.path}.part"), one.size) for one in missing)
            check_room(parts, folder)
            wrong = self._fetch(missing, folder)
            # Once it may have been the network.
            still = self._fetch(wrong, folder)
        except OSError as error:
            raise storage_error(error, "write fetched data") from error
        if still:
            names = ", ".join(one.key for one in still[:3])
            raise problem_error(
                "damaged", f"s3://{self._store.bucket}: the content of {names} is not what S3 says"
            )

    def _fetch(self, wanted: Sequence[WantedObject], folder: str) -> List[WantedObject]:
        """Fetch ``wanted`` and return those that are not what S3 says."""
        wrong: List[WantedObject] = []
        run_all(self._spans(wanted, folder, wrong), self._connection.settings.threads)
        return wrong

    def _spans(
        self, wanted: Sequence[WantedObject], folder: str, wrong: List[WantedObject]
    ) -> Iterator[WorkItem]:
        for one in wanted:
            transfer = _Transfer(one, os.path.join(folder, one.path))
            os.makedirs(os.path.dirname(transfer.part), exist_ok=True)
            with _opened(transfer.part) as file:
                file.truncate(one.size)
            for start in range(0, max(one.size, 1), SPAN):
                yield lambda transfer=transfer, start=start: self._span(transfer, start, wrong)  # type: ignore[misc]

    def _span(self, transfer: "_Transfer", position: int, wrong: List[WantedObject]) -> None:
        """Fetch one span; the thread with a file's last one verifies the file and names it."""
        one, attempt = transfer.one, 0
        end = min(position + SPAN, one.size)
        with _opened(transfer.part) as file:
            while position < end:
                try:
                    pieces = self._store.chunks(one.key, position, end - position, one.etag)
                    for piece in pieces:
                        write_all(file.fileno(), piece, position)
                        position, attempt = position + len(piece), 0
                        with self._lock:
                            self.bytes_fetched += len(piece)
                        self._connection.arrival.add(len(piece))
                except (ConditionFailed, ObjectChanged) as error:
                    said = f"s3://{self._store.bucket}/{one.key} was replaced while it was fetched"
                    raise StorageError(S3Problem("replaced", True, said)) from error
                except StorageError as error:
                    attempt += 1
                    backoff = self._connection.backoff
                    if not error.problem.retryable or attempt >= backoff.attempts:
                        raise
                    self._connection.gate.wait(backoff.delay(attempt, self._connection.draw()))
        with self._lock:
            transfer.spans_left -= 1
            is_last = transfer.spans_left == 0
        if is_last and self._is_right(one, transfer.part):
            os.replace(transfer.part, transfer.path)
        elif is_last:
            with self._lock:
                wrong.append(one)

    def _is_right(self, one: WantedObject, part: str) -> bool:
        etag = one.etag.strip('"')
        if _PLAIN.match(etag):
            if _md5(part, one.size)[0] == etag:
                return True
            if self._is_encrypted(one):
                return self._by_size_only(one, "its bucket encrypts with KMS")
            return False
        composite = _COMPOSITE.match(etag)
        if not composite:
            return self._by_size_only(one, "its ETag is no digest")
        size = self._part_size(one)
        if size and -(-one.size // size) == int(composite["parts"]):
            joined = b"".join(bytes.fromhex(digest) for digest in _md5(part, size))
            if hashlib.md5(joined).hexdigest() == composite["digest"]:
                return True
            if not self._is_encrypted(one):
                return False
        return self._by_size_only(one, "the sizes of its parts are not known")

    def _by_size_only(self, one: WantedObject, why: str) -> bool:
        with self._lock:
            self.warnings.append(f"s3://{self._store.bucket}/{one.key} is checked by size: {why}")
        return True

    def _is_encrypted(self, one: WantedObject) -> bool:
        head = self._store.head(one.key)
        return (
            str(head.get("ServerSideEncryption", "")).startswith("aws:kms")
            or "SSECustomerAlgorithm" in head
        )

    def _part_size(self, one: WantedObject) -> Optional[int]:
        """Return the size of the upload's parts, where the endpoint tells it."""
        try:
            head = self._store.head(one.key, part=1)
        except StorageError:
            return None
        size = int(head["ContentLength"])
        return size if size > 0 and "PartsCount" in head else None


class _Transfer:
    """One file on its way: it has its name with ``.part`` until it is verified."""

    def __init__(self, one: WantedObject, path: str) -> None:
        self.one = one
        self.path = path
        self.part = f"{path}.part"
        self.spans_left = max(1, -(-one.size // SPAN))


def _opened(path: str) -> BinaryIO:
    """Return a file to write to, made if it is not there; never what a link points to."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, 0o666), "r+b", buffering=0)


def _md5(path: str, part_size: int) -> List[str]:
    """Return the MD5 of each ``part_size`` bytes of a file; one of nothing for an empty file."""
    digests: List[str] = []
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        for start in range(0, max(size, 1), max(part_size, 1)):
            digest, left = hashlib.md5(), min(part_size, size - start)
            while left > 0:
                piece = file.read(min(MEBIBYTE, left))
                digest.update(piece)
                left -= len(piece)
            digests.append(digest.hexdigest())
    return digests
