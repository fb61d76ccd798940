"""The callbacks of the driver: each message of Mesos becomes an event of the core.

Made by the gateway for its driver; runs in the driver's callback thread. It decides nothing: it
only hands an unreadable offer back at once, because no other part could answer it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dcos_tensorflow.core.model.events import (
    AgentFailed,
    Disconnected,
    Event,
    FrameworkRefused,
    InverseOfferRescinded,
    InverseOffersReceived,
    OfferRescinded,
    OffersReceived,
    Registered,
)
from dcos_tensorflow.mesos.calls import CallError
from dcos_tensorflow.mesos.outstanding import OutstandingOffers
from dcos_tensorflow.mesos.pymesos_import import import_pymesos
from dcos_tensorflow.mesos.wire.convert import (
    ConversionError,
    inverse_offer_from_json,
    offer_from_json,
    region_of,
    update_from_json,
)

pymesos = import_pymesos()
logger = logging.getLogger(__name__)

#: An offer that we cannot read today we cannot read in a minute.
UNREADABLE_REFUSE_SECONDS = 3600.0

RawOffer = Mapping[str, Any]


class Callbacks(pymesos.Scheduler):  # type: ignore[misc, name-defined]
    """The driver's scheduler. What is not here has no meaning for this framework.

    Heartbeats are the driver's; its operations have no ids, so Mesos tells nothing of them; the
    tasks of an executor that is lost get updates of their own.
    """

    def __init__(
        self,
        outstanding: OutstandingOffers,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
    ) -> None:
        self._outstanding = outstanding
        self._emit = emit
        self._clock = clock

    def registered(self, driver: Any, framework_id: Any, master: Any) -> None:
        """Tell of the first subscription."""
        self._subscribed(driver, framework_id["value"], master)

    def reregistered(self, driver: Any, master: Any) -> None:
        """Tell of a subscription with the id that the framework had before."""
        self._subscribed(driver, driver.framework_id, master)

    def _subscribed(self, driver: Any, framework_id: str, master: Mapping[str, Any]) -> None:
        self._emit(Registered(framework_id, driver.master or "", region_of(master)))

    def disconnected(self, driver: Any) -> None:
        """Tell that a subscription has ended; its offers are void."""
        self._outstanding.forget()
        self._emit(Disconnected(driver.lost_because))

    def subscriptionFailed(self, _driver: Any, why: str) -> None:
        """Tell that a subscription could not be had; the driver goes on trying."""
        self._emit(Disconnected(why))

    def resourceOffers(self, driver: Any, offers: list[RawOffer]) -> None:
        """Tell of offers, and keep them for the ACCEPT."""
        received_at = self._clock()
        converted, unreadable = [], []
        for raw in offers:
            try:
                offer = offer_from_json(raw, received_at)
            except ConversionError as error:
                logger.error("an offer is handed back, because it cannot be read: %s", error)
                unreadable.append(raw)
                continue
            converted.append(offer)
            self._outstanding.keep(offer.offer_id, offer.agent_id, raw)
        hand_back(driver, filter(None, map(_offer_id, unreadable)), UNREADABLE_REFUSE_SECONDS)
        if converted:
            self._emit(OffersReceived(tuple(converted)))

    def offerRescinded(self, _driver: Any, offer_id: Mapping[str, Any]) -> None:
        """Tell that an offer is void."""
        self._outstanding.take([offer_id["value"]])
        self._emit(OfferRescinded(offer_id["value"]))

    def inverseOffers(self, _driver: Any, offers: list[RawOffer]) -> None:
        """Tell of agents that are to go away."""
        converted = []
        for raw in offers:
            try:
                converted.append(inverse_offer_from_json(raw))
            except ConversionError as error:
                logger.error("an inverse offer is ignored, because it cannot be read: %s", error)
        if converted:
            self._emit(InverseOffersReceived(tuple(converted)))

    def inverseOfferRescinded(self, _driver: Any, offer_id: Mapping[str, Any]) -> None:
        """Tell that an inverse offer is void."""
        self._emit(InverseOfferRescinded(offer_id["value"]))

    def statusUpdate(self, _driver: Any, status: Mapping[str, Any]) -> None:
        """Tell of a task. Raises ConversionError for what is no update; Mesos repeats it."""
        self._emit(update_from_json(status))

    def slaveLost(self, _driver: Any, agent_id: Mapping[str, Any]) -> None:
        """Tell of a lost agent."""
        self._emit(AgentFailed(agent_id["value"]))

    def error(self, _driver: Any, message: str) -> None:
        """Tell that the master will not have the framework."""
        self._outstanding.forget()
        self._emit(FrameworkRefused(message))


def _offer_id(raw: Any) -> str:
    """Return the id of an offer that cannot be read; empty where that cannot either."""
    try:
        identifier = raw["id"]["value"]
    except (LookupError, TypeError):
        return ""
    return identifier if isinstance(identifier, str) else ""


def hand_back(driver: Any, offer_ids: Iterable[str], refuse_seconds: float) -> None:
    """Decline offers without a use; when that fails they time out at the master."""
    ids = as_ids(offer_ids)
    if not ids:
        return
    try:
        driver.declineOffer(ids, {"refuse_seconds": refuse_seconds})
    except CallError as error:
        logger.warning("offers could not be handed back: %s", error)


def as_ids(offer_ids: Iterable[str]) -> list[dict[str, str]]:
    """Return OfferID messages."""
    return [{"value": offer_id} for offer_id in offer_ids]
