"""pymesos' scheduler driver with a transport that survives the failures of clusters.

Used by :mod:`dcos_tensorflow.mesos.gateway`. The interface, the builders of calls and the
dispatch of events are pymesos'; connections, threads and failures are handled in this room,
because pymesos' own handling loses running tasks, hangs, and hammers masters: each defect has
a test that this driver is without it (``tests/unit/mesos/test_defects_*.py``).

Three kinds of threads: one reads the subscription and reconnects for ever
(:mod:`~dcos_tensorflow.mesos.subscriber`); one calls the scheduler's methods, so that a slow or
failing one stops nothing; calls run in their callers' threads
(:mod:`~dcos_tensorflow.mesos.calls`). Nothing but :meth:`HardenedSchedulerDriver.teardown` ever
sends TEARDOWN, and /version is never asked for.
"""

from __future__ import annotations

import copy
import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dcos_tensorflow.mesos.address import Address, AddressError, parse_masters
from dcos_tensorflow.mesos.calls import CallConnections, NotConnected, NotLeading, Session
from dcos_tensorflow.mesos.connection import Authentication, HttpConnection
from dcos_tensorflow.mesos.credentials import Credentials
from dcos_tensorflow.mesos.dispatch import Delivery, Json
from dcos_tensorflow.mesos.stream import SCHEDULER_PATH
from dcos_tensorflow.mesos.subscriber import Subscriber
from dcos_tensorflow.mesos.wire.scheduler_calls import SchedulerCalls

logger = logging.getLogger(__name__)


class HardenedSchedulerDriver(SchedulerCalls):
    """A scheduler driver. ``sched`` is a pymesos ``Scheduler`` or anything with its methods.

    Differences to pymesos that an application sees:

    - ``stop``, ``abort`` and failures never tear the framework down; ``teardown()`` does.
    - Acknowledgements are the scheduler's: the driver makes none by itself.
    - A call without a subscription raises ``NotConnected``; other failures are ``CallError`` too.
    - An ERROR event, or a 4xx to SUBSCRIBE, ends the driver: ``error()`` is called, ``aborted`` is
      true, ``failure`` says why. Everything else is retried for ever.
    - ``framework`` is sent as it is; only the id is added. The caller's dict is not changed.

    ``timeout`` is seconds for connecting, for each call, and for the answer to SUBSCRIBE.
    ``authentication`` is what is used instead of ``principal`` and ``secret``.
    ``https`` says how masters without a scheme, and those found in ZooKeeper, are spoken to.
    Raises AddressError for masters that cannot be understood.
    """

    #: Sent with SUBSCRIBE when not None (scheduler.proto).
    offer_constraints: Json | None = None

    def __init__(  # noqa: PLR0917 - pymesos' order of parameters
        self,
        sched: Any,
        framework: Json,
        master_uri: str,
        principal: str | None = None,
        secret: str | None = None,
        failover: bool = True,
        timeout: float = 10.0,
        tls: ssl.SSLContext | None = None,
        https: bool = False,
        authentication: Authentication | None = None,
    ) -> None:
        super().__init__(
            sched,
            copy.deepcopy(dict(framework)),
            master_uri,
            use_addict=False,  # It reads missing fields as {}.
            implicit_acknowledgements=False,
            failover=failover,
            timeout=timeout,
        )
        self._timeout = timeout
        self._masters = parse_masters(master_uri, https)
        self._https = https
        self._tls = tls
        self._authentication = authentication or Credentials(principal or "", secret or "")
        self._state_lock = threading.Lock()
        self._announced = "id" in framework
        self._building = threading.local()
        self._subscriber: Subscriber | None = None
        self._calls: CallConnections | None = None
        self._delivery: Delivery | None = None
        self._trouble = ""
        #: Why the driver gave up; "" while it has not.
        self.failure = ""
        #: The MasterInfo of the last SUBSCRIBED event.
        self.master_info: dict[str, Any] = {}

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to subscribe; returns at once. A stopped driver can be started again."""
        with self._state_lock:
            if self._started:
                logger.warning("the driver is started already")
                return
            self._started: bool = True
            self.failure = ""
            self._calls = CallConnections(self._connect, self._authentication)
            self._subscriber = Subscriber(
                self._masters,
                self,
                self._authentication,
                timeout_seconds=self._timeout,
                tls=self._tls,
                https=self._https,
            )
            self._delivery = Delivery(self)
            self._delivery.thread.start()
            self._subscriber.start()

    def stop(self, failover: bool = True) -> None:
        """Close the connections and make no more callbacks. The tasks are left alone.

        ``failover`` is accepted for pymesos' sake and means nothing: only ``teardown`` tears down.
        """
        with self._state_lock:
            self._started = False
            subscriber, calls, delivery = self._subscriber, self._calls, self._delivery
        if delivery is not None:
            delivery.stop()
        if subscriber is not None:
            subscriber.stop()
        if calls is not None:
            calls.close()

    def abort(self) -> None:
        """Stop; the framework stays registered, as pymesos' documentation promises."""
        self.stop()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the driver has ended; in a callback it returns at once."""
        subscriber, delivery = self._subscriber, self._delivery
        if delivery is not None and delivery.thread is threading.current_thread():
            return
        if subscriber is not None:
            subscriber.join(timeout)
        if delivery is not None:
            delivery.thread.join(timeout)

    def teardown(self) -> None:
        """Remove the framework and kill all its tasks, then stop. Raises CallError."""
        subscriber = self._subscriber
        if subscriber is None:
            raise NotConnected("TEARDOWN", "the driver is not started")
        with subscriber.pause:
            with self._subscribed("TEARDOWN"):
                self._send(self._body("TEARDOWN"))
            self.stop()
        self._framework.pop("id", None)
        self._announced = False

    def change_master(self, master: str | Address | None) -> None:
        """Leave the current master for this one, ``host:port``; None: wait for the next."""
        if isinstance(master, str):
            masters = parse_masters(master, self._https)
            if not isinstance(masters, tuple):
                raise AddressError("a master, not a ZooKeeper address, is wanted here")
            master = masters[0]
        if self._subscriber is not None:
            self._subscriber.change_master(master)

    def change_framework(self, framework: Json) -> None:
        """Subscribe anew as ``framework``, which keeps its id; every master understands that.

        UPDATE_FRAMEWORK costs no subscription, and older masters lack it.
        """
        kept = {"id": self._framework["id"]} if "id" in self._framework else {}
        self._framework = {**copy.deepcopy(dict(framework)), **kept}
        if self._subscriber is not None:
            self._subscriber.subscribe_again()

    # -- state -----------------------------------------------------------------------------------

    @property
    def aborted(self) -> bool:
        """Say whether the driver is not running."""
        return not self._started

    @property
    def connected(self) -> bool:
        """Say whether a subscription is in force: true from SUBSCRIBED until the stream ends."""
        return getattr(self._building, "session", None) is not None or self._session is not None

    @property
    def master(self) -> str | None:
        """The master last dialled, ``host:port``."""
        address = self.master_address
        return None if address is None else str(address)

    @property
    def master_address(self) -> Address | None:
        """The master last dialled."""
        return None if self._subscriber is None else self._subscriber.master

    @property
    def stream_id(self) -> str | None:
        """The id of the current subscription."""
        session = self._session
        return None if session is None else session.stream_id

    @property
    def _session(self) -> Session | None:
        return None if self._subscriber is None else self._subscriber.session

    # -- what the subscriber tells -----------------------------------------------------------------

    def subscribe_call(self) -> dict[str, Any]:
        """Return the SUBSCRIBE call as it has to be now."""
        subscribe: dict[str, Any] = {"framework_info": dict(self._framework)}
        if self._suppressed:
            subscribe["suppressed_roles"] = sorted(self._suppressed)
        if self.offer_constraints is not None:
            subscribe["offer_constraints"] = self.offer_constraints
        call: dict[str, Any] = {"type": "SUBSCRIBE", "subscribe": subscribe}
        if "id" in self._framework:
            call["framework_id"] = self._framework["id"]
        return call

    def subscription_began(self, session: Session, subscribed: Json) -> None:
        """Keep the framework's id: every later call and subscription needs it."""
        self._trouble = ""
        self.framework_id = subscribed["framework_id"]["value"]
        logger.info("subscribed to %s as framework %s", session.address, self.framework_id)
        if self._delivery is not None:
            self._delivery.epoch = session.epoch

    def event_arrived(self, session: Session, event: Json) -> None:
        """Queue an event for the scheduler; an ERROR is the last one."""
        if event.get("type") == "ERROR":
            self._give_up(str((event.get("error") or {}).get("message", "")))
        elif self._delivery is not None:
            self._delivery.put(session.epoch, event)

    def subscription_lost(self, session: Session, why: str) -> None:
        """Queue ``disconnected``; offers still queued are void."""
        if self._delivery is not None:
            self._delivery.epoch = 0
            self._delivery.put(
                session.epoch, {"type": "DISCONNECTED", "disconnected": {"why": why}}
            )

    def subscription_failed(self, why: str) -> None:
        """Queue ``subscriptionFailed``, once for each reason in a row."""
        if self._delivery is not None and why != self._trouble:
            self._trouble = why
            self._delivery.put(
                0, {"type": "SUBSCRIPTION_FAILED", "subscription_failed": {"why": why}}
            )

    def subscription_refused(self, message: str) -> None:
        """Queue ``error``, the last thing that the scheduler hears."""
        self._give_up(message)

    def _give_up(self, message: str) -> None:
        logger.error("the master refuses the framework: %s", message)
        self.failure = message
        with self._state_lock:
            self._started = False
            calls, delivery = self._calls, self._delivery
        if calls is not None:
            calls.close()
        if delivery is not None:
            delivery.put(0, {"type": "ERROR", "error": {"message": message}})
            delivery.finish()

    # -- transport of calls ---------------------------------------------------------------------

    def _send(
        self,
        body: Any,
        path: str = SCHEDULER_PATH,
        method: str = "POST",
        headers: Json | None = None,
    ) -> Any:
        session = getattr(self._building, "session", None) or self._session
        calls = self._calls
        if session is None or calls is None:
            raise NotConnected(str(body.get("type", "")), "there is no subscription")
        try:
            return calls.send(session, body, path)
        except NotLeading as error:
            self._follow(error.location)
            raise

    def _follow(self, location: str) -> None:
        try:
            if self._subscriber is not None:
                self._subscriber.follow(location)
        except AddressError as error:
            logger.warning("%s", error)

    @contextmanager
    def _subscribed(self, call: str) -> Iterator[None]:
        """Pin the subscription for one call: pymesos' builders drop calls without one silently."""
        session = self._session
        if session is None or self.framework_id is None:
            raise NotConnected(call, "there is no subscription")
        outer = getattr(self._building, "session", None)
        self._building.session = session
        try:
            yield
        finally:
            self._building.session = outer

    def _connect(self, address: Address) -> HttpConnection:
        return HttpConnection(address, self._timeout, self._tls)
