"""Brings ``data: [{uri, path}]`` into the sandbox before the user's process starts.

The runner calls ``fetch_data``. With a cache folder, all tasks of a user on an agent share one
copy: the first one fetches it under a lock, the others wait for it and link it. Where the folder is
not safe from other users of the machine, or another task holds the copy, each fetches its own.
A cached copy is known by the list of S3 (keys, sizes, ETags), so a changed source is another copy.
Where the sandbox can only point to the copy (another file system), a shared lock keeps it there for
as long as this process lives.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
from typing import List, Optional, Sequence

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.python.shared_copies import (
    Copies,
    CopyHeld,
    UnsafeFolder,
    own_folder,
    users_folder,
)
from dcos_tensorflow.task.storage.manifest import safe_path
from dcos_tensorflow.task.storage.s3.errors import problem_error, storage_error
from dcos_tensorflow.task.storage.s3.location import Location, parse_uri
from dcos_tensorflow.task.storage.s3.object_store import Connection, ObjectStore
from dcos_tensorflow.task.storage.s3.objects import ObjectFetch, WantedObject
from dcos_tensorflow.task.storage_spec import DataCachePlace, DataItem

#: So many warnings of one item are told: a bucket whose digests are none has one for each object.
MOST_TOLD = 5


@dataclass(frozen=True)
class FetchedData:
    """What one item became. ``bytes_fetched`` is 0 when all of it was there already."""

    item: DataItem
    files: int
    size: int
    bytes_fetched: int
    #: The descriptor whose lock keeps the cached copy that the sandbox points to; None where the
    #: sandbox has files of its own.
    lock: Optional[int] = None


def fetch_data(
    items: Sequence[DataItem],
    sandbox: str,
    connection: Connection,
    cache: Optional[DataCachePlace] = None,
) -> List[FetchedData]:
    """Bring each item to its path below ``sandbox`` and return what it was. Raises StorageError."""
    return [_fetch_item(item, sandbox, connection, cache) for item in items]


def _fetch_item(
    item: DataItem, sandbox: str, connection: Connection, cache: Optional[DataCachePlace]
) -> FetchedData:
    place = parse_uri(item.uri)
    target = _target(item, sandbox)
    store = connection.store(place.bucket)
    wanted = _wanted(store, place, item)
    fetch = ObjectFetch(store, connection)
    lock, unshared = None, cache is None
    warnings: List[str] = []
    try:
        if cache is not None:
            name = _cache_name(connection.settings.endpoint_url, place.bucket, wanted)
            try:
                lock = _linked(
                    cache, name, wanted, target=target, fetch=fetch, connection=connection
                )
            except (UnsafeFolder, CopyHeld) as error:
                warnings.append(f"{item.uri} is fetched for this task alone: {error}")
                unshared = True
        if unshared:
            fetch.run(wanted, target)
    except OSError as error:
        raise storage_error(error, f"bring {item.uri} to {item.path}") from error
    size = sum(one.size for one in wanted)
    connection.log(
        f"data: {item.uri} is in {item.path}: {len(wanted)} files, {size / 1e6:.1f} MB, "
        f"{fetch.bytes_fetched / 1e6:.1f} MB fetched"
    )
    warnings += fetch.warnings
    for warning in warnings[:MOST_TOLD]:
        connection.log(f"data: {warning}")
    if len(warnings) > MOST_TOLD:
        connection.log(f"data: {len(warnings) - MOST_TOLD} more objects like that")
    return FetchedData(item, len(wanted), size, fetch.bytes_fetched, lock)


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


def _linked(
    cache: DataCachePlace,
    name: str,
    wanted: Sequence[WantedObject],
    *,
    target: str,
    fetch: ObjectFetch,
    connection: Connection,
) -> Optional[int]:
    """Link the copy below ``target``, fetched where it is not there yet.

    Return the descriptor of the shared lock that keeps it; None where nothing needs it any more.
    """

    def bring(folder: str) -> None:
        fetch.run(wanted, folder)
        for one in wanted:
            os.chmod(os.path.join(folder, one.path), 0o444)

    copies = Copies(
        own_folder(users_folder(cache.directory, "data")),
        wait=connection.gate.wait,
        log=lambda text: connection.log(f"data: {text}"),
        max_bytes=cache.max_bytes,
    )
    copy = copies.take(name, bring, coming=sum(one.size for one in wanted))
    kept = False
    try:
        kept = _link_tree(wanted, copy.path, target)
        return copy.lock if kept else None
    finally:
        if not kept:
            # Sandboxes keep their hard links.
            copy.let_go()


def _link_tree(wanted: Sequence[WantedObject], whole: str, target: str) -> bool:
    """Put the files of the copy below ``target``: hard links, else symbolic ones.

    Say whether there are symbolic ones: the copy must stay then.
    """
    symbolic = False
    for one in wanted:
        source, path = os.path.join(whole, one.path), os.path.join(target, one.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        try:
            os.link(source, path)
        except OSError:
            os.symlink(source, path)
            symbolic = True
    return symbolic
