"""Brings ``data: [{uri, path}]`` into the sandbox before the user's process starts.

The runner calls ``fetch_data``. With a cache folder, all tasks of an agent share one copy: whoever
comes first fetches it under a lock, the others wait for it and link it. A cached copy is known by
what S3 lists (keys, sizes, ETags), so a changed source is another copy.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import posixpath
import shutil
from dataclasses import dataclass
from typing import Iterator, List, Optional, Sequence, Tuple

from dcos_tensorflow.task.storage.connection import Connection
from dcos_tensorflow.task.storage.errors import problem_error, storage_error
from dcos_tensorflow.task.storage.location import Location, parse_uri
from dcos_tensorflow.task.storage.manifest import safe_path
from dcos_tensorflow.task.storage.object_store import ObjectStore
from dcos_tensorflow.task.storage.objects import ObjectFetch, WantedObject
from dcos_tensorflow.task.storage.retry import Gate
from dcos_tensorflow.task.storage_spec import DataCache, DataItem

_PARTIAL = ".partial"
_LOCK = ".lock"
#: How often a lock that another task holds is asked for again, seconds.
_LOCK_INTERVAL = 0.2


@dataclass(frozen=True)
class FetchedData:
    """What one item became. ``bytes_fetched`` is 0 when all of it was there already."""

    item: DataItem
    files: int
    size: int
    bytes_fetched: int
    warnings: Tuple[str, ...] = ()


def fetch_data(
    items: Sequence[DataItem],
    sandbox: str,
    connection: Connection,
    cache: Optional[DataCache] = None,
) -> List[FetchedData]:
    """Bring each item to its path below ``sandbox`` and return what it was. Raises StorageError."""
    return [_fetch_item(item, sandbox, connection, cache) for item in items]


def _fetch_item(
    item: DataItem, sandbox: str, connection: Connection, cache: Optional[DataCache]
) -> FetchedData:
    place = parse_uri(item.uri)
    target = _target(item, sandbox)
    store = connection.store(place.bucket)
    wanted = _wanted(store, place, item)
    fetch = ObjectFetch(store, connection)
    try:
        if cache is None:
            fetch.run(wanted, target)
        else:
            name = _cache_name(connection.settings.endpoint_url, place.bucket, wanted)
            with _locked(cache, name, connection.gate) as folder:
                whole = os.path.join(folder, name)
                if not os.path.isdir(whole):
                    _evict(cache, sum(one.size for one in wanted), connection)
                    fetch.run(wanted, whole + _PARTIAL)
                    for one in wanted:
                        os.chmod(os.path.join(whole + _PARTIAL, one.path), 0o444)
                    os.replace(whole + _PARTIAL, whole)
                os.utime(whole)
                _link_tree(wanted, whole, target)
    except OSError as error:
        raise storage_error(error, f"bring {item.uri} to {item.path}") from error
    size = sum(one.size for one in wanted)
    connection.log(
        f"data: {item.uri} is in {item.path}: {len(wanted)} files, {size / 1e6:.1f} MB, "
        f"{fetch.bytes_fetched / 1e6:.1f} MB fetched"
    )
    return FetchedData(item, len(wanted), size, fetch.bytes_fetched, tuple(fetch.warnings))


def _target(item: DataItem, sandbox: str) -> str:
    path = posixpath.normpath(item.path)
    if not safe_path(path):
        raise problem_error(
            "bad_path", f"data path {item.path!r} leaves the sandbox", "give a relative path"
        )
    return os.path.join(sandbox, path)


def _wanted(store: ObjectStore, place: Location, item: DataItem) -> List[WantedObject]:
    """Return the objects of ``place``: those below it, or else the one with its name."""
    base = f"{place.prefix}/" if place.prefix else ""
    found = []
    for one in store.list(base):
        path = one.key[len(base) :]
        if not path or path.endswith("/"):
            continue
        if not safe_path(path):
            raise problem_error("bad_path", f"{item.uri} has an object that is no file: {one.key}")
        found.append(WantedObject(one.key, one.size, one.etag, path))
    if not found and place.prefix:
        name = posixpath.basename(place.prefix)
        found = [
            WantedObject(one.key, one.size, one.etag, name)
            for one in store.list(place.prefix)
            if one.key == place.prefix
        ]
    if not found:
        raise problem_error("no_data", f"data uri {item.uri} has no objects", "correct the URI")
    return found


def _cache_name(endpoint: str, bucket: str, wanted: Sequence[WantedObject]) -> str:
    listed = sorted((one.key, one.size, one.etag, one.path) for one in wanted)
    content = json.dumps([endpoint, bucket, listed]).encode()
    return hashlib.sha256(content).hexdigest()[:40]


@contextlib.contextmanager
def _locked(cache: DataCache, name: str, gate: Gate) -> Iterator[str]:
    """Hold the lock of a cached copy; yield the cache's folder."""
    os.makedirs(cache.directory, exist_ok=True)
    descriptor = os.open(os.path.join(cache.directory, name + _LOCK), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while not _try_lock(descriptor):
            gate.wait(_LOCK_INTERVAL)
        yield cache.directory
    finally:
        # Closing lets the lock go; the file stays, or two tasks might lock two files of one name.
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def _link_tree(wanted: Sequence[WantedObject], whole: str, target: str) -> None:
    """Put the files of the copy below ``target``: hard links, else symbolic ones."""
    for one in wanted:
        source, path = os.path.join(whole, one.path), os.path.join(target, one.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        try:
            os.link(source, path)
        except OSError:
            os.symlink(source, path)


def _evict(cache: DataCache, coming: int, connection: Connection) -> None:
    """Remove the copies that were not used for longest until ``coming`` bytes fit.

    Sandboxes keep their hard links; a copy that another task is just making is locked and stays.
    """
    if cache.max_bytes <= 0:
        return
    copies = []
    for name in os.listdir(cache.directory):
        path = os.path.join(cache.directory, name)
        if os.path.isdir(path):
            copies.append((os.stat(path).st_mtime, _size_of(path), name))
    total = sum(size for _, size, _ in copies) + coming
    for _, size, name in sorted(copies):
        if total <= cache.max_bytes:
            return
        if _remove_copy(cache, name):
            total -= size
            connection.log(f"data: {size / 1e6:.1f} MB of the cache were removed")


def _remove_copy(cache: DataCache, name: str) -> bool:
    stem = name[: -len(_PARTIAL)] if name.endswith(_PARTIAL) else name
    descriptor = os.open(os.path.join(cache.directory, stem + _LOCK), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _try_lock(descriptor):
            return False
        shutil.rmtree(os.path.join(cache.directory, name), ignore_errors=True)
        return True
    finally:
        os.close(descriptor)


def _size_of(folder: str) -> int:
    return sum(
        os.lstat(os.path.join(where, name)).st_size
        for where, _, names in os.walk(folder)
        for name in names
    )
