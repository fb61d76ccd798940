"""Keeps a subscription to the leading master, for ever.

Used by the driver. One thread connects, subscribes, reads events and starts again when anything
goes wrong, with back-off whatever the cause was. Only two things end it: :meth:`Subscriber.stop`,
and a master that will not have the framework (an ERROR event, a 4xx to SUBSCRIBE).

It never calls application code: events go to the driver, which queues them.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Protocol

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.mesos.address import Address, AddressError, parse_location
from dcos_tensorflow.mesos.calls import Session
from dcos_tensorflow.mesos.connection import Authentication, HttpConnection
from dcos_tensorflow.mesos.stream import (
    ReconnectBackoff,
    StreamEnded,
    StreamRedirected,
    SubscribeRefused,
    SubscriptionStream,
    heartbeat_seconds,
)
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress

if TYPE_CHECKING:
    from dcos_tensorflow.mesos.detector import ZooKeeperDetector

logger = logging.getLogger(__name__)

#: A redirect is followed at once this often in a row; a loop of them then meets the back-off.
IMMEDIATE_REDIRECTS = 3
#: A subscription that lasted this many seconds was stable: the back-off starts afresh.
STABLE_SECONDS = 15.0


class SubscriptionListener(Protocol):
    """What the driver is told, in the subscriber's thread. None of these may block."""

    def subscribe_call(self) -> dict[str, Any]:
        """Return the SUBSCRIBE call as it has to be now."""

    def subscription_began(self, session: Session, subscribed: Mapping[str, Any]) -> None:
        """Take note of a SUBSCRIBED event."""

    def event_arrived(self, session: Session, event: dict[str, Any]) -> None:
        """Take any event, SUBSCRIBED included."""

    def subscription_lost(self, session: Session, why: str) -> None:
        """Take note that a subscription that had begun is over."""

    def subscription_failed(self, why: str) -> None:
        """Take note that a try to subscribe came to nothing; the next one follows."""

    def subscription_refused(self, message: str) -> None:
        """Take note that the master will not have the framework; the subscriber has ended."""


class Subscriber:
    """The subscription thread."""

    def __init__(
        self,
        masters: tuple[Address, ...] | ZooKeeperAddress,
        listener: SubscriptionListener,
        authentication: Authentication,
        *,
        timeout_seconds: float,
        tls: ssl.SSLContext | None = None,
        https: bool = False,
        backoff: ReconnectBackoff | None = None,
        stable_seconds: float = STABLE_SECONDS,
    ) -> None:
        self._listener = listener
        self._authentication = authentication
        self._timeout_seconds = timeout_seconds
        self._tls = tls
        self._backoff = backoff or ReconnectBackoff()
        self._stable_seconds = stable_seconds
        self._lock = threading.Condition()
        self._stopping = False
        self._candidates: tuple[Address, ...] = ()
        self._next = 0
        self._redirect: Address | None = None
        self._moved = False
        self._stream: SubscriptionStream | None = None
        self._session: Session | None = None
        self._master: Address | None = None
        self._epoch = 0
        self._detector: ZooKeeperDetector | None = None
        #: Held while the framework is torn down: no new subscription may begin then.
        self.pause = threading.Lock()
        if isinstance(masters, ZooKeeperAddress):
            # kazoo comes with it, and most masters are named and not elected in ZooKeeper.
            from dcos_tensorflow.mesos.detector import ZooKeeperDetector

            self._detector = ZooKeeperDetector(
                masters, self.change_master, https, on_trouble=self._no_master_found
            )
        else:
            self._candidates = masters
        self.thread = threading.Thread(target=self._run, name="mesos-subscription", daemon=True)

    @property
    def session(self) -> Session | None:
        """The current subscription; None from its end until the next SUBSCRIBED event."""
        with self._lock:
            return self._session

    @property
    def master(self) -> Address | None:
        """The master last dialled."""
        with self._lock:
            return self._master

    def start(self) -> None:
        """Begin, in threads of its own; returns at once."""
        self.thread.start()
        if self._detector is not None:
            self._detector.start()

    def stop(self) -> None:
        """End the subscription by closing its connection; returns without waiting for it."""
        with self._lock:
            self._stopping = True
            self._session = None
            self._lock.notify_all()
            stream = self._stream
        if stream is not None:
            stream.interrupt()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the threads have ended."""
        if self.thread.ident is not None and self.thread is not threading.current_thread():
            self.thread.join(timeout)

    def change_master(self, master: Address | None) -> None:
        """Leave the current master for this one; None: there is none, wait for the next."""
        self._move(() if master is None else (master,), None)

    def subscribe_again(self) -> None:
        """Leave the current subscription for a new one of the same master, at once."""
        with self._lock:
            master = self._master
        self._move(None, master)

    def follow(self, location: str) -> None:
        """Go where a master pointed to when it refused a call. Raises AddressError."""
        with self._lock:
            sender = self._master
        if sender is not None:
            self._move(None, parse_location(location, sender))

    def _no_master_found(self, why: str) -> None:
        """Tell it unless a subscription is in force: ZooKeeper's silence does not matter then."""
        if self.session is None and not self._stopping:
            self._listener.subscription_failed(why)

    def _move(self, candidates: tuple[Address, ...] | None, redirect: Address | None) -> None:
        with self._lock:
            if candidates is not None:
                self._candidates = candidates
                self._next = 0
            self._redirect = redirect
            self._moved = True
            self._lock.notify_all()
            stream = self._stream
        if stream is not None:
            stream.interrupt()

    def _run(self) -> None:
        redirects = 0
        try:
            while (master := self._next_master()) is not None:
                began = time.monotonic()
                try:
                    why = self._subscribe(master)
                except SubscribeRefused as refused:
                    if not self._stopping:
                        self._finish()
                        self._listener.subscription_refused(str(refused))
                    return
                except StreamRedirected as redirected:
                    redirects += 1
                    if self._redirected(redirected, master) and redirects <= IMMEDIATE_REDIRECTS:
                        continue
                    why = f"{redirected} ({counted(redirects, 'redirect')} in a row)"
                    self._tell(None, f"{master}: {why}")
                if why is None:
                    return
                if time.monotonic() - began >= self._stable_seconds:
                    self._backoff.reset()
                    redirects = 0
                self._wait(why)
        finally:
            if self._detector is not None:
                self._detector.stop()

    def _subscribe(self, master: Address) -> str | None:
        """Hold one subscription; return why it ended, None when a fatal ERROR event ended it.

        Raises StreamRedirected or SubscribeRefused.
        """
        stream = SubscriptionStream(HttpConnection(master, self._timeout_seconds, self._tls))
        with self._lock:
            self._stream = stream
            if self._stopping or self._moved:
                stream.interrupt()
        session: Session | None = None
        login: Mapping[str, str] = {}
        try:
            login = self._authentication.header()
            stream_id = stream.open(self._listener.subscribe_call(), login)
            for event in stream.events():
                if event.get("type") == "SUBSCRIBED":
                    session = self._begin(master, stream_id, stream, event)
                if event.get("type") == "ERROR" and not self._stopping:
                    self._finish()
                    session = session or Session(master, stream_id, self._epoch)
                    self._listener.event_arrived(session, event)
                    return None
                if session is not None and not self._stopping:
                    self._listener.event_arrived(session, event)
            raise AssertionError("an event stream always ends with an exception")
        except StreamRedirected:
            raise
        except SubscribeRefused as refused:
            if refused.status != 401 or not self._authentication.refused(login):
                raise
            why = "the login is not accepted any more"
        except TimeoutError:
            why = "no sign of life from the master in time"
        except (StreamEnded, OSError, HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        except Exception as error:
            # Whatever a peer can send must never end this thread: the tasks depend on it.
            logger.exception("unexpected failure of the subscription to %s", master)
            why = repr(error)
        finally:
            with self._lock:
                self._session = None
                self._stream = None
            stream.close()
        self._tell(session, f"{master}: {why}")
        return why

    def _tell(self, session: Session | None, why: str) -> None:
        """Tell the listener of a subscription that ended, or that never began."""
        if self._stopping:
            return
        if session is not None:
            self._listener.subscription_lost(session, why)
        else:
            self._listener.subscription_failed(why)

    def _begin(
        self, master: Address, stream_id: str, stream: SubscriptionStream, event: dict[str, Any]
    ) -> Session:
        if self._stopping:
            raise StreamEnded("stopped")
        subscribed = event.get("subscribed") or {}
        stream.expect_heartbeats(heartbeat_seconds(subscribed))
        with self._lock:
            self._epoch += 1
            session = Session(master, stream_id, self._epoch)
        self._listener.subscription_began(session, subscribed)
        with self._lock:
            if not self._stopping:
                self._session = session
        return session

    def _redirected(self, redirected: StreamRedirected, sender: Address) -> bool:
        try:
            target = parse_location(redirected.location, sender)
        except AddressError as error:
            logger.warning("%s", error)
            return False
        logger.info("master %s redirects to %s", sender, target)
        with self._lock:
            if not self._moved:
                self._redirect = target
        return True

    def _next_master(self) -> Address | None:
        """Wait for a master to dial; None when stopping."""
        with self.pause:
            pass
        with self._lock:
            while not self._stopping and not self._candidates and self._redirect is None:
                self._lock.wait()
            if self._stopping:
                return None
            self._moved = False
            if self._redirect is not None:
                self._master, self._redirect = self._redirect, None
            else:
                self._master = self._candidates[self._next % len(self._candidates)]
            return self._master

    def _wait(self, why: str) -> None:
        """Back off, unless a new master was named in the meantime."""
        delay = self._backoff.next_delay()
        with self._lock:
            if self._stopping:
                return
            if self._redirect is None:
                self._next += 1
            if self._moved:
                return
            logger.warning("subscription to %s: %s; next try in %.1f s", self._master, why, delay)
            self._lock.wait_for(lambda: self._stopping or self._moved, delay)

    def _finish(self) -> None:
        with self._lock:
            self._stopping = True
            self._session = None
