"""Puts the output of a shard into S3, unless there is one: as one object, whole or not at all.

``unit_work`` calls it. Of several attempts the first stays: S3 itself compares, by
``If-None-Match: *``.
"""

from __future__ import annotations

import hashlib
import os
from typing import List, Mapping, Tuple

from dcos_tensorflow.task.job_files import open_regular
from dcos_tensorflow.task.storage.manifest import part_count, part_size_for
from dcos_tensorflow.task.storage.s3.errors import (
    ConditionFailed,
    ObjectMissing,
    problem_error,
    storage_error,
)
from dcos_tensorflow.task.storage.s3.location import parse_uri
from dcos_tensorflow.task.storage.s3.object_store import Connection, ObjectStore, Upload
from dcos_tensorflow.task.supervise.shard_record import metadata_of, path_of

#: S3 refuses one of two writers at the same moment without any of them being there.
_TRIES = 5


def put_if_absent(connection: Connection, path: str, uri: str, record: str = "") -> bool:
    """Put the file ``path`` where ``uri`` says; False where an object is there already.

    ``record`` says which inputs it is of (``shard_record``); empty for none.

    Raises StorageError, LocationError.
    """
    if os.path.isdir(path):
        raise problem_error(
            "unsupported",
            f"{path} is a folder, and the output of a shard in S3 is one object",
            "write one file, or pack the folder into one",
        )
    place = parse_uri(uri)
    store = connection.store(place.bucket)
    metadata = metadata_of(record) if record else {}
    if record and not metadata and not _is_there(store, place.prefix):
        store.put(path_of(place.prefix), record.encode())
    for left in reversed(range(_TRIES)):
        try:
            _put(store, path, place.prefix, metadata)
        except ConditionFailed:
            if _is_there(store, place.prefix):
                return False
            if not left:
                raise
        else:
            return True
    raise AssertionError("the last try returns or raises")


def _put(store: ObjectStore, path: str, key: str, metadata: Mapping[str, str]) -> None:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            part_size = part_size_for(size)
            if part_count(size, part_size) == 1:
                store.put(key, file.read(size), if_absent=True, metadata=metadata)
                return
            if _is_there(store, key):
                raise ConditionFailed(
                    problem_error("condition", f"s3://{store.bucket}/{key} is there").problem
                )
            upload = Upload(key, store.create_upload(key, metadata))
            try:
                parts: List[Tuple[str, bytes]] = []
                while True:
                    piece = file.read(part_size)
                    if not piece:
                        break
                    digest = hashlib.sha256(piece).digest()
                    number = len(parts)
                    etag = store.put_part(key, upload.upload_id, number, piece, digest)
                    parts.append((etag, digest))
                store.complete_upload(key, upload.upload_id, parts, if_absent=True)
            except BaseException:
                store.abort_upload(upload)
                raise
    except OSError as error:
        raise storage_error(error, f"read {os.path.basename(path)}") from error


def _is_there(store: ObjectStore, key: str) -> bool:
    try:
        store.head(key)
    except ObjectMissing:
        return False
    return True
