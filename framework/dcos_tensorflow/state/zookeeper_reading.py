"""Read a whole subtree of ZooKeeper with many requests on their way at a time.

Used by the ZooKeeper backend to load a service. ZooKeeper has no request for a subtree, so each
value takes one and each folder another. It only reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from kazoo.client import KazooClient

from dcos_tensorflow.state.zookeeper_session import ZooKeeperSession


def read_below(session: ZooKeeperSession, root: str, skip: str) -> dict[str, bytes]:
    """All values below ``root``, by their path below it, but for the child ``skip`` of the root.

    Nodes without children are values. What vanishes meanwhile is left out. Raises as
    :meth:`ZooKeeperSession.pipeline`.
    """
    # A server that lags behind its leader must catch up before it is read.
    session.call(lambda client: client.sync_async(root))
    reading = _Reading(session)
    level, _empty = reading.children_of([root])
    level = [path for path in level if path != skip]
    while level:
        # Siblings are alike: one tells whether to ask the others for values or for children.
        samples = {_parent(path): path for path in level}
        folders = reading.read(list(samples.values()))
        full = {_parent(path) for path in folders}
        others = [path for path in level if samples[_parent(path)] != path]
        folders += reading.read([path for path in others if _parent(path) not in full])
        folders += [path for path in others if _parent(path) in full]
        level, empty = reading.children_of(folders)
        reading.read(empty)
    return {path[len(root) + 1 :]: value for path, value in reading.values.items()}


class _Reading:
    def __init__(self, session: ZooKeeperSession) -> None:
        self.values: dict[str, bytes] = {}
        self._session = session

    def read(self, nodes: Sequence[str]) -> list[str]:
        """Read these nodes; returns those that are folders instead of values."""
        folders = []
        for path, (data, stat) in self._session.pipeline(KazooClient.get_async, nodes):
            if stat.numChildren:
                folders.append(path)
            else:
                self.values[path] = data
        return folders

    def children_of(self, folders: Sequence[str]) -> tuple[list[str], list[str]]:
        """The nodes in these folders, and those folders that have none: they are values."""
        children: list[str] = []
        empty: list[str] = []
        for folder, names in self._session.pipeline(KazooClient.get_children_async, folders):
            children += [f"{folder}/{name}" for name in names]
            if not names:
                empty.append(folder)
        return children, empty


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
