"""One kazoo client whose calls always end: with an answer, or with an error within seconds.

Used by the ZooKeeper backend alone. kazoo queues requests while it is disconnected (SUSPENDED)
and its synchronous calls wait for ever; here every request waits a bounded time, for the
connection and for its answer. It knows nothing of services, locks or values.
"""

from __future__ import annotations

import contextlib
import logging
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KazooState
from kazoo.security import ACL, OPEN_ACL_UNSAFE, make_digest_acl

from dcos_tensorflow.state.errors import StateAccessDenied, StateError, StateUnavailable
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress

logger = logging.getLogger(__name__)

# kazoo logs each request with its content at DEBUG: the credentials and all values. This logger
# is kazoo's alone and says only what is wrong, whatever the root logger is set to.
_kazoo_logger = logging.getLogger(f"{__name__}.kazoo")
_kazoo_logger.setLevel(logging.WARNING)

#: How many sessions long a connection must be lost until its history counts no more.
_SESSIONS_OUT_OF_TOUCH = 2

#: How many connections can be tried, one after the other, before a session has ended.
_TRIES_IN_A_SESSION = 3

#: Requests on their way at a time: enough to hide the round trip, few enough that a server under
#: load answers each in time.
PIPELINE_DEPTH = 1_000

_UNAVAILABLE = (
    ConnectionLoss,
    ConnectionClosedError,
    SessionExpiredError,
    OperationTimeoutError,
    KazooTimeoutError,
)
_DENIED = (NoAuthError, AuthFailedError)


class _PollingHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads with a cheaper wait, and with a shorter one for a server's first answer.

    Its own makes an epoll object for each of the four waits that a request takes: half the time
    of loading a large service. kazoo never waits to read and to write the same socket at once.
    For a lone server's first answer it waits as long as the session lasts: one that accepts a
    connection while it starts, and forgets it, would cost the session. ``connected`` says that the
    first answer has come, ``first_answer_seconds`` how long it may take.
    """

    def __init__(self, first_answer_seconds: float) -> None:
        super().__init__()
        self.connected = threading.Event()
        self._first_answer_seconds = first_answer_seconds

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """As kazoo's own, for a part of the session's time."""
        timeout = min(kwargs["timeout"], self._first_answer_seconds)
        return super().create_connection(*args, **{**kwargs, "timeout": timeout})

    def select(
        self, rlist: Sequence[Any], wlist: Sequence[Any], xlist: Sequence[Any], timeout: Any = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """As ``select.select``, but for any number of the file descriptor."""
        if timeout is not None and not self.connected.is_set():
            timeout = min(timeout, self._first_answer_seconds)
        watched: dict[int, Any] = {}
        poll = select.poll()
        for wanted, sockets in ((select.POLLIN, rlist), (select.POLLOUT, wlist)):
            for item in sockets:
                watched[item.fileno()] = item
                poll.register(item.fileno(), wanted)
        ready = poll.poll(None if timeout is None else timeout * 1000)
        # A broken connection is reported as such: reading or writing it tells the error.
        found = [watched[number] for number, _event in ready]
        return [i for i in found if i in rlist], [i for i in found if i in wlist], []


class ZooKeeperSession:
    """A connection to ``place`` that reconnects by itself, and a new session after a lost one.

    ``on_session_lost`` is called from kazoo's thread when the servers have ended the session.
    Servers that were set up anew, or restored from an older copy, know less than this client has
    seen; ZooKeeper turns such a client away without a word, for ever. So after a long loss of the
    connection it no longer says what it has seen: the servers then answer that they do not know the
    session.
    Raises StateUnavailable when no server answers within ``timeout_seconds``.
    """

    def __init__(
        self,
        place: ZooKeeperAddress,
        session_seconds: float,
        timeout_seconds: float,
        on_session_lost: Callable[[], None],
    ) -> None:
        self.place = place
        self.timeout_seconds = timeout_seconds
        self.acl = _acl(place)
        self.closed = threading.Event()
        self._on_session_lost = on_session_lost
        handler = _PollingHandler(session_seconds / _TRIES_IN_A_SESSION)
        self._connected = handler.connected
        self._out_of_touch_seconds = _SESSIONS_OUT_OF_TOUCH * session_seconds
        self._out_of_touch: threading.Timer | None = None
        self._client = KazooClient(
            hosts=place.host_list,
            timeout=session_seconds,
            default_acl=self.acl,
            auth_data=place.digest,
            **place.tls_arguments,
            connection_retry={"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0},
            handler=handler,
            logger=_kazoo_logger,
        )
        self._client.add_listener(self._state_changed)
        self._client.start_async()
        if not self._connected.wait(timeout_seconds):
            self.close()
            raise StateUnavailable(
                f"no ZooKeeper server of {place} answered within {timeout_seconds:g} s{_by(place)}"
            )

    def deadline(self) -> float:
        """The moment, on the monotonic clock, until which a call begun now may wait."""
        return time.monotonic() + self.timeout_seconds

    def call(self, start: Callable[[KazooClient], Any], deadline: float | None = None) -> Any:
        """Start one request and wait for its answer.

        ``start`` returns kazoo's async result. Raises StateUnavailable (the request may have
        been carried out all the same), StateAccessDenied, and kazoo's own errors about nodes.
        """
        until = self.deadline() if deadline is None else deadline
        with self._translated():
            self._wait_for_connection(until)
            return start(self._client).get(timeout=max(0.0, until - time.monotonic()))

    def pipeline(
        self, start: Callable[[KazooClient, str], Any], paths: Sequence[str]
    ) -> Iterator[tuple[str, Any]]:
        """Start a request per path without waiting in between; yields (path, answer) in order.

        Raises as :meth:`call`, but missing nodes are left out. The time limit is for progress:
        it starts anew with each answer.
        """
        waiting = iter(paths)
        ahead: list[tuple[str, Any]] = []
        with self._translated():
            self._wait_for_connection(self.deadline())
            while True:
                # The next batch is on its way while this one is waited for.
                batch = ahead
                ahead = [
                    (path, start(self._client, path)) for path in islice(waiting, PIPELINE_DEPTH)
                ]
                if not batch and not ahead:
                    return
                # Answers come in order: to wait for each would wake this thread for each.
                if batch:
                    batch[-1][1].wait(self.timeout_seconds)
                for path, result in batch:
                    try:
                        answer = result.get(timeout=self.timeout_seconds)
                    except NoNodeError:
                        continue
                    yield path, answer

    def add_wakeup(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` at each change of the connection; returns how to stop that."""

        def listener(_state: str) -> None:
            wake()

        self._client.add_listener(listener)
        return lambda: self._client.remove_listener(listener)

    def close(self) -> None:
        """End the session; its ephemeral nodes go with it. May be called twice."""
        if self.closed.is_set():
            return
        self.closed.set()
        self._in_touch()
        try:
            self._client.stop()
        except (KazooException, OSError) as error:
            logger.warning("Ending the session at %s failed: %s", self.place, error)
        finally:
            self._client.close()

    def _state_changed(self, state: str) -> None:
        self._in_touch()
        if state == KazooState.CONNECTED:
            self._connected.set()
            return
        self._connected.clear()
        if self.closed.is_set():
            return
        self._out_of_touch = threading.Timer(self._out_of_touch_seconds, self._forget_history)
        self._out_of_touch.daemon = True
        self._out_of_touch.start()
        if state == KazooState.LOST:
            self._on_session_lost()

    def _in_touch(self) -> None:
        if self._out_of_touch is not None:
            self._out_of_touch.cancel()
            self._out_of_touch = None

    def _forget_history(self) -> None:
        logger.info("ZooKeeper (%s) has not answered for a session's time", self.place)
        self._client.last_zxid = 0

    def _wait_for_connection(self, until: float) -> None:
        if self.closed.is_set():
            raise StateError("the state store is closed")
        if not self._connected.wait(max(0.0, until - time.monotonic())):
            raise StateUnavailable(f"no connection to ZooKeeper ({self.place})")

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _UNAVAILABLE as error:
            raise StateUnavailable(
                f"ZooKeeper ({self.place}) did not answer: {type(error).__name__}"
            ) from error
        except _DENIED as error:
            who = f"user {self.place.username!r}" if self.place.username else "no credentials"
            raise StateAccessDenied(
                f"ZooKeeper ({self.place}) refuses access with {who}; the nodes belong to the "
                "credentials that created them"
            ) from error


def _by(place: ZooKeeperAddress) -> str:
    """Return in words how it is spoken to, which may be why it does not answer."""
    if place.tls is None:
        return ""
    return f" by TLS, with a certificate for its name of an authority in {place.tls.ca}"


def _acl(place: ZooKeeperAddress) -> list[ACL]:
    if place.username is None or place.password is None:
        return list(OPEN_ACL_UNSAFE)
    return [make_digest_acl(place.username, place.password, all=True)]
