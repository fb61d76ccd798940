"""Inverse offers: frameworks with tasks on agents that will be away are asked to leave. Pure.

Called by ``offers`` in every allocation cycle, by ``scheduler_calls`` with the frameworks' answers,
and where agents, frameworks or windows of maintenance are removed. Facts: the recordings.
"""

from __future__ import annotations

from typing import Any

from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import (
    Framework,
    InverseOffer,
    RegisteredAgent,
    agent_url,
    nanoseconds,
)

Json = dict[str, Any]

_DEFAULT_REFUSE_SECONDS = 5.0


def send(desk: Desk, now: float) -> None:
    """Ask frameworks with tasks on agents that will be away to leave."""
    for agent in desk.state.agents.values():
        if agent.unavailability is None or agent.disconnected:
            continue
        for framework in desk.state.frameworks.values():
            if framework.connected and _is_to_ask(desk, framework, agent, now):
                _ask(desk, framework, agent)


def _is_to_ask(desk: Desk, framework: Framework, agent: RegisteredAgent, now: float) -> bool:
    if now < framework.inverse_filters.get(agent.agent_id, 0):
        return False
    asked = any(
        one.agent_id == agent.agent_id and one.framework_id == framework.framework_id
        for one in desk.state.inverse_offers.values()
    )
    return not asked and any(
        task.agent_id == agent.agent_id and not task.terminal for task in framework.tasks.values()
    )


def _ask(desk: Desk, framework: Framework, agent: RegisteredAgent) -> None:
    offer = InverseOffer(desk.state.new_offer_id(), framework.framework_id, agent.agent_id)
    desk.state.inverse_offers[offer.offer_id] = offer
    body = {
        "id": {"value": offer.offer_id},
        "url": agent_url(agent),
        "framework_id": {"value": framework.framework_id},
        "agent_id": {"value": agent.agent_id},
        "unavailability": agent.unavailability,
    }
    event = {"type": "INVERSE_OFFERS", "inverse_offers": {"inverse_offers": [body]}}
    desk.send_event(framework, event)


def answer(
    desk: Desk,
    framework: Framework,
    *,
    offer_ids: list[str],
    status: str,
    filters: Json,
    now: float,
) -> None:
    """Note what a framework says to leaving an agent."""
    seconds = filters.get("refuse_seconds", _DEFAULT_REFUSE_SECONDS)
    if seconds < 0:
        seconds = _DEFAULT_REFUSE_SECONDS
    for offer_id in offer_ids:
        offer = desk.state.inverse_offers.get(offer_id)
        if offer is None or offer.framework_id != framework.framework_id:
            continue
        del desk.state.inverse_offers[offer_id]
        framework.inverse_filters[offer.agent_id] = now + max(seconds, desk.timing.allocation)
        desk.state.inverse_answers[(offer.agent_id, framework.framework_id)] = {
            "status": status,
            "framework_id": {"value": framework.framework_id},
            "timestamp": nanoseconds(now),
        }


def drop(
    desk: Desk, *, agent_id: str | None = None, framework_id: str | None = None, tell: bool
) -> None:
    """Forget the inverse offers of an agent or a framework; ``tell`` rescinds them."""
    for offer in list(desk.state.inverse_offers.values()):
        if offer.agent_id == agent_id or offer.framework_id == framework_id:
            del desk.state.inverse_offers[offer.offer_id]
            framework = desk.state.frameworks.get(offer.framework_id)
            if tell and framework is not None:
                body = {"inverse_offer_id": {"value": offer.offer_id}}
                event = {"type": "RESCIND_INVERSE_OFFER", "rescind_inverse_offer": body}
                desk.send_event(framework, event)
