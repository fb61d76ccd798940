"""Names and limits of stored values, the same for every backend. Pure.

A value's path is below its service's root, like ``Tasks/worker-0/TaskInfo``. A path is either a
value or a folder of values, never both: only so is an empty value different from a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.state.errors import BadStatePath, StateCorrupt, StateTooLarge, StateTooNew

#: Names directly below the root that belong to the store itself.
LOCK = "lock"
SCHEMA_VERSION = "SchemaVersion"
RESERVED = frozenset({LOCK, SCHEMA_VERSION})

#: The layout this release writes (``core.kept.paths``); it reads all up to this one. The first
#: commit of a leader raises an older one before it writes anything else: the release that wrote it
#: must not take a state for its own that it would read only half of.
CURRENT_SCHEMA = 3

#: Bytes. ZooKeeper takes requests of 1,048,575 bytes (jute.maxbuffer); the SDK's limit is this.
MAX_VALUE_BYTES = 1_000_000

#: Erased first: without it nothing stored is a service any more, whatever is left of it.
ERASED_FIRST = paths.CONFIG_TARGET
#: Erased last, the service's record after all the rest: it says that an uninstall is under way.
ERASED_LAST = (paths.FRAMEWORK_ID, paths.SERVICE)

# ZooKeeper refuses these characters (PathUtils.validatePath). It looks at UTF-16 units, so what
# takes two of them, such as emoji, is refused as well.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def folder_name(service: str) -> str:
    """The service's name as one path segment. Raises BadStatePath when nothing usable is left."""
    name = paths.service_folder(service)
    check_segments(name, f"service name {service!r}")
    return name


def check_path(path: str) -> None:
    """Raise BadStatePath unless ``path`` can be stored and is not the store's own."""
    check_segments(path, f"path {path!r}")
    if path.split("/", 1)[0] in RESERVED:
        raise BadStatePath(f"path {path!r} belongs to the state store itself")


def check_value(path: str, value: bytes) -> None:
    """Raise StateTooLarge when no backend takes a value of this size."""
    if len(value) > MAX_VALUE_BYTES:
        raise StateTooLarge(
            f"value of {path!r} has {len(value):,} bytes; at most {MAX_VALUE_BYTES:,} are allowed"
        )


def check_segments(path: str, what: str) -> None:
    """Raise BadStatePath unless ``path`` is segments joined by single slashes."""
    if _FORBIDDEN.search(path):
        raise BadStatePath(f"{what} has a character that ZooKeeper does not allow")
    if any(segment in {"", ".", ".."} for segment in path.split("/")):
        raise BadStatePath(f"{what} has an empty segment, '.' or '..'")


def parents(path: str) -> Iterator[str]:
    """The folders above ``path``, nearest first, without the root."""
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def erase_order(path: str) -> int:
    """Sort key of an erase: larger is erased later."""
    if path == ERASED_FIRST:
        return -1
    if path in ERASED_LAST:
        return ERASED_LAST.index(path) + 1
    return 0


def check_schema(stored: bytes, where: str) -> int:
    """Return the layout; raise StateTooNew or StateCorrupt unless this release can read it."""
    try:
        version = int(stored)
    except ValueError:
        raise StateCorrupt(
            f"{where}: {SCHEMA_VERSION} is {stored[:40]!r}, not a number; the state there is not "
            "this program's, or damaged: restore it, or choose another service name"
        ) from None
    if version > CURRENT_SCHEMA:
        raise StateTooNew(
            f"{where}: the state has layout {version}; this release knows layouts up to "
            f"{CURRENT_SCHEMA}. Use the release that wrote it, or a newer one"
        )
    return version


def current_schema() -> bytes:
    """The layout this release writes, as it is stored."""
    return b"%d" % CURRENT_SCHEMA


def is_a_folder(path: str) -> BadStatePath:
    """The error for a value where there are values below."""
    return BadStatePath(f"path {path!r} already holds other values, so it cannot be a value")


def is_below_a_value(path: str, parent: str) -> BadStatePath:
    """The error for a value below a value."""
    return BadStatePath(f"path {path!r} is below {parent!r}, which is a value")
