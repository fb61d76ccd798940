"""Marathon as a framework: its subscription to the master, its offers, its calls.

``marathon`` owns it, decides, and is told through a ``Listener`` in the driver's own thread. It
keeps nothing but the offers without an answer yet. A call that fails is logged and answered
with False: the caller looks again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from embedded_mesos import APPS_ATTRIBUTE, APPS_ROLE, Credential
from local_dcos.integration import Driver, Integration
from local_dcos.marathon.app_records import TaskRecord

Json = dict[str, Any]
log = logging.getLogger(__name__)

#: As with Marathon: how long its tasks outlive it.
_FAILOVER_SECONDS = 604800.0
#: An offer that is of no use comes again when more is free, or when it is asked for.
_REFUSE = {"refuse_seconds": 86400.0}
_STOP_SECONDS = 10.0
#: What jobs are offered is not even looked at.
_FOR_APPS = {"selector": {"attribute_name": APPS_ATTRIBUTE}, "predicate": {"exists": {}}}
_ONLY_FOR_APPS = {
    "role_constraints": {APPS_ROLE: {"groups": [{"attribute_constraints": [_FOR_APPS]}]}}
}


class Listener(Protocol):
    """What hears of Mesos."""

    def subscribed(self) -> None:
        """Take note of a new subscription: what was called before it may be lost."""

    def changed(self) -> None:
        """Look again: there are offers, or the subscription is lost."""

    def task_updated(self, status: Json) -> None:
        """Note what became of a task, then acknowledge it."""

    def refused(self, message: str) -> None:
        """Take note that the master will not have the framework."""


class AppFramework:
    """The framework, a scheduler by the interface of pymesos. Thread-safe."""

    def __init__(
        self, master: str, credential: Credential, listener: Listener, integration: Integration
    ) -> None:
        self._master = master
        self._credential = credential
        self._integration = integration
        self._listener = listener
        self._lock = threading.Lock()
        self._offers: dict[str, Json] = {}
        self._driver: Driver | None = None

    # -- life ----------------------------------------------------------------------------------

    def start(self, framework_id: str) -> None:
        """Subscribe, and keep subscribed; returns at once."""
        info = {
            "id": {"value": framework_id},
            "name": "marathon",
            "user": "root",
            "hostname": "127.0.0.1",
            "roles": [APPS_ROLE],
            "checkpoint": True,
            "failover_timeout": _FAILOVER_SECONDS,
            "capabilities": [{"type": "MULTI_ROLE"}, {"type": "RESERVATION_REFINEMENT"}],
        }
        if self._credential.principal:
            info["principal"] = self._credential.principal
        self._driver = self._integration.driver(self, info, self._master, self._credential)
        self._driver.offer_constraints = _ONLY_FOR_APPS
        self._driver.start()

    def stop(self) -> None:
        """Go away; the tasks run on."""
        if self._driver is not None:
            self._driver.stop()
            self._driver.join(_STOP_SECONDS)

    @property
    def connected(self) -> bool:
        """Say whether there is a subscription."""
        return self._driver is not None and self._driver.connected

    # -- calls ---------------------------------------------------------------------------------

    def take_offers(self) -> list[Json]:
        """Return the offers that wait for an answer; the caller answers each."""
        with self._lock:
            offers, self._offers = self._offers, {}
        return list(offers.values())

    def launch(self, offer: Json, tasks: Sequence[Json]) -> bool:
        """Launch tasks on an offer's agent, and give the rest of it back; none is a refusal."""
        if not tasks:
            return self._try(lambda driver: driver.declineOffer([offer["id"]], _REFUSE))
        launch = {"type": "LAUNCH", "launch": {"task_infos": list(tasks)}}
        return self._try(lambda driver: driver.acceptOffers([offer["id"]], [launch], _REFUSE))

    def ask_for_offers(self) -> bool:
        """Let everything be offered again."""
        return self._try(lambda driver: driver.reviveOffers())

    def kill(self, task_id: str) -> bool:
        """Ask for a task's end."""
        return self._try(lambda driver: driver.killTask({"value": task_id}))

    def acknowledge(self, status: Json) -> bool:
        """Let Mesos forget an update; it comes again until then."""
        return self._try(lambda driver: driver.acknowledgeStatusUpdate(status))

    def reconcile(self, tasks: Iterable[TaskRecord]) -> bool:
        """Ask what has become of tasks."""
        wanted = [
            {"task_id": {"value": one.task_id}, "agent_id": {"value": one.agent_id}}
            for one in tasks
        ]
        return not wanted or self._try(lambda driver: driver.reconcileTasks(wanted))

    def _try(self, call: Callable[[Driver], object]) -> bool:
        if self._driver is None:
            return False
        try:
            call(self._driver)
        except self._integration.call_error as error:
            log.warning("%s", error)
            return False
        return True

    # -- what the driver tells -----------------------------------------------------------------

    def reregistered(self, driver: Any, master: Any) -> None:
        """Take note of a subscription."""
        self._listener.subscribed()

    def disconnected(self, driver: Any) -> None:
        """Take note of its end; its offers are void."""
        self.take_offers()
        self._listener.changed()

    def resourceOffers(self, driver: Any, offers: list[Json]) -> None:
        """Keep offers."""
        with self._lock:
            self._offers |= {offer["id"]["value"]: offer for offer in offers}
        self._listener.changed()

    def offerRescinded(self, driver: Any, offer_id: Json) -> None:
        """Drop an offer."""
        with self._lock:
            self._offers.pop(offer_id["value"], None)

    def statusUpdate(self, driver: Any, status: Json) -> None:
        """Pass it on."""
        self._listener.task_updated(status)

    def error(self, driver: Any, message: str) -> None:
        """Pass it on: the driver has ended."""
        self._listener.refused(message)

    def _ignore(self, *_: Any) -> None:
        """Take no note: Marathon asks for the state of its tasks anyway."""

    registered = processHeartBeat = inverseOffers = inverseOfferRescinded = _ignore
    operationStatusUpdate = frameworkMessage = slaveLost = executorLost = _ignore
