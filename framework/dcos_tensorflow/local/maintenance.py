"""Maintenance windows: unavailability in offers, inverse offers and what frameworks answer.

Part of ``master``'s core, split off for its size: functions over a ``Master``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dcos_tensorflow.local import offers
from dcos_tensorflow.local.records import Agent, Framework, InverseOffer, agent_url, nanoseconds

if TYPE_CHECKING:
    from dcos_tensorflow.local.master import Master

Json = dict[str, Any]

_DEFAULT_REFUSE_SECONDS = 5.0


def set_schedule(master: Master, windows: list[Json], now: float) -> None:
    """Replace the maintenance schedule: offers of the machines concerned are made anew."""
    master.state.maintenance = windows
    for agent in master.state.agents.values():
        found = unavailability(master, agent)
        if found == agent.unavailability:
            continue
        agent.unavailability = found
        drop_inverse_offers(master, agent_id=agent.agent_id, tell=True)
        for key in [k for k in master.state.inverse_answers if k[0] == agent.agent_id]:
            del master.state.inverse_answers[key]
        for offer in list(master.state.offers.values()):
            if offer.agent_id == agent.agent_id:
                offers.rescind(master, offer)
    master.allocate(now)


def unavailability(master: Master, agent: Agent) -> Json | None:
    """Return when an agent will be away, by the schedule."""
    for window in master.state.maintenance:
        for machine in window.get("machine_ids", []):
            if machine.get("ip", agent.info["ip"]) == agent.info["ip"] and machine.get(
                "hostname", agent.hostname
            ) in (agent.hostname, ""):
                return dict(window["unavailability"])
    return None


def send_inverse_offers(master: Master, now: float) -> None:
    """Ask frameworks with tasks on agents that will be away to leave."""
    state = master.state
    for agent in state.agents.values():
        if agent.unavailability is None:
            continue
        for framework in state.frameworks.values():
            if not framework.connected or not any(
                task.agent_id == agent.agent_id for task in framework.tasks.values()
            ):
                continue
            if now < framework.inverse_filters.get(agent.agent_id, 0) or any(
                one.agent_id == agent.agent_id and one.framework_id == framework.framework_id
                for one in state.inverse_offers.values()
            ):
                continue
            offer = InverseOffer(
                offers.next_offer_id(master), framework.framework_id, agent.agent_id
            )
            state.inverse_offers[offer.offer_id] = offer
            body = {
                "id": {"value": offer.offer_id},
                "url": agent_url(agent),
                "framework_id": {"value": framework.framework_id},
                "agent_id": {"value": agent.agent_id},
                "unavailability": agent.unavailability,
            }
            event = {"type": "INVERSE_OFFERS", "inverse_offers": {"inverse_offers": [body]}}
            master.send_event(framework, event)


def answer_inverse_offers(
    master: Master,
    framework: Framework,
    *,
    offer_ids: list[str],
    status: str,
    filters: Json,
    now: float,
) -> None:
    """Note what a framework says to leaving an agent."""
    seconds = filters.get("refuse_seconds", _DEFAULT_REFUSE_SECONDS)
    for offer_id in offer_ids:
        offer = master.state.inverse_offers.pop(offer_id, None)
        if offer is None or offer.framework_id != framework.framework_id:
            continue
        framework.inverse_filters[offer.agent_id] = now + max(seconds, master.timing.allocation)
        master.state.inverse_answers[(offer.agent_id, framework.framework_id)] = {
            "status": status,
            "framework_id": {"value": framework.framework_id},
            "timestamp": nanoseconds(now),
        }


def drop_inverse_offers(
    master: Master, *, agent_id: str | None = None, framework_id: str | None = None, tell: bool
) -> None:
    """Forget the inverse offers of an agent or a framework; ``tell`` rescinds them."""
    for offer in list(master.state.inverse_offers.values()):
        if offer.agent_id == agent_id or offer.framework_id == framework_id:
            del master.state.inverse_offers[offer.offer_id]
            framework = master.state.frameworks.get(offer.framework_id)
            if tell and framework is not None:
                body = {"inverse_offer_id": {"value": offer.offer_id}}
                event = {"type": "RESCIND_INVERSE_OFFER", "rescind_inverse_offer": body}
                master.send_event(framework, event)
