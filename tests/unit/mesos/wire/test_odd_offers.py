"""Offers that no master should make: found by ``tests.fuzz``, which they crashed."""

from types import SimpleNamespace
from typing import Any

import pytest

from dcos_tensorflow.core.model.events import OffersReceived
from dcos_tensorflow.mesos.callbacks import Callbacks
from dcos_tensorflow.mesos.outstanding import OutstandingOffers
from fuzz.doors import OFFER

GOOD = {**OFFER, "id": {"value": "good"}}
MEMORY = {"name": "mem", "type": "SCALAR", "role": "*"}


def told(*offers: Any) -> tuple[list[str], list[str]]:
    """Return the ids of the offers that the core is told of, and of those handed back."""
    events: list[Any] = []
    back: list[str] = []
    driver = SimpleNamespace(declineOffer=lambda ids, _: back.extend(each["value"] for each in ids))
    Callbacks(OutstandingOffers(), events.append, lambda: 0.0).resourceOffers(driver, list(offers))
    return [o.offer_id for e in events if isinstance(e, OffersReceived) for o in e.offers], back


@pytest.mark.parametrize("amount", ["1e999", float("nan"), float("inf"), -1, 1e308])
def test_an_amount_that_no_machine_has_is_handed_back_and_the_others_are_told(amount: Any) -> None:
    wrong = {**OFFER, "resources": [{**MEMORY, "scalar": {"value": amount}}]}
    assert told(wrong, GOOD) == (["good"], ["o1"])


@pytest.mark.parametrize("identifier", [16384, None, {}, [], {"value": 1}])
def test_an_offer_without_a_name_is_left_to_time_out(identifier: Any) -> None:
    assert told({**OFFER, "id": identifier, "hostname": None, "agent_id": 1}, GOOD) == (
        ["good"],
        [],
    )


@pytest.mark.parametrize(
    "url",
    [
        {"address": {"ip": "10.0.0.1", "port": ".."}},
        {"address": {"ip": "10.0.0.1", "port": {}}},
        {"address": {"port": 1}},
        {"address": {"ip": "10.0.0.1", "port": float("inf")}},
        {"scheme": "https"},
    ],
)
def test_an_agent_that_does_not_say_where_it_listens_is_taken_all_the_same(url: Any) -> None:
    assert told({**OFFER, "url": url})[0] == ["o1"]
