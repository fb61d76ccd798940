"""Maintenance: the schedule, and machines that go down and come up. Pure.

Called by ``operator_calls``. Facts: the recordings; beyond them, Mesos' ``http.cpp`` and
``maintenance.cpp``.
"""

from __future__ import annotations

import json
from typing import Any

from embedded_mesos import messages
from embedded_mesos.master import inverse_offers, membership, offers
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import machine_key, scheduled

Json = dict[str, Any]

_DOWN = "Operator initiated 'Machine DOWN'"


def schedule_error(desk: Desk, windows: list[Json]) -> str | None:
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
    for hostname, ip in sorted(desk.state.down_machines - seen):
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


def _change_error(desk: Desk, machines: list[Json], *, down: bool) -> str | None:
    """Return why machines, which are to be ``down`` now, cannot be changed, or None."""
    mode, way = ("DOWN", "up") if down else ("DRAINING", "down")
    problem = machines_error(machines)
    for machine in machines:
        if problem is None and machine_key(machine) not in scheduled(desk.state.maintenance):
            problem = f"Machine '{_named(machine)}' is not part of a maintenance schedule"
        if problem is None and (machine_key(machine) in desk.state.down_machines) is not down:
            problem = (
                f"Machine '{_named(machine)}' is not in {mode} mode and cannot be brought {way}"
            )
    return problem


def _named(machine: Json) -> str:
    return json.dumps(machine, separators=(",", ":"))


def set_schedule(desk: Desk, windows: list[Json], now: float) -> None:
    """Replace the schedule: what is offered of its machines, old and new, is offered anew."""
    state = desk.state
    concerned = set(scheduled(state.maintenance)) | set(scheduled(windows))
    state.maintenance = windows
    for agent in state.agents.values():
        if agent.machine not in concerned:
            continue
        agent.unavailability = state.unavailability(agent)
        inverse_offers.drop(desk, agent_id=agent.agent_id, tell=True)
        for key in [k for k in state.inverse_answers if k[0] == agent.agent_id]:
            del state.inverse_answers[key]
        # Frameworks are to think again about what they answered (Mesos: updateUnavailability).
        for framework in state.frameworks.values():
            framework.inverse_filters.pop(agent.agent_id, None)
        offers.rescind_all(desk, agent.agent_id)
    offers.allocate(desk, now)


def start(desk: Desk, machines: list[Json], now: float) -> str | None:
    """Take machines of the schedule down; return why that cannot be, or None.

    Their agents are shut down and their tasks are lost: TASK_LOST to everybody, PARTITION_AWARE
    or not (``http.cpp``, _startMaintenance(): the agent is removed as one that unregisters).
    """
    problem = _change_error(desk, machines, down=False)
    if problem is not None:
        return problem
    keys = {machine_key(machine) for machine in machines}
    desk.state.down_machines |= keys
    for agent in list(desk.state.agents.values()):
        if agent.machine in keys:
            desk.send_to_agent(agent, messages.ShutdownAgent(_DOWN))
            membership.remove(desk, agent, membership.removed(agent, _DOWN), now)
    return None


def stop(desk: Desk, machines: list[Json]) -> str | None:
    """End the maintenance of machines that are down; return why that cannot be, or None.

    They leave the schedule. Their operator starts their agents.
    """
    state = desk.state
    problem = _change_error(desk, machines, down=True)
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
