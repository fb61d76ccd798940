"""The raw offers that wait for an answer: an ACCEPT has to repeat parts of them.

Owned by the gateway; filled by ``callbacks``. It also remembers where agents listen, which only
offers tell. It makes no call and decides nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from dcos_tensorflow.mesos.address import Address

RawOffer = Mapping[str, Any]


class OutstandingOffers:
    """Raw offers by id. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offers: dict[str, RawOffer] = {}
        self._agents: dict[str, str] = {}

    def keep(self, offer_id: str, agent_id: str, raw: RawOffer) -> None:
        """Keep an offer until it is taken, and its agent's address for good."""
        with self._lock:
            self._offers[offer_id] = raw
            where = _base_url(raw.get("url"))
            if where:
                self._agents[agent_id] = where

    def take(self, offer_ids: Iterable[str]) -> tuple[dict[str, RawOffer], list[str]]:
        """Hand offers out, once; return them, and the ids of those that are not here."""
        wanted = list(offer_ids)
        with self._lock:
            found = {i: self._offers.pop(i) for i in wanted if i in self._offers}
        return found, [i for i in wanted if i not in found]

    def forget(self) -> None:
        """Drop all offers: the subscription that brought them is over."""
        with self._lock:
            self._offers.clear()

    def agent_url(self, agent_id: str) -> str | None:
        """Return an agent's base URL as its last offer told; None when it made none yet."""
        with self._lock:
            return self._agents.get(agent_id)


def _base_url(url: Any) -> str:
    """Return where an agent listens; empty where its offer does not say so that it can be read."""
    try:
        address = url["address"]
        https = url.get("scheme") == "https"
        host = (
            (address.get("hostname") if https else "") or address.get("ip") or address["hostname"]
        )
        return Address(str(host), int(address["port"]), https).url
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return ""
