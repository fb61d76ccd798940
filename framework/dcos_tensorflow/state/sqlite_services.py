"""Which services keep their state in a SQLite file, and who leads each. It only reads.

Used by ``state.services``: the store itself knows one service.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from dcos_tensorflow.state.errors import StateUnavailable
from dcos_tensorflow.state.file_lock import FileLock
from dcos_tensorflow.state.leadership import Holder
from dcos_tensorflow.state.sqlite import lock_of

_QUERY = "SELECT service, path, value FROM state_value WHERE path IN ({}) ORDER BY service"


def services_in(
    path: Path, wanted: Sequence[str], timeout_seconds: float
) -> Iterator[tuple[str, Holder | None, Mapping[str, bytes]]]:
    """Yield folder, leader and these values of each service in a file. Raises StateUnavailable."""
    found: dict[str, dict[str, bytes]] = {}
    try:
        address = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=timeout_seconds)) as database:
            query = _QUERY.format(", ".join("?" * len(wanted)))
            for service, where, value in database.execute(query, tuple(wanted)):
                found.setdefault(service, {})[where] = value
    except sqlite3.Error as error:
        raise StateUnavailable(f"{path} cannot be read: {error}") from error
    for folder, values in found.items():
        yield folder, _leader(path, folder), values


def _leader(path: Path, folder: str) -> Holder | None:
    """Return who holds the lock; one that ends empties it."""
    holder = FileLock(lock_of(path, folder)).read_holder()
    return None if not holder.pid or holder.surely_dead() else holder
