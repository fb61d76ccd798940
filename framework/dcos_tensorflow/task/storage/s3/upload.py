"""Brings the files of one checkpoint into the bucket, part by part, and can go on where it stopped.

``publisher`` makes one ``CheckpointUpload`` per checkpoint. It writes data only: nothing of it is
visible before the publisher has written manifest and pointer.
"""

from __future__ import annotations

import hashlib
import os
import threading
from types import MappingProxyType
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from dcos_tensorflow.task.job_files import open_regular
from dcos_tensorflow.task.storage import manifest
from dcos_tensorflow.task.storage.manifest import FileEntry
from dcos_tensorflow.task.storage.s3.download import matches
from dcos_tensorflow.task.storage.s3.errors import (
    ObjectMissing,
    S3Problem,
    StorageError,
    storage_error,
)
from dcos_tensorflow.task.storage.s3.location import Location, S3Settings
from dcos_tensorflow.task.storage.s3.object_store import ObjectStore, Upload, is_gone_upload
from dcos_tensorflow.task.storage.s3.workers import WorkItem, run_all


class SourceChanged(StorageError):
    """A file was changed while it was read."""


class _FileUpload:
    def __init__(self, path: str, source: str, size: int, key: str) -> None:
        self.path = path
        self.source = source
        self.size = size
        self.key = key
        self.part_size = manifest.part_size_for(size)
        self.count = manifest.part_count(size, self.part_size)
        self.upload_id = ""
        self.done: Dict[int, Tuple[str, bytes]] = {}
        self.gone = False
        self.entry: Optional[FileEntry] = None

    def finish(self) -> None:
        parts = tuple(self.done[number][1].hex() for number in range(self.count))
        self.entry = FileEntry(self.path, self.key, self.size, self.part_size, parts)

    def restart(self) -> None:
        self.upload_id = ""
        self.gone = False
        self.done.clear()


class CheckpointUpload:
    """The upload of one checkpoint that was set aside.

    ``sources`` are the files by their path in the checkpoint: where they lie, and their sizes.
    ``unchanged`` are entries that are taken over when their objects are still there, ``likely``
    those of the newest checkpoint: taken over when the content is the same as well.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        settings: S3Settings,
        folder: Location,
        sources: Mapping[str, Tuple[str, int]],
        unchanged: Mapping[str, FileEntry] = MappingProxyType({}),
        likely: Mapping[str, FileEntry] = MappingProxyType({}),
        on_bytes: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._likely = dict(likely)
        self._on_bytes = on_bytes
        self._lock = threading.Lock()
        self._unchanged = dict(unchanged)
        self._files = [
            _FileUpload(path, source, size, folder.key(path))
            for path, (source, size) in sources.items()
        ]

    @property
    def has_progress(self) -> bool:
        """Say whether something is in the bucket already that another upload would do again."""
        return any(file.done and file.entry is None for file in self._files) or any(
            file.entry is not None and file.entry.key == file.key for file in self._files
        )

    def run(self) -> Tuple[FileEntry, ...]:
        """Upload what is missing and return the entries of all files.

        Raises StorageError; a later call goes on from there.
        """
        for file in self._files:
            if file.gone:
                file.restart()
        largest = max((file.part_size for file in self._files), default=1)
        threads = max(1, min(self._settings.threads, self._settings.memory_bytes // largest))
        run_all(self._compare_jobs(), threads)
        run_all(self._begin_jobs(), threads)
        run_all(self._part_jobs(), threads)
        run_all(self._complete_jobs(), threads)
        entries = [file.entry for file in self._files if file.entry]
        return tuple(sorted(entries, key=lambda entry: entry.path))

    def abort(self) -> None:
        """Give up the uploads under way; the objects that are whole stay."""
        for file in self._files:
            if file.upload_id and file.entry is None:
                self._store.abort_upload(Upload(file.key, file.upload_id))
                file.restart()

    def abandon(self) -> None:
        """Take back what is in the bucket: uploads under way, and objects without a reader."""
        self.abort()
        own = [file.key for file in self._files if file.entry and file.entry.key == file.key]
        self._store.delete(own)

    def _compare_jobs(self) -> Iterator[WorkItem]:
        for file in self._files:
            known = self._unchanged.get(file.path) or self._likely.get(file.path)
            if known is not None and file.entry is None and not file.done:
                yield lambda file=file, known=known: self._compare(file, known)  # type: ignore[misc]

    def _compare(self, file: _FileUpload, known: FileEntry) -> None:
        if known.size != file.size or known.part_size != file.part_size:
            return
        if file.path not in self._unchanged:
            try:
                if not matches(file.source, known):
                    return
            except OSError as error:
                raise storage_error(error, f"read {file.path}") from error
        # A life-cycle rule of the bucket, or a person, may have removed it since.
        if self._is_there(known):
            file.entry = known

    def _begin_jobs(self) -> Iterator[WorkItem]:
        for file in self._files:
            if file.entry is None and file.count > 1 and not file.upload_id:
                yield lambda file=file: self._begin(file)  # type: ignore[misc]

    def _begin(self, file: _FileUpload) -> None:
        file.upload_id = self._store.create_upload(file.key)

    def _part_jobs(self) -> Iterator[WorkItem]:
        for file in self._files:
            for number in range(file.count if file.entry is None else 0):
                if number not in file.done:
                    yield lambda file=file, number=number: self._part(file, number)  # type: ignore[misc]

    def _part(self, file: _FileUpload, number: int) -> None:
        body = _read(file, number)
        digest = hashlib.sha256(body).digest()
        try:
            if file.count == 1:
                etag = self._store.put(file.key, body, digest=digest)
            else:
                etag = self._store.put_part(file.key, file.upload_id, number, body, digest)
        except StorageError as error:
            if file.count > 1 and is_gone_upload(error) and error.problem.kind == "missing":
                # Other threads are at work on this file: it begins anew with the next call.
                file.gone = True
                gone = f"the upload of {file.path} was given up by the endpoint"
                raise StorageError(
                    S3Problem("unavailable", True, gone, "it begins anew")
                ) from error
            raise
        with self._lock:
            file.done[number] = (etag, digest)
        self._on_bytes(len(body))

    def _complete_jobs(self) -> Iterator[WorkItem]:
        for file in self._files:
            if file.entry is None:
                yield lambda file=file: self._complete(file)  # type: ignore[misc]

    def _complete(self, file: _FileUpload) -> None:
        if file.count > 1:
            parts: List[Tuple[str, bytes]] = [file.done[number] for number in range(file.count)]
            try:
                self._store.complete_upload(file.key, file.upload_id, parts)
            except StorageError as error:
                # The answer to an earlier try may have been lost: then the object is there.
                if not is_gone_upload(error) or not self._is_there(file):
                    file.gone = is_gone_upload(error)
                    raise
        file.finish()

    def _is_there(self, file: Union[_FileUpload, FileEntry]) -> bool:
        try:
            return bool(self._store.head(file.key)["ContentLength"] == file.size)
        except ObjectMissing:
            return False


def _read(file: _FileUpload, number: int) -> bytearray:
    start = number * file.part_size
    body = bytearray(min(file.part_size, file.size - start))
    view = memoryview(body)
    try:
        with open_regular(file.source) as source:
            position = 0
            while position < len(body):
                count = os.preadv(source.fileno(), [view[position:]], start + position)
                if not count:
                    raise SourceChanged(
                        S3Problem("source_changed", True, f"{file.path} became shorter")
                    )
                position += count
    except OSError as error:
        raise storage_error(error, f"read {os.path.basename(file.path)}") from error
    finally:
        view.release()
    return body
