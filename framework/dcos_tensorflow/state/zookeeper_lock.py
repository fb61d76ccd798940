"""Stand in line for the leadership of a service in ZooKeeper.

Each contender has an ephemeral, numbered node below ``lock``; the lowest number leads, and its
node is the fence: a transaction that checks it cannot succeed after the session has ended. Used
by the ZooKeeper backend. kazoo's own lock recipe is not used because its waits have no end while
the servers are away.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable

from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.security import OPEN_ACL_UNSAFE

from dcos_tensorflow.state.errors import LeadershipTaken, StateError, StateUnavailable
from dcos_tensorflow.state.leadership import UNKNOWN_HOLDER, Holder, this_process
from dcos_tensorflow.state.zookeeper_session import ZooKeeperSession

logger = logging.getLogger(__name__)

#: How often a waiting contender looks again even if no watch fired: a watch is lost with its
#: connection, and a holder that died on this machine is noticed only by looking.
LOOK_AGAIN_SECONDS = 1.0

_SEQUENCE_DIGITS = 10


def in_line(names: Iterable[str]) -> list[str]:
    """Return the nodes below a lock in the order of the line: the first one leads."""
    return sorted(names, key=lambda name: name[-_SEQUENCE_DIGITS:])


class Contender:
    """One process in line at ``lock_path``; named ``identity`` to the others."""

    def __init__(
        self,
        session: ZooKeeperSession,
        lock_path: str,
        service: str,
        identity: str,
        on_waiting: Callable[[Holder], None],
    ) -> None:
        self._session = session
        self._lock_path = lock_path
        self._service = service
        self._identity = identity
        self._on_waiting = on_waiting
        self._leader = UNKNOWN_HOLDER
        #: Whether another process has led while this one stood in line.
        self.waited = False
        # The name tells our node from others when the answer to its creation got lost.
        self._prefix = f"{uuid.uuid4().hex}-"
        self._wake = threading.Event()

    def acquire(self, timeout_seconds: float | None) -> tuple[str, Holder]:
        """Wait until we are first; returns our node's path and what stands in it.

        Raises LeadershipTaken, StateUnavailable, StateError.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        stop_waking = self._session.add_wakeup(self._wake.set)
        try:
            while True:
                self._wake.clear()
                try:
                    node = self._look()
                    if node is not None:
                        return self._sign(node)
                    if deadline is not None and time.monotonic() >= deadline:
                        raise LeadershipTaken(self._service, self._first(), timeout_seconds or 0.0)
                except StateUnavailable as error:
                    if deadline is not None and time.monotonic() >= deadline:
                        raise
                    logger.warning("Still waiting to lead service %s: %s", self._service, error)
                self._sleep(deadline)
        except BaseException:
            self.leave()
            raise
        finally:
            stop_waking()

    def leave(self) -> None:
        """Take our node out of the line, if we can; else it goes with the session."""
        if self._session.closed.is_set():
            return
        try:
            for name in self._children():
                if name.startswith(self._prefix):
                    self._delete(name)
        except StateError as error:
            logger.warning(
                "The lock of service %s stays until the session ends: %s", self._service, error
            )

    def _look(self) -> str | None:
        """Our node's path if we are first; else None, with a watch on the one before us."""
        line = self._line()
        position = next((i for i, n in enumerate(line) if n.startswith(self._prefix)), None)
        if position is None:
            self._join()
            return self._look()
        if position == 0:
            return f"{self._lock_path}/{line[0]}"
        self.waited = True
        if self._remove_if_dead(line[0]):
            return self._look()
        before = f"{self._lock_path}/{line[position - 1]}"
        found = self._session.call(
            lambda client: client.exists_async(before, watch=lambda _event: self._wake.set())
        )
        return None if found else self._look()

    def _sign(self, node: str) -> tuple[str, Holder]:
        """Say in our node since when we lead, rather than since when we waited."""
        holder = this_process(self._identity)
        try:
            self._session.call(lambda client: client.set_async(node, holder.to_bytes()))
        except NoNodeError:
            raise StateUnavailable("the ZooKeeper session ended just as its turn came") from None
        return node, holder

    def _sleep(self, deadline: float | None) -> None:
        remaining = LOOK_AGAIN_SECONDS
        if deadline is not None:
            remaining = min(remaining, max(0.0, deadline - time.monotonic()))
        self._wake.wait(remaining)
        if self._session.closed.is_set():
            raise StateError("the state store was closed while waiting to lead")

    def _join(self) -> None:
        self._ensure_parents()
        path = f"{self._lock_path}/{self._prefix}"
        try:
            self._session.call(
                lambda client: client.create_async(
                    path, this_process(self._identity).to_bytes(), ephemeral=True, sequence=True
                )
            )
        except NoNodeError:
            return  # An erase removed the lock meanwhile; the next look makes it again.

    def _ensure_parents(self) -> None:
        chroot = self._session.place.path
        path = ""
        for segment in self._lock_path.split("/")[1:]:
            path += f"/{segment}"
            # What lies above the service is shared with others and stays open to them.
            acl = OPEN_ACL_UNSAFE if f"{chroot}/".startswith(f"{path}/") else self._session.acl
            self._create_if_missing(path, acl)

    def _create_if_missing(self, path: str, acl: list[object]) -> None:
        if self._session.call(lambda client: client.exists_async(path)):
            return
        try:
            self._session.call(lambda client: client.create_async(path, b"", acl=acl))
        except (NodeExistsError, NoNodeError):
            return  # Another contender was faster, or an erase; the join that follows tells.

    def _line(self) -> list[str]:
        return in_line(self._children())

    def _children(self) -> list[str]:
        try:
            children: list[str] = self._session.call(
                lambda client: client.get_children_async(self._lock_path)
            )
        except NoNodeError:
            return []
        return children

    def _first(self) -> Holder:
        line = self._line()
        return self._read(line[0]) if line else UNKNOWN_HOLDER

    def _read(self, name: str) -> Holder:
        try:
            data, _stat = self._session.call(
                lambda client: client.get_async(f"{self._lock_path}/{name}")
            )
        except NoNodeError:
            return UNKNOWN_HOLDER
        return Holder.from_bytes(data)

    def _remove_if_dead(self, name: str) -> bool:
        """Do not wait for the session of a process of this machine that was killed.

        Even if it were alive, this would only fence it out: two never write.
        """
        holder = self._read(name)
        if not holder.surely_dead():
            if holder not in (self._leader, UNKNOWN_HOLDER):
                self._leader = holder
                self._on_waiting(holder)
            return False
        logger.info("Taking over service %s: %s is dead", self._service, holder)
        self._delete(name)
        return True

    def _delete(self, name: str) -> None:
        try:
            self._session.call(lambda client: client.delete_async(f"{self._lock_path}/{name}"))
        except NoNodeError:
            return  # That it is gone is all we wanted.
