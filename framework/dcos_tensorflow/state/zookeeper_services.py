"""The services that keep their state in a ZooKeeper, and the leader of each. It only reads.

Used by ``state.services``: the store itself knows one service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from dcos_tensorflow.state.layout import LOCK
from dcos_tensorflow.state.leadership import Holder
from dcos_tensorflow.state.zookeeper import SERVICE_PREFIX
from dcos_tensorflow.state.zookeeper_lock import in_line
from dcos_tensorflow.state.zookeeper_session import ZooKeeperSession
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress

_SESSION_SECONDS = 10.0


def services_in(
    place: ZooKeeperAddress, wanted: Sequence[str], timeout_seconds: float
) -> Iterator[tuple[str, Holder | None, Mapping[str, bytes]]]:
    """Yield folder, leader and these values of each service below a chroot, by name.

    Raises StateUnavailable, StateAccessDenied.
    """
    session = ZooKeeperSession(place, _SESSION_SECONDS, timeout_seconds, lambda: None)
    with closing(session):
        names = sorted(
            name.removeprefix(SERVICE_PREFIX)
            for name in _children(session, place.path or "/")
            if name.startswith(SERVICE_PREFIX)
        )
        roots = {name: f"{place.path}/{SERVICE_PREFIX}{name}" for name in names}
        values = _values(session, roots, wanted)
        for name, root in roots.items():
            yield name, _leader(session, f"{root}/{LOCK}"), values[name]


def _values(
    session: ZooKeeperSession, roots: Mapping[str, str], wanted: Sequence[str]
) -> Mapping[str, Mapping[str, bytes]]:
    nodes = {f"{root}/{path}": (name, path) for name, root in roots.items() for path in wanted}
    found: dict[str, dict[str, bytes]] = {name: {} for name in roots}
    for node, (data, _stat) in session.pipeline(KazooClient.get_async, list(nodes)):
        name, path = nodes[node]
        found[name][path] = data
    return found


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
