"""The services that keep their state at a URL, the leader of each, and some values of each.

Used by ``client``, to show all of them: a store knows one service. It only reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.errors import StateUnavailable
from dcos_tensorflow.state.file_lock import FileLock
from dcos_tensorflow.state.leadership import Holder
from dcos_tensorflow.state.sqlite import lock_of
from dcos_tensorflow.state.urls import SqliteUrl, parse_state_url

_QUERY = "SELECT service, path, value FROM state_value WHERE path IN ({}) ORDER BY service"


@dataclass(frozen=True)
class StoredService:
    """What is found of a service."""

    #: The name of its folder: ``/`` in the service's name is ``__``.
    folder: str
    #: None when no scheduler leads.
    leader: Holder | None
    #: Of the values that were asked for those that it has, by path.
    values: Mapping[str, bytes]


def services_at(
    url: str, wanted: Sequence[str], timeout_seconds: float = 5.0
) -> list[StoredService]:
    """Return the services of a state store, by name, each with the ``wanted`` values that it has.

    Those without a target configuration are none: a queue of teams, another program's. Raises
    BadStateUrl, StateUnavailable, StateAccessDenied.
    """
    place, wanted = parse_state_url(url), (paths.CONFIG_TARGET, *wanted)
    if isinstance(place, SqliteUrl):
        found = _in_file(place.path, wanted, timeout_seconds)
    else:
        from dcos_tensorflow.state import zookeeper_services

        found = zookeeper_services.services_in(place, wanted, timeout_seconds)
    services = (StoredService(*one) for one in found)
    return [service for service in services if paths.CONFIG_TARGET in service.values]


def _in_file(
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
