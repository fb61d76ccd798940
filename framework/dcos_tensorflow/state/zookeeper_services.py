"""Which services keep their state in a ZooKeeper, and who leads each. It only reads.

Used by the command line, to show all of them: the store itself knows one service.
"""

from __future__ import annotations

from contextlib import closing

from kazoo.exceptions import NoNodeError

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.layout import LOCK
from dcos_tensorflow.state.leadership import Holder
from dcos_tensorflow.state.zookeeper import SERVICE_PREFIX
from dcos_tensorflow.state.zookeeper_lock import in_line
from dcos_tensorflow.state.zookeeper_session import ZooKeeperSession
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress

_SESSION_SECONDS = 10.0


@dataclass(frozen=True)
class StoredService:
    """A service's folder. The DC/OS SDK's services have such folders, too."""

    #: The name of the folder: ``/`` in the service's name is ``__``.
    folder: str
    #: None when no scheduler leads.
    leader: Holder | None


def services_in(place: ZooKeeperAddress, timeout_seconds: float = 5.0) -> list[StoredService]:
    """Return the services below a chroot, by name. Raises StateUnavailable, StateAccessDenied."""
    session = ZooKeeperSession(place, _SESSION_SECONDS, timeout_seconds, lambda: None)
    with closing(session):
        names = sorted(
            name.removeprefix(SERVICE_PREFIX)
            for name in _children(session, place.path or "/")
            if name.startswith(SERVICE_PREFIX)
        )
        return [
            StoredService(name, _leader(session, f"{place.path}/{SERVICE_PREFIX}{name}/{LOCK}"))
            for name in names
        ]


def _leader(session: ZooKeeperSession, lock: str) -> Holder | None:
    for name in in_line(_children(session, lock)):
        try:
            return _read(session, f"{lock}/{name}")
        except NoNodeError:
            continue
    return None


def _read(session: ZooKeeperSession, path: str) -> Holder:
    data, _stat = session.call(lambda client: client.get_async(path))
    return Holder.from_bytes(data)


def _children(session: ZooKeeperSession, path: str) -> list[str]:
    try:
        found: list[str] = session.call(lambda client: client.get_children_async(path))
    except NoNodeError:
        return []
    return found
