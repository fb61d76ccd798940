"""The bodies of the GET_* calls of ``/api/v1``. Pure; called by ``operator_calls``.

The keys and kinds of values are those of Mesos 1.12 (the recordings).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import Framework, RegisteredAgent, Task, machine_key, nanoseconds
from embedded_mesos.resources import Resources
from embedded_mesos.shared_views import AGENT_CAPABILITIES, MESOS_VERSION

Json = dict[str, Any]


def get_agents(desk: Desk) -> Json:
    """Return the body of GET_AGENTS."""
    agents = [_agent_v1(desk, agent) for agent in desk.state.agents.values()]
    return {"agents": agents, "recovered_agents": []}


def _agent_v1(desk: Desk, agent: RegisteredAgent) -> Json:
    shown = ("hostname", "port", "resources", "attributes", "checkpoint", "domain")
    info: Json = {name: agent.info[name] for name in shown if name in agent.info}
    info["id"] = {"value": agent.agent_id}
    found: Json = {
        "agent_info": info,
        "active": agent.active,
        "deactivated": agent.restriction.deactivated,
        "version": MESOS_VERSION,
        "pid": agent_pid(agent),
        "registered_time": nanoseconds(agent.registered_at),
        "total_resources": agent.total.to_json(refined=False),
        "capabilities": [{"type": name} for name in AGENT_CAPABILITIES],
    }
    if agent.reregistered_at is not None:
        found["reregistered_time"] = nanoseconds(agent.reregistered_at)
    allocated = desk.state.used(agent.agent_id)
    if allocated:
        found["allocated_resources"] = allocated.to_json(refined=False)
    offered = desk.state.offered(agent.agent_id)
    if offered:
        found["offered_resources"] = offered.to_json(refined=False)
    drain = agent.restriction.drain
    if drain is not None:
        found["drain_info"] = drain
        started_at = int(agent.restriction.drain_started_at)
        found["estimated_drain_start_time"] = nanoseconds(started_at)
    return found


def get_frameworks(desk: Desk) -> Json:
    """Return the body of GET_FRAMEWORKS."""
    state = desk.state
    return {
        "frameworks": [_framework_v1(one) for one in state.frameworks.values()],
        "completed_frameworks": [
            {**_framework_v1(one), "unregistered_time": nanoseconds(one.unregistered_at)}
            for one in state.completed_frameworks.values()
        ],
    }


def _framework_v1(framework: Framework) -> Json:
    info = {**framework.info, "failover_timeout": framework.failover_timeout}
    info.setdefault("checkpoint", False)
    return {
        "framework_info": info,
        "active": framework.connected,
        "connected": framework.connected,
        "recovered": framework.recovered,
        "registered_time": nanoseconds(framework.registered_at),
        "reregistered_time": nanoseconds(framework.reregistered_at),
        "offer_constraints": framework.constraints,
    }


def get_tasks(desk: Desk) -> Json:
    """Return the body of GET_TASKS."""
    frameworks = [
        *desk.state.frameworks.values(),
        *desk.state.completed_frameworks.values(),
    ]
    return {
        "tasks": [_task_v1(t) for f in frameworks for t in f.tasks.values()],
        "unreachable_tasks": [
            _task_v1(t) for f in frameworks for t in f.unreachable_tasks.values()
        ],
        "completed_tasks": [_task_v1(t) for f in frameworks for t in f.completed_tasks],
    }


def _task_v1(task: Task) -> Json:
    found: Json = {
        "name": task.info["name"],
        "task_id": task.info["task_id"],
        "framework_id": {"value": task.framework_id},
        "agent_id": {"value": task.agent_id},
        "state": "TASK_UNREACHABLE" if task.unreachable else task.state,
        "resources": task.resources.to_json(),
        "statuses": task.statuses,
    }
    if not task.statuses:
        del found["statuses"]
    if task.executor_id is not None:
        found["executor_id"] = {"value": task.executor_id}
    if task.status_update_uuid is not None:
        found["status_update_state"] = task.status_update_state
        found["status_update_uuid"] = task.status_update_uuid
    for name in ("labels", "discovery", "container", "health_check", "check", "kill_policy"):
        if name in task.info:
            found[name] = task.info[name]
    return found


def get_roles(desk: Desk) -> Json:
    """Return the body of GET_ROLES."""
    roles = []
    for role in role_names(desk):
        held = allocated_to_role(desk, role) + offered_to_role(desk, role)
        one: Json = {"name": role, "weight": 1.0}
        if held:
            # Quantities: what is no number, ports, is left out.
            one["resources"] = [
                {"name": name, "type": "SCALAR", "scalar": {"value": held.scalar(name)}}
                for name in ("cpus", "disk", "gpus", "mem")
                if held.thousandths(name)
            ]
        frameworks = frameworks_in(desk, role)
        if frameworks:
            one["frameworks"] = [{"value": framework_id} for framework_id in frameworks]
        roles.append(one)
    return {"roles": roles}


def get_maintenance_status(desk: Desk) -> Json:
    """Return the body of GET_MAINTENANCE_STATUS."""
    state = desk.state
    draining: list[Json] = []
    down: list[Json] = []
    for machine in (m for w in state.maintenance for m in w.get("machine_ids", [])):
        key = machine_key(machine)
        if key in state.down_machines:
            down.append(machine)
            continue
        statuses = [
            answer
            for (agent_id, _), answer in state.inverse_answers.items()
            if agent_id in state.agents and state.agents[agent_id].machine == key
        ]
        draining.append({"id": machine, "statuses": statuses} if statuses else {"id": machine})
    status: Json = {}
    if draining:
        status["draining_machines"] = draining
    if down:
        status["down_machines"] = down
    return {"status": status}


def get_state(desk: Desk) -> Json:
    """Return the body of GET_STATE."""
    return {
        "get_tasks": get_tasks(desk),
        "get_executors": {},
        "get_frameworks": get_frameworks(desk),
        "get_agents": get_agents(desk),
    }


def role_names(desk: Desk) -> list[str]:
    """Return every role that a framework or a quota names."""
    names = {role for one in desk.state.frameworks.values() for role in one.roles}
    return sorted(names | set(desk.state.quotas))


def frameworks_in(desk: Desk, role: str) -> list[str]:
    """Return the ids of the frameworks in a role."""
    known = desk.state.frameworks.values()
    return [framework.framework_id for framework in known if role in framework.roles]


def _of_role(parts: Iterable[Resources], role: str) -> Resources:
    return Resources({k: v for k, v in sum(parts, Resources()) if k.allocated == role})


def allocated_to_role(desk: Desk, role: str) -> Resources:
    """Return what tasks of a role hold."""
    return _of_role(map(desk.state.used, desk.state.agents), role)


def offered_to_role(desk: Desk, role: str) -> Resources:
    """Return what is on offer to a role."""
    return _of_role(map(desk.state.offered, desk.state.agents), role)


def agent_pid(agent: RegisteredAgent) -> str:
    """Return the libprocess id that Mesos shows."""
    return f"slave(1)@{agent.info['ip']}:{agent.info['port']}"
