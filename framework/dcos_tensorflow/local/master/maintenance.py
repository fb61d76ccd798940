"""Maintenance: the schedule, machines that go down and come up, and inverse offers.

Part of ``master``'s core, split off for its size: functions over a ``Master``, called by it, by
``operator_calls`` and, for the frameworks' answers, by ``scheduler_calls``. Pure. Facts: the
recordings; what they do not show, from Mesos' ``http.cpp`` and ``maintenance.cpp``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.local import messages
from dcos_tensorflow.local.master import membership, offers
from dcos_tensorflow.local.master.records import (
    Agent,
    Framework,
    InverseOffer,
    agent_url,
    nanoseconds,
)

if TYPE_CHECKING:
    from dcos_tensorflow.local.master.master import Master

Json = dict[str, Any]

_DEFAULT_REFUSE_SECONDS = 5.0
_DOWN = "Operator initiated 'Machine DOWN'"


def machine_key(machine: Json) -> tuple[str, str]:
    """Return what tells machines apart: Mesos compares both, the hostname without its case."""
    return str(machine.get("hostname", "")).lower(), str(machine.get("ip", ""))


def schedule_error(master: Master, windows: list[Json]) -> str | None:
    """Return why a schedule is not valid, or None (``maintenance.cpp``, validation)."""
    seen: set[tuple[str, str]] = set()
    for window in windows:
        problem = machines_error(window.get("machine_ids", []))
        if problem is not None:
            return problem
        if "start" not in window.get("unavailability", {}):
            return "Maintenance window lacks 'unavailability.start'"
        if window["unavailability"].get("duration", {}).get("nanoseconds", 0) < 0:
            return "Unavailability 'duration' is negative"
        for machine in window["machine_ids"]:
            if machine_key(machine) in seen:
                return f"Machine '{_named(machine)}' appears more than once in the schedule"
            seen.add(machine_key(machine))
    for hostname, ip in sorted(master.state.down_machines - seen):
        return (
            f"Machine '{_named({'hostname': hostname, 'ip': ip})}' is deactivated and cannot be"
            " removed from the schedule"
        )
    return None


def machines_error(machines: list[Json]) -> str | None:
    """Return why a list of machines is not valid, or None."""
    if not machines:
        return "List of machines is empty"
    if any(machine_key(machine) == ("", "") for machine in machines):
        return "Both 'hostname' and 'ip' for a machine are empty"
    return None


def _named(machine: Json) -> str:
    return json.dumps(machine, separators=(",", ":"))


def _scheduled(windows: list[Json]) -> dict[tuple[str, str], Json]:
    return {
        machine_key(machine): dict(window["unavailability"])
        for window in windows
        for machine in window.get("machine_ids", [])
    }


def set_schedule(master: Master, windows: list[Json], now: float) -> None:
    """Replace the schedule: what is offered of its machines, old and new, is offered anew."""
    state = master.state
    concerned = set(_scheduled(state.maintenance)) | set(_scheduled(windows))
    state.maintenance = windows
    for agent in state.agents.values():
        if agent.machine not in concerned:
            continue
        agent.unavailability = unavailability(master, agent)
        drop_inverse_offers(master, agent_id=agent.agent_id, tell=True)
        for key in [k for k in state.inverse_answers if k[0] == agent.agent_id]:
            del state.inverse_answers[key]
        # Frameworks are to think again about what they answered (Mesos: updateUnavailability).
        for framework in state.frameworks.values():
            framework.inverse_filters.pop(agent.agent_id, None)
        for offer in list(state.offers.values()):
            if offer.agent_id == agent.agent_id:
                offers.rescind(master, offer)
    master.allocate(now)


def unavailability(master: Master, agent: Agent) -> Json | None:
    """Return when an agent will be away, by the schedule."""
    return _scheduled(master.state.maintenance).get(agent.machine)


def is_down(master: Master, info: Json) -> bool:
    """Say whether the machine of an AgentInfo is down for maintenance: no agent is let in."""
    return machine_key(info) in master.state.down_machines


def start(master: Master, machines: list[Json], now: float) -> str | None:
    """Take machines of the schedule down; return why that cannot be, or None.

    Their agents are shut down and their tasks are lost: TASK_LOST to everybody, PARTITION_AWARE
    or not (``http.cpp``, _startMaintenance(): the agent is removed as one that unregisters).
    """
    scheduled = _scheduled(master.state.maintenance)
    problem = machines_error(machines)
    for machine in machines:
        if problem is None and machine_key(machine) not in scheduled:
            problem = f"Machine '{_named(machine)}' is not part of a maintenance schedule"
        if problem is None and machine_key(machine) in master.state.down_machines:
            problem = (
                f"Machine '{_named(machine)}' is not in DRAINING mode and cannot be brought down"
            )
    if problem is not None:
        return problem
    keys = {machine_key(machine) for machine in machines}
    master.state.down_machines |= keys
    for agent in list(master.state.agents.values()):
        if agent.machine in keys:
            master.send_to_agent(agent, messages.ShutdownAgent(_DOWN))
            membership.remove(master, agent, membership.removed(agent, _DOWN), now)
    return None


def stop(master: Master, machines: list[Json]) -> str | None:
    """End the maintenance of machines that are down; return why that cannot be, or None.

    They leave the schedule. Their agents are started by whoever runs them.
    """
    state = master.state
    scheduled = _scheduled(state.maintenance)
    problem = machines_error(machines)
    for machine in machines:
        if problem is None and machine_key(machine) not in scheduled:
            problem = f"Machine '{_named(machine)}' is not part of a maintenance schedule"
        if problem is None and machine_key(machine) not in state.down_machines:
            problem = f"Machine '{_named(machine)}' is not in DOWN mode and cannot be brought up"
    if problem is not None:
        return problem
    keys = {machine_key(machine) for machine in machines}
    state.down_machines -= keys
    left = []
    for window in state.maintenance:
        kept = [one for one in window["machine_ids"] if machine_key(one) not in keys]
        if kept:
            left.append({**window, "machine_ids": kept})
    state.maintenance = left
    return None


def send_inverse_offers(master: Master, now: float) -> None:
    """Ask frameworks with tasks on agents that will be away to leave."""
    for agent in master.state.agents.values():
        if agent.unavailability is None or agent.disconnected:
            continue
        for framework in master.state.frameworks.values():
            if framework.connected and _is_to_ask(master, framework, agent, now):
                _ask(master, framework, agent)


def _is_to_ask(master: Master, framework: Framework, agent: Agent, now: float) -> bool:
    if now < framework.inverse_filters.get(agent.agent_id, 0):
        return False
    asked = any(
        one.agent_id == agent.agent_id and one.framework_id == framework.framework_id
        for one in master.state.inverse_offers.values()
    )
    return not asked and any(
        task.agent_id == agent.agent_id and not task.terminal for task in framework.tasks.values()
    )


def _ask(master: Master, framework: Framework, agent: Agent) -> None:
    offer = InverseOffer(offers.next_offer_id(master), framework.framework_id, agent.agent_id)
    master.state.inverse_offers[offer.offer_id] = offer
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
    if seconds < 0:
        seconds = _DEFAULT_REFUSE_SECONDS
    for offer_id in offer_ids:
        offer = master.state.inverse_offers.get(offer_id)
        if offer is None or offer.framework_id != framework.framework_id:
            continue
        del master.state.inverse_offers[offer_id]
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
