"""The state store in ZooKeeper: ``<chroot>/dcos-service-<name>/...``, as the DC/OS SDK lays it out.

Made by :func:`dcos_tensorflow.state.store.open_store`.

How a commit stays right when things go wrong: each transaction begins with two guards.

1. A check that our own node in the line for the lock exists. It is ephemeral and the lowest:
   while it exists no other process leads, and once the session has ended no transaction of ours can
   succeed, whether we know of the end or not.
2. A write of a fresh commit id into the ``lock`` node, with the version it must have. So each
   transaction can be applied once at most. When the connection breaks after a commit was sent,
   its fate is read back: our id there means applied. Otherwise the same transaction is sent again;
   if the lost one arrives late after all, only one of the two finds the version it wants.

When the time is over before the fate is known, StateUnavailable is raised; the next commit
settles the old one first.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state import errors, layout
from dcos_tensorflow.state.leadership import Holder, Leadership
from dcos_tensorflow.state.transactions import PlannedWrite, Tree, TreeOperation, Verb, plan, split
from dcos_tensorflow.state.zookeeper_lock import Contender
from dcos_tensorflow.state.zookeeper_reading import read_below
from dcos_tensorflow.state.zookeeper_session import ZooKeeperSession
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress

logger = logging.getLogger(__name__)

#: How often a commit is planned, because nodes may turn out to be not as we know them.
MAX_PLANS = 4

#: Stands in the lock, where an erase has to leave it to those in line, until the next commit.
_ERASED = b"erased"

#: What the name of a service's folder begins with, as in the DC/OS SDK.
SERVICE_PREFIX = "dcos-service-"


class _NodesDiffer(Exception):
    """The tree is not as planned for; nothing was written."""


@dataclass(frozen=True)
class _InDoubt:
    """A transaction that was sent and not answered."""

    commit_id: bytes
    version_before: int
    part: tuple[PlannedWrite, ...]


class ZooKeeperStore:
    """See :class:`dcos_tensorflow.state.store.StateStore` and the module's docstring.

    With credentials every node is readable and writable by them alone (digest ACL); without,
    by everyone. The ACL of nodes that exist already is left as it is.
    """

    def __init__(
        self,
        place: ZooKeeperAddress,
        service: str,
        *,
        session_seconds: float = 10.0,
        timeout_seconds: float = 5.0,
    ) -> None:
        self.service = service
        self.place = place
        self._root = f"{place.path}/{SERVICE_PREFIX}{layout.folder_name(service)}"
        self._lock = f"{self._root}/{layout.LOCK}"
        self._mutex = threading.RLock()
        self._leadership: Leadership | None = None
        self._fence = ""
        self._version = -1
        self._in_doubt: _InDoubt | None = None
        self._tree: Tree | None = None
        # True until a commit of ours has raised the layout of an older release.
        self._is_older = False
        self._session = ZooKeeperSession(place, session_seconds, timeout_seconds, self._lost)
        try:
            with self._unexpected():
                self._check_schema()
        except BaseException:
            self._session.close()
            raise

    def __repr__(self) -> str:
        return f"ZooKeeperStore({str(self.place)!r}, service={self.service!r})"

    def load(self) -> dict[str, bytes]:
        """Every value of the service; a large service is read with many requests in flight."""
        with self._mutex, self._unexpected():
            self._check_schema()
            values, tree = self._scan()
            if self._leads() and self._in_doubt is None:
                self._tree = tree
        return {
            path: value
            for path, value in values.items()
            if path.split("/", 1)[0] not in layout.RESERVED
        }

    def commit(self, writes: Sequence[Write]) -> None:
        """Apply all writes; see the protocol, and the module for what makes it safe."""
        with self._mutex, self._unexpected():
            done = 0
            for _attempt in range(MAX_PLANS):
                try:
                    self._settle_older_commit()
                    planned_from = done
                    planned = plan(self._known_tree(), writes[planned_from:])
                    # Of all transactions the first one raises the layout.
                    raised = [_raised_schema()] if self._is_older else []
                    for part in split([*raised, *planned]):
                        self._send(tuple(part))
                        self._is_older = False
                        done = planned_from + part[-1].index + 1
                    return
                except _NodesDiffer:
                    self._tree = None
            raise _NodesDiffer

    def erase(self) -> None:
        """Delete all nodes of the service, children first, the lock and the root last."""
        with self._mutex, self._unexpected():
            for _attempt in range(MAX_PLANS):
                try:
                    self._settle_older_commit()
                    self._tree = None
                    _values, tree = self._scan()
                    for part in split(_deletions(tree)):
                        self._send(tuple(part))
                    self._erase_lock()
                    return
                except _NodesDiffer:
                    continue
            raise _NodesDiffer

    def lead(
        self,
        identity: str,
        timeout_seconds: float | None,
        on_lost: Callable[[str], None],
        on_waiting: Callable[[Holder], None] = lambda holder: None,
    ) -> Leadership:
        """Wait in line for the lock; see the protocol for what it raises.

        A holder that was killed on this machine is replaced at once; one elsewhere when its
        session has ended.
        """
        if self._leads():
            raise errors.StateError(f"this store already leads service {self.service!r}")
        line = Contender(self._session, self._lock, self.service, identity, on_waiting)
        with self._unexpected():
            fence, holder = line.acquire(timeout_seconds)
            leadership = Leadership(holder, line.leave, on_lost)
            try:
                with self._mutex:
                    self._take_over(fence, leadership, waited=line.waited)
            except BaseException:
                leadership.release()
                raise
        return leadership

    def confirm(self) -> None:
        """Ask whether our node in the line for the lock exists, of a server that is up to date."""
        self._require_leadership()
        with self._unexpected():
            # A server that is cut off from its leader would answer of itself, long after the leader
            # has ended our session.
            self._session.call(lambda client: client.sync_async(self._fence))
            if self._session.call(lambda client: client.exists_async(self._fence)) is None:
                raise self._fenced_out()

    def close(self) -> None:
        """Release the leadership and end the session. May be called twice."""
        if self._leadership is not None:
            self._leadership.end_silently()
        self._session.close()  # The servers remove our place in the line with the session.

    def _leads(self) -> bool:
        return self._leadership is not None and self._leadership.held

    def _lost(self) -> None:
        # Runs in kazoo's thread: takes no lock that a waiting commit may hold.
        if self._leadership is not None:
            self._leadership.lose(f"ZooKeeper ({self.place}) ended the session of this process")

    def _take_over(self, fence: str, leadership: Leadership, *, waited: bool) -> None:
        self._fence, self._tree, self._in_doubt = fence, None, None
        self._leadership = leadership
        # From here on a lost session is reported; it may have been lost just before.
        if self._session.call(lambda client: client.exists_async(fence)) is None:
            raise errors.StateUnavailable("the ZooKeeper session ended just as its turn came")
        data, stat = self._session.call(lambda client: client.get_async(self._lock))
        self._version = stat.version
        leadership.after_erase = waited and data == _ERASED
        version = self._check_schema()
        self._is_older = version is not None and version < layout.CURRENT_SCHEMA
        self._warn_of_others()
        if version is None:
            first = TreeOperation(Verb.CREATE, layout.SCHEMA_VERSION, layout.current_schema())
            self._send((PlannedWrite(0, (first,), {layout.SCHEMA_VERSION: 0}),))

    def _warn_of_others(self) -> None:
        """Say so where a login is used and the service's folder was made without it, or by others.

        A login that may write a folder may delete what is in it, made by any login.
        """
        if not self.place.username:
            return
        acls, _stat = self._session.call(lambda client: client.get_acls_async(self._root))
        if acls != self._session.acl:
            logger.warning(
                "the folder of service %r in ZooKeeper (%s) was made by others than its login, and"
                " they can delete its content: end the scheduler, save it with dcos-tensorflow"
                " state export, remove the folder, and put it back with state import",
                self.service,
                self.place,
            )

    def _check_schema(self) -> int | None:
        """The stored layout, None before the first; raises when this release cannot read it."""
        path = f"{self._root}/{layout.SCHEMA_VERSION}"
        try:
            data, _stat = self._session.call(lambda client: client.get_async(path))
        except NoNodeError:
            return None
        return layout.check_schema(data, f"{self.place}, service {self.service!r}")

    def _known_tree(self) -> Tree:
        if self._tree is None:
            _values, self._tree = self._scan()
        return self._tree

    def _scan(self) -> tuple[dict[str, bytes], Tree]:
        values = read_below(self._session, self._root, skip=self._lock)
        return values, Tree(values)

    def _settle_older_commit(self) -> None:
        self._require_leadership()
        if self._in_doubt is not None:
            self._settle()

    def _send(self, part: tuple[PlannedWrite, ...]) -> None:
        """Apply one transaction exactly once, or raise; see the module's docstring."""
        commit_id = uuid.uuid4().hex.encode()
        retrying = Retrying(
            retry=retry_if_exception_type(errors.StateUnavailable),
            stop=stop_after_delay(self._session.timeout_seconds),
            wait=wait_random_exponential(multiplier=0.05, max=0.5),
            reraise=True,
        )
        for attempt in retrying:
            with attempt:
                if self._in_doubt is None or not self._settle():
                    resent = attempt.retry_state.attempt_number > 1
                    self._transact(_InDoubt(commit_id, self._version, part), resent)

    def _transact(self, commit: _InDoubt, resent: bool) -> None:
        self._require_leadership()
        self._in_doubt = commit
        results = self._session.call(
            lambda client: self._transaction(client, commit).commit_async()
        )
        position, failure = _first_failure(results)
        if failure is None:
            self._applied(commit, results[1].version)
        elif position == 0 and isinstance(failure, NoNodeError):
            # The lost first one may have been applied just before the session ended.
            self._in_doubt = commit if resent else None
            raise self._fenced_out()
        elif position == 1 and isinstance(failure, BadVersionError):
            if not self._settle():
                raise _NodesDiffer
        else:
            self._in_doubt = None
            raise self._refused(failure)

    def _transaction(self, client: KazooClient, commit: _InDoubt) -> Any:
        transaction = client.transaction()
        transaction.check(self._fence, -1)
        transaction.set_data(self._lock, commit.commit_id, commit.version_before)
        for operation in (step for item in commit.part for step in item.operations):
            path = f"{self._root}/{operation.path}"
            if operation.verb is Verb.CREATE:
                transaction.create(path, operation.value)
            elif operation.verb is Verb.SET:
                transaction.set_data(path, operation.value)
            else:
                transaction.delete(path)
        return transaction

    def _settle(self) -> bool:
        """Read back whether the transaction in doubt was applied.

        Raises _NodesDiffer when an even older one was applied after all.
        """
        commit = self._in_doubt
        assert commit is not None
        data, stat = self._session.call(lambda client: client.get_async(self._lock))
        if data == commit.commit_id:
            self._applied(commit, stat.version)
            return True
        self._in_doubt = None
        if stat.version != commit.version_before:
            self._version, self._tree = stat.version, None
            raise _NodesDiffer
        return False

    def _applied(self, commit: _InDoubt, version: int) -> None:
        self._in_doubt, self._version = None, version
        if self._tree is not None:
            for item in commit.part:
                self._tree.apply(item.changes)

    def _erase_lock(self) -> None:
        """The last transaction: our place in the line, the lock, and the root."""
        for remove_lock in (True, False):
            results = self._session.call(partial(self._farewell, remove_lock=remove_lock))
            _position, failure = _first_failure(results)
            if failure is None or isinstance(failure, NoNodeError):
                break
            # Others stand in line: the lock is theirs now, and stays. It tells them why they lead.
            if not isinstance(failure, NotEmptyError):
                raise self._refused(failure)
        self._tree = None
        if self._leadership is not None:
            self._leadership.end_silently()

    def _farewell(self, client: KazooClient, *, remove_lock: bool) -> Any:
        transaction = client.transaction()
        transaction.delete(self._fence)
        if remove_lock:
            transaction.delete(self._lock)
            transaction.delete(self._root)
        else:
            transaction.set_data(self._lock, _ERASED)
        return transaction.commit_async()

    def _require_leadership(self) -> None:
        if not self._leads():
            raise self._fenced_out()

    def _fenced_out(self) -> errors.FencedOut:
        text = f"this process does not lead service {self.service!r}"
        if self._leadership is not None:
            text += " any more"
            self._leadership.lose(f"the lock of service {self.service!r} is gone from ZooKeeper")
        if self._in_doubt is not None:
            return errors.FencedOut(f"{text}; whether its last commit was applied is not known")
        return errors.FencedOut(f"{text}; nothing was written")

    def _refused(self, failure: Exception) -> Exception:
        if isinstance(failure, NodeExistsError | NoNodeError | NotEmptyError):
            return _NodesDiffer()
        if isinstance(failure, NoAuthError):
            return errors.StateAccessDenied(
                f"ZooKeeper ({self.place}) lets these credentials read service {self.service!r} "
                "but not write it"
            )
        return errors.StateError(f"ZooKeeper ({self.place}) refuses the commit: {failure!r}")

    @contextlib.contextmanager
    def _unexpected(self) -> Iterator[None]:
        try:
            yield
        except _NodesDiffer:
            raise errors.StateError(
                f"nodes below {self._root} keep changing under the leader: another program writes"
                " there"
            ) from None
        except KazooException as error:
            raise errors.StateError(f"ZooKeeper ({self.place}): {error!r}") from error


def _first_failure(results: Sequence[Any]) -> tuple[int, Exception | None]:
    """The operation that made a transaction fail; the others only say that they were undone."""
    for position, result in enumerate(results):
        if isinstance(result, RolledBackError | RuntimeInconsistency):
            continue
        if isinstance(result, Exception):
            return position, result
    return -1, None


def _raised_schema() -> PlannedWrite:
    """What brings the layout of an older release to this one's, before a commit's own writes."""
    return PlannedWrite(
        -1, (TreeOperation(Verb.SET, layout.SCHEMA_VERSION, layout.current_schema()),), {}
    )


def _deletions(tree: Tree) -> list[PlannedWrite]:
    """All values with their emptied folders, and last what an unfinished uninstall needs to know.

    A folder goes with its last value: the next reader would take an empty one for a value.
    """
    values = [path for path in tree if not tree.get(path) and path != layout.SCHEMA_VERSION]
    order = sorted(values, key=lambda path: (layout.erase_order(path), path))
    planned = plan(tree, [Write(path, None) for path in order])
    if layout.SCHEMA_VERSION in tree:
        version = TreeOperation(Verb.DELETE, layout.SCHEMA_VERSION)
        planned.append(PlannedWrite(len(order), (version,), {layout.SCHEMA_VERSION: None}))
    return planned
