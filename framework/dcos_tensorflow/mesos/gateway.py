"""Mesos as the scheduler sees it: events come out, actions go in.

Used by the scheduler's event loop, and only there. It subscribes, turns what Mesos says into the
core's events, and performs the core's actions that are Mesos' business. It keeps one thing: the
raw offers that are outstanding, because an ACCEPT has to repeat parts of them.

It decides nothing, repeats no ACCEPT, and tears nothing down unless the action says so. Trouble
with a call comes back as an event, never as an exception.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dcos_tensorflow.core.actions import (
    Accept,
    Acknowledge,
    Action,
    Decline,
    Kill,
    Reconcile,
    Revive,
    Suppress,
    Teardown,
)
from dcos_tensorflow.core.events import (
    AgentFailed,
    CallFailed,
    Disconnected,
    Event,
    FrameworkRefused,
    OfferRescinded,
    OffersReceived,
    Registered,
)
from dcos_tensorflow.mesos.address import Address, parse_masters
from dcos_tensorflow.mesos.agent_files import HttpAccess
from dcos_tensorflow.mesos.calls import CallError, CallRefused, NotConnected
from dcos_tensorflow.mesos.connection import Credentials, tls_context
from dcos_tensorflow.mesos.convert import (
    ConversionError,
    duration,
    offer_from_json,
    task_infos,
    update_from_json,
)
from dcos_tensorflow.mesos.hardened import HardenedSchedulerDriver

logger = logging.getLogger(__name__)

#: Tasks asked for in one RECONCILE: bounds the size of a call and of the burst it causes.
RECONCILE_CHUNK = 1000
#: An offer that we cannot read today we cannot read in a minute.
UNREADABLE_REFUSE_SECONDS = 3600.0


@dataclass(frozen=True)
class MesosConfig:
    """How to reach Mesos.

    ``masters`` is ``host:port``, a comma list, or ``zk://user:password@h1,h2/mesos``; ``scheme``
    is for those that carry none. ``principal`` and ``secret`` are for HTTP basic authentication.
    ``ca_file`` empty means the system's authorities. ``timeout_seconds`` bounds each call.
    """

    masters: str = field(repr=False)
    principal: str = ""
    secret: str = field(default="", repr=False)
    ca_file: str = ""
    verify: bool = True
    client_cert: str = ""
    client_key: str = ""
    timeout_seconds: float = 10.0
    scheme: str = "http"

    def __post_init__(self) -> None:
        """Refuse masters and schemes that cannot be understood. Raises ValueError."""
        if self.scheme not in ("http", "https"):
            raise ValueError(f"scheme {self.scheme!r}: expected http or https")
        parse_masters(self.masters)

    @property
    def credentials(self) -> Credentials:
        """Principal and secret."""
        return Credentials(self.principal, self.secret)


class MesosGateway:
    """The scheduler's door to Mesos. ``emit`` takes events, from any thread, and must not block.

    ``clock`` gives the unix seconds that offers are stamped with. Raises OSError when a file of
    the TLS settings cannot be read.
    """

    def __init__(
        self,
        config: MesosConfig,
        emit: Callable[[Event], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.tls = tls_context(config.ca_file, config.verify, config.client_cert, config.client_key)
        self._emit = emit
        self._clock = clock
        self._driver: HardenedSchedulerDriver | None = None
        self._lock = threading.Lock()
        self._offers: dict[str, Mapping[str, Any]] = {}
        self._agents: dict[str, str] = {}

    def start(self, framework_info: Mapping[str, Any]) -> None:
        """Subscribe, and keep subscribed for ever. Raises RuntimeError when started already."""
        if self._driver is not None:
            raise RuntimeError("the gateway is started already")
        self._driver = HardenedSchedulerDriver(
            _Callbacks(self),
            framework_info,
            self.config.masters,
            principal=self.config.principal,
            secret=self.config.secret,
            timeout=self.config.timeout_seconds,
            tls=self.tls,
            https=self.config.scheme == "https",
        )
        self._driver.start()

    def stop(self) -> None:
        """Close the connections; the framework stays registered and its tasks run on."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.stop()
            driver.join(self.config.timeout_seconds)
        self._forget_all()

    @property
    def connected(self) -> bool:
        """Say whether a subscription is in force."""
        return self._driver is not None and self._driver.connected

    @property
    def master(self) -> Address | None:
        """The master last dialled; None before the first."""
        return None if self._driver is None else self._driver.master_address

    @property
    def access(self) -> HttpAccess:
        """How to read from masters and agents, for AgentFiles."""
        return HttpAccess(self.config.credentials, self.tls, self.config.timeout_seconds)

    def agent_url(self, agent_id: str) -> str | None:
        """Return an agent's base URL as its last offer told; None when it made none yet."""
        return self._agents.get(agent_id)

    def perform(self, action: Action) -> None:
        """Carry out one action of Mesos' business. Call it from one thread, in order.

        A failure is emitted as CallFailed. Raises TypeError for actions that are not Mesos'.
        """
        perform = _PERFORM.get(type(action))
        if perform is None:
            raise TypeError(f"{type(action).__name__} is not an action for Mesos")
        try:
            perform(self, action)
        except CallError as error:
            self._failed(error.message, error.ambiguous, action)
        except ConversionError as error:
            self._failed(str(error), False, action)

    def _failed(self, message: str, ambiguous: bool, action: Action) -> None:
        call = type(action).__name__.upper()
        logger.warning("%s failed: %s%s", call, message, " (ambiguous)" if ambiguous else "")
        self._emit(
            CallFailed(
                call=call,
                message=message,
                ambiguous=ambiguous,
                offer_ids=getattr(action, "offer_ids", ()),
                task_ids=_task_ids(action),
            )
        )

    def _accept(self, action: Accept) -> None:
        offers, gone = self._take(action.offer_ids)
        if gone:
            self._hand_back(offers, action.refuse_seconds)
            raise CallError("ACCEPT", f"offers are gone: {', '.join(gone)}")
        try:
            launch = {"task_infos": task_infos(action.launches, list(offers.values()))}
            self._required().acceptOffers(
                _ids(offers),
                [{"type": "LAUNCH", "launch": launch}],
                {"refuse_seconds": action.refuse_seconds},
            )
        except (ConversionError, CallRefused) as error:
            if not getattr(error, "ambiguous", False):
                self._hand_back(offers, action.refuse_seconds)
            raise

    def _decline(self, action: Decline) -> None:
        offers, _ = self._take(action.offer_ids)
        if offers:
            self._required().declineOffer(_ids(offers), {"refuse_seconds": action.refuse_seconds})

    def _suppress(self, action: Suppress) -> None:
        self._required().suppressOffers(action.mesos_roles)

    def _revive(self, action: Revive) -> None:
        self._required().reviveOffers(action.mesos_roles)

    def _kill(self, action: Kill) -> None:
        self._required().killTask(
            {"value": action.task_id},
            {"value": action.agent_id} if action.agent_id else None,
            {"grace_period": duration(action.grace_seconds)},
        )

    def _reconcile(self, action: Reconcile) -> None:
        tasks = [
            {"task_id": {"value": task}, "agent_id": {"value": agent} if agent else None}
            for task, agent in action.tasks
        ]
        for start in range(0, max(len(tasks), 1), RECONCILE_CHUNK):
            self._required().reconcileTasks(tasks[start : start + RECONCILE_CHUNK])

    def _acknowledge(self, action: Acknowledge) -> None:
        self._required().acknowledgeStatusUpdate(
            {
                "agent_id": {"value": action.agent_id},
                "task_id": {"value": action.task_id},
                "uuid": action.uuid,
            }
        )

    def _teardown(self, _action: Teardown) -> None:
        self._required().teardown()
        self._forget_all()

    def _required(self) -> HardenedSchedulerDriver:
        if self._driver is None:
            raise NotConnected("", "the gateway is not started")
        return self._driver

    def _hand_back(self, offers: Mapping[str, Any], refuse_seconds: float) -> None:
        """Decline what a failed ACCEPT left with us: the core has no more use for it."""
        if not offers:
            return
        try:
            self._required().declineOffer(_ids(offers), {"refuse_seconds": refuse_seconds})
        except CallError as error:
            logger.warning("offers of a failed ACCEPT could not be declined: %s", error)

    def _take(self, offer_ids: Iterable[str]) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
        with self._lock:
            found = {i: self._offers.pop(i) for i in offer_ids if i in self._offers}
        return found, [i for i in offer_ids if i not in found]

    def _forget_all(self) -> None:
        with self._lock:
            self._offers.clear()


class _Callbacks:
    """The driver's scheduler: turns callbacks into events. Runs in the callback thread."""

    def __init__(self, gateway: MesosGateway) -> None:
        self._gateway = gateway

    def registered(self, driver: Any, framework_id: Any, _master: Any) -> None:
        self._subscribed(driver, framework_id["value"])

    def reregistered(self, driver: Any, _master: Any) -> None:
        self._subscribed(driver, driver.framework_id)

    def disconnected(self, driver: Any) -> None:
        self._gateway._forget_all()
        self._gateway._emit(Disconnected(driver.lost_because))

    def subscriptionFailed(self, _driver: Any, why: str) -> None:
        self._gateway._emit(Disconnected(why))

    def resourceOffers(self, _driver: Any, offers: list[Mapping[str, Any]]) -> None:
        gateway = self._gateway
        received_at = gateway._clock()
        converted, unreadable = [], []
        for raw in offers:
            try:
                offer = offer_from_json(raw, received_at)
            except ConversionError as error:
                logger.error("an offer is handed back, because it cannot be read: %s", error)
                unreadable.append(raw)
                continue
            converted.append(offer)
            with gateway._lock:
                gateway._offers[offer.offer_id] = raw
                if raw.get("url"):
                    gateway._agents[offer.agent_id] = _base_url(raw["url"])
        ids = {raw["id"]["value"]: raw for raw in unreadable if raw.get("id", {}).get("value")}
        if ids:
            gateway._hand_back(ids, UNREADABLE_REFUSE_SECONDS)
        if converted:
            gateway._emit(OffersReceived(tuple(converted)))

    def offerRescinded(self, _driver: Any, offer_id: Mapping[str, Any]) -> None:
        self._gateway._take([offer_id["value"]])
        self._gateway._emit(OfferRescinded(offer_id["value"]))

    def statusUpdate(self, _driver: Any, status: Mapping[str, Any]) -> None:
        self._gateway._emit(update_from_json(status))

    def slaveLost(self, _driver: Any, agent_id: Mapping[str, Any]) -> None:
        self._gateway._emit(AgentFailed(agent_id["value"]))

    def executorLost(self, _driver: Any, executor_id: Any, agent_id: Any, status: Any) -> None:
        # Its tasks get updates of their own.
        logger.info("executor %s on %s ended: %s", executor_id, agent_id, status)

    def error(self, _driver: Any, message: str) -> None:
        self._gateway._forget_all()
        self._gateway._emit(FrameworkRefused(message))

    def inverseOffers(self, driver: Any, offers: list[Mapping[str, Any]]) -> None:
        # Advisory (Mesos documentation, "Maintenance"): when the maintenance begins is in the
        # offers' unavailability, which the core works with.
        try:
            driver.declineInverseOffer([offer["id"] for offer in offers])
        except CallError as error:
            logger.info("inverse offers not answered: %s", error)

    def inverseOfferRescinded(self, _driver: Any, _offer_id: Any) -> None:
        pass  # declined already

    def operationStatusUpdate(self, driver: Any, status: Mapping[str, Any]) -> None:
        # This framework sends no operations with an id; what comes is of nobody's concern.
        logger.info("operation %s: %s", status.get("operation_id"), status.get("state"))
        try:
            driver.acknowledgeOperationStatusUpdate(status)
        except CallError as error:
            logger.info("operation update not acknowledged: %s", error)

    def frameworkMessage(self, _driver: Any, executor_id: Any, _agent: Any, _data: Any) -> None:
        logger.info("message of executor %s ignored", executor_id)

    def _subscribed(self, driver: Any, framework_id: str) -> None:
        self._gateway._emit(Registered(framework_id, driver.master or ""))


_PERFORM: dict[type, Callable[[MesosGateway, Any], None]] = {
    Accept: MesosGateway._accept,
    Decline: MesosGateway._decline,
    Suppress: MesosGateway._suppress,
    Revive: MesosGateway._revive,
    Kill: MesosGateway._kill,
    Reconcile: MesosGateway._reconcile,
    Acknowledge: MesosGateway._acknowledge,
    Teardown: MesosGateway._teardown,
}


def _ids(offers: Iterable[str]) -> list[dict[str, str]]:
    return [{"value": offer_id} for offer_id in offers]


def _task_ids(action: Action) -> tuple[str, ...]:
    if isinstance(action, Accept):
        return tuple(launch.task_id for launch in action.launches)
    if isinstance(action, Kill | Acknowledge):
        return (action.task_id,)
    if isinstance(action, Reconcile):
        return tuple(task for task, _ in action.tasks)
    return ()


def _base_url(url: Mapping[str, Any]) -> str:
    address = url["address"]
    https = url.get("scheme") == "https"
    host = (address.get("hostname") if https else None) or address.get("ip") or address["hostname"]
    return Address(host, int(address["port"]), https).url
