"""From events to the scheduler's methods: pymesos' dispatch, in a thread of its own.

Base class of the driver. Events are queued by the subscription thread and handed out here in
order, one at a time. A method of the scheduler that fails is logged and nothing more: the
subscription goes on, and Mesos repeats an update that was not acknowledged.

Offers of a subscription that is over are void (Mesos scheduler HTTP API, "Disconnections") and
are not handed out any more.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.mesos.pymesos_import import import_pymesos

pymesos = import_pymesos()
logger = logging.getLogger(__name__)

Json = Mapping[str, Any]

#: Events that die with the subscription that brought them.
_BOUND_TO_SUBSCRIPTION = frozenset({"OFFERS", "INVERSE_OFFERS", "RESCIND", "RESCIND_INVERSE_OFFER"})


class Delivery:
    """Queue and thread between the subscription and the scheduler's methods."""

    def __init__(self, driver: CallbackDispatch) -> None:
        self._driver = driver
        self._queue: queue.SimpleQueue[tuple[int, Json] | None] = queue.SimpleQueue()
        self._stopped = False
        #: The number of the subscription in force; 0 while there is none.
        self.epoch = 0
        self.thread = threading.Thread(target=self._run, name="mesos-callbacks", daemon=True)

    def put(self, epoch: int, event: Json) -> None:
        """Queue one event of the subscription number ``epoch``."""
        self._queue.put((epoch, event))

    def stop(self) -> None:
        """Hand out nothing more, queued or not."""
        self._stopped = True
        self._queue.put(None)

    def finish(self) -> None:
        """End after what is queued now."""
        self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None and not self._stopped:
            epoch, event = item
            kind = event.get("type")
            if kind in _BOUND_TO_SUBSCRIPTION and epoch != self.epoch:
                logger.info("%s of an ended subscription dropped", kind)
                continue
            try:
                self._driver.on_event(event)
            except (Exception, SystemExit, KeyboardInterrupt):
                # Also those that mean to end a thread: without this one the driver is deaf.
                logger.exception("the scheduler failed to handle %s", kind)


class CallbackDispatch(pymesos.MesosSchedulerDriver):  # type: ignore[misc, name-defined]
    """pymesos' dispatch with the events that it gets wrong put right."""

    #: Whether ``registered`` was called, or the framework had an id from the beginning.
    _announced: bool = False
    #: Why the last subscription ended, as ``disconnected`` finds it.
    lost_because: str = ""

    def on_subscribed(self, info: Json) -> None:
        """Call ``registered``, or ``reregistered`` when the framework had an id before."""
        master = dict(info.get("master_info") or {})
        address = self.master_address
        if address is not None:
            master = {"hostname": address.host, "port": address.port, **master}
        self.master_info = master
        self.version = master.get("version")
        if self._announced:
            self.sched.reregistered(self, master)
        else:
            self._announced = True
            self.sched.registered(self, {"value": info["framework_id"]["value"]}, master)

    def on_disconnected(self, event: Json) -> None:
        """Call ``disconnected``: once, after a subscription that had begun is over."""
        self.lost_because = str(event["why"])
        self.sched.disconnected(self)

    def on_subscription_failed(self, event: Json) -> None:
        """Call ``subscriptionFailed`` where the scheduler has it; pymesos knows no such thing."""
        failed = getattr(self.sched, "subscriptionFailed", None)
        if failed is not None:
            failed(self, str(event["why"]))

    def on_offers(self, event: Json) -> None:
        """Call ``resourceOffers``."""
        offers = event.get("offers") or []
        if offers:
            self.sched.resourceOffers(self, offers)

    def on_failure(self, failure: Json) -> None:
        """Call ``slaveLost`` or ``executorLost``; the status is None when the event has none."""
        if "executor_id" in failure:
            self.sched.executorLost(
                self, failure["executor_id"], failure["agent_id"], failure.get("status")
            )
        else:
            self.sched.slaveLost(self, failure["agent_id"])
