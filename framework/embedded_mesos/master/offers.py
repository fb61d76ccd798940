"""Offers: made in allocation cycles, shown to their framework, taken back, refused.

Called by ``master`` in every cycle and by the other parts at the events after which Mesos allocates
at once. The ``allocator`` decides the shares; an offer is used by ``accept``. Pure.
"""

from __future__ import annotations

import math
from typing import Any

from embedded_mesos.master import allocator, inverse_offers
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import Filter, Framework, Offer, agent_url
from embedded_mesos.resources import Resources

Json = dict[str, Any]

#: --max_refuse_seconds: 365 days (Mesos' ``Filters`` documentation).
_MAX_REFUSE_SECONDS = 365 * 24 * 3600.0
_DEFAULT_REFUSE_SECONDS = 5.0


def allocate(desk: Desk, now: float) -> None:
    """Run one allocation cycle: offers, and inverse offers where machines will be away."""
    _offer_what_is_free(desk, now)
    inverse_offers.send(desk, now)


def _offer_what_is_free(desk: Desk, now: float) -> None:
    state = desk.state
    for framework in state.frameworks.values():
        framework.filters = [one for one in framework.filters if one.holds(now, state.cycles)]
    by_framework: dict[str, list[Offer]] = {}
    for grant in allocator.allocate(desk.state, now):
        offer = Offer(
            offer_id=state.new_offer_id(),
            framework_id=grant.framework_id,
            agent_id=grant.agent_id,
            mesos_role=grant.mesos_role,
            resources=grant.resources,
        )
        state.offers[offer.offer_id] = offer
        for key in ((grant.mesos_role, ""), (grant.mesos_role, grant.framework_id)):
            state.allocations[key] = state.allocations.get(key, 0) + 1
        by_framework.setdefault(grant.framework_id, []).append(offer)
    for framework_id, made in by_framework.items():
        framework = state.frameworks[framework_id]
        rendered = [_offer_json(desk, framework, offer) for offer in made]
        desk.send_event(framework, {"type": "OFFERS", "offers": {"offers": rendered}})


def _offer_json(desk: Desk, framework: Framework, offer: Offer) -> Json:
    # As the framework's capabilities let it see the offer.
    agent = desk.state.agents[offer.agent_id]
    multi_role = framework.capable("MULTI_ROLE")
    resources = offer.resources if multi_role else offer.resources.allocated_to(None)
    found: Json = {
        "id": {"value": offer.offer_id},
        "framework_id": {"value": offer.framework_id},
        "agent_id": {"value": offer.agent_id},
        "hostname": agent.hostname,
        "url": agent_url(agent),
        "resources": resources.to_json(refined=framework.capable("RESERVATION_REFINEMENT")),
    }
    if agent.attributes:
        found["attributes"] = agent.attributes
    executors = [key[1] for key in agent.executors if key[0] == framework.framework_id]
    if executors:
        found["executor_ids"] = [{"value": executor} for executor in executors]
    if multi_role:
        found["allocation_info"] = {"role": offer.mesos_role}
    if "domain" in agent.info:
        found["domain"] = agent.info["domain"]
    if agent.unavailability is not None:
        found["unavailability"] = agent.unavailability
    return found


def drop(desk: Desk, offer: Offer) -> None:
    """Forget an offer; its resources are free again."""
    desk.state.offers.pop(offer.offer_id, None)


def rescind(desk: Desk, offer: Offer) -> None:
    """Take an offer back and tell its framework."""
    drop(desk, offer)
    framework = desk.state.frameworks[offer.framework_id]
    event = {"type": "RESCIND", "rescind": {"offer_id": {"value": offer.offer_id}}}
    desk.send_event(framework, event)


def rescind_all(desk: Desk, agent_id: str) -> None:
    """Take back all that is on offer of an agent."""
    for offer in list(desk.state.offers.values()):
        if offer.agent_id == agent_id:
            rescind(desk, offer)


def refuse(
    desk: Desk,
    offer: Offer,
    resources: Resources,
    filters: Json | None,
    now: float,
) -> None:
    """Hide ``resources`` of the offer's agent from its role for a while."""
    seconds = (filters or {}).get("refuse_seconds", _DEFAULT_REFUSE_SECONDS)
    if seconds < 0 or math.isnan(seconds):
        seconds = _DEFAULT_REFUSE_SECONDS
    seconds = min(seconds, _MAX_REFUSE_SECONDS)
    if seconds == 0 or not resources:
        return
    # A filter outlives the next cycle (Mesos: MESOS-4302).
    until = now + max(seconds, desk.timing.allocation)
    refused = resources.allocated_to(None)
    framework = desk.state.frameworks[offer.framework_id]
    cycles = desk.state.cycles
    framework.filters.append(Filter(offer.mesos_role, offer.agent_id, refused, until, cycles))


def drop_offers_of(desk: Desk, framework: Framework) -> None:
    """Forget all offers of a framework without a RESCIND."""
    for offer in list(desk.state.offers.values()):
        if offer.framework_id == framework.framework_id:
            drop(desk, offer)
