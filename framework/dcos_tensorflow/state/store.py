"""The state store: everything a service needs after a crash, behind one interface.

Used by the scheduler (to lead, load and commit) and by the CLI (to look). Two backends stand
behind :func:`open_store`: ZooKeeper and SQLite; both pass the same contract tests. The store
moves bytes: their meaning is decided above it.

The rules that both backends keep:

* A commit is atomic and durable when it returns.
* Only the leader writes. The right is checked inside the transaction itself, so a process that
  lost it and does not know yet is refused with :class:`FencedOut`.
* No call blocks for ever, but ``lead`` without a timeout. When the backend is away, calls fail
  with :class:`StateUnavailable` within seconds and the caller decides whether to try again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state.leadership import Holder, Leadership
from dcos_tensorflow.state.urls import SqliteUrl, parse_state_url


class StateStore(Protocol):
    """The values of one service. All methods may be called from any thread."""

    service: str

    def load(self) -> dict[str, bytes]:
        """Every value below the service's root, by path, like ``Tasks/worker-0/TaskInfo``.

        The store's own nodes (``lock``, ``SchemaVersion``) are left out. The leader gets a
        consistent whole; anyone else may see a commit half-way when the backend is ZooKeeper.
        Raises StateUnavailable, StateAccessDenied, StateCorrupt, StateTooNew.
        """

    def commit(self, writes: Sequence[Write]) -> None:
        """Apply all writes in order, in one transaction; ``value`` None deletes.

        Deleting what is missing is fine. Folders come and go with the values in them. A commit
        beyond ZooKeeper's limits (900 KB, 1,000 operations) is cut in the given order, so a
        crash between the parts leaves the first writes done and the later ones not begun.
        Raises FencedOut, StateTooLarge or BadStatePath with nothing written (but for parts that
        a split commit wrote while it still led), StateStorageFull, and StateUnavailable, after
        which the commit may or may not have been applied: committing again is safe.
        """

    def erase(self) -> None:
        """Remove the whole service, the lock last; for an uninstall, by the leader.

        The leadership ends without a call of ``on_lost``. An erase that was cut short can be
        repeated after leading again.
        """

    def lead(
        self,
        identity: str,
        timeout_seconds: float | None,
        on_lost: Callable[[str], None],
        on_waiting: Callable[[Holder], None] = lambda holder: None,
    ) -> Leadership:
        """Become the one process that may write; waits up to ``timeout_seconds``, None: for ever.

        ``identity`` names this process to people who wait. ``on_waiting`` is told, in the calling
        thread, who leads meanwhile: at first, and when that has changed. ``on_lost`` gets one
        sentence, once, when the leadership is lost against our will; it is called from another
        thread and must not block. Raises LeadershipTaken after the timeout, StateUnavailable when
        the backend is away at the end of it, and StateError when this store leads already.
        """

    def confirm(self) -> None:
        """Return if this process leads now, as far as the backend itself knows; writes nothing.

        Raises FencedOut when it does not, StateUnavailable when that is not known.
        """

    def close(self) -> None:
        """Release the leadership, if held, and all connections. May be called twice."""


def open_store(
    url: str, service: str, *, zookeeper_session_seconds: float = 10.0, timeout_seconds: float = 5.0
) -> StateStore:
    """Open the state of ``service`` at ``url``.

    ``url`` is ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or
    ``zk://[user:password@]host:port,...[/chroot]``, credentials percent-encoded; without them the
    nodes are open to everyone who reaches the servers. ``timeout_seconds`` bounds
    how long a call waits for a backend that does not answer. ``zookeeper_session_seconds`` is how
    long the servers keep the leadership of a process that vanished from the network.

    Raises BadStateUrl, BadStatePath (service name), StateUnavailable, StateAccessDenied,
    StateCorrupt, StateTooNew.
    """
    place = parse_state_url(url)
    if isinstance(place, SqliteUrl):
        from dcos_tensorflow.state.sqlite import SqliteStore

        return SqliteStore(place.path, service, timeout_seconds=timeout_seconds)

    from dcos_tensorflow.state.zookeeper import ZooKeeperStore

    return ZooKeeperStore(
        place, service, session_seconds=zookeeper_session_seconds, timeout_seconds=timeout_seconds
    )
