"""Which services keep their state at a URL, who leads each, and some values of each.

Used by ``client``, to show all of them: a store knows one service. It only reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.leadership import Holder
from dcos_tensorflow.state.urls import SqliteUrl, parse_state_url


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
        from dcos_tensorflow.state import sqlite_services

        found = sqlite_services.services_in(place.path, wanted, timeout_seconds)
    else:
        from dcos_tensorflow.state import zookeeper_services

        found = zookeeper_services.services_in(place, wanted, timeout_seconds)
    services = (StoredService(*one) for one in found)
    return [service for service in services if paths.CONFIG_TARGET in service.values]
