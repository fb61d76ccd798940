"""The master's ``/state`` and its like. Pure; called by ``operator_calls``.

The keys and kinds of values are those of Mesos 1.12 (the recordings).
"""

from __future__ import annotations

import os
from typing import Any

from embedded_mesos.master.calls.operator_v1_views import (
    agent_pid,
    allocated_to_role,
    frameworks_in,
    offered_to_role,
    role_names,
)
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import Framework, Offer, RegisteredAgent, Task
from embedded_mesos.resources import Resources
from embedded_mesos.shared_views import (
    AGENT_CAPABILITIES,
    MESOS_VERSION,
    attributes,
    reserved,
    scalars,
    status_summary,
    version,
)

Json = dict[str, Any]


def state(desk: Desk) -> Json:
    """Return the body of ``/state``."""
    agents = desk.state.agents.values()
    leader = {
        "id": desk.state.master_id,
        "pid": desk.address.pid,
        "port": desk.address.port,
        "hostname": desk.address.hostname,
    }
    return {
        **version(),
        "start_time": desk.started_at,
        "elected_time": desk.started_at,
        "id": desk.state.master_id,
        "pid": desk.address.pid,
        "hostname": desk.address.hostname,
        "capabilities": ["AGENT_UPDATE", "AGENT_DRAINING", "QUOTA_V2"],
        "activated_slaves": float(sum(not one.restriction.deactivated for one in agents)),
        "deactivated_slaves": float(sum(one.restriction.deactivated for one in agents)),
        "unreachable_slaves": float(len(desk.state.unreachable_agents)),
        "leader": desk.address.pid,
        "leader_info": leader,
        "cluster": "local",
        "slaves": [_slave(desk, agent) for agent in agents],
        "recovered_slaves": [],
        **{k: v for k, v in frameworks(desk).items() if k != "unregistered_frameworks"},
        "orphan_tasks": [],
        "unregistered_frameworks": [],
    }


def state_summary(desk: Desk) -> Json:
    """Return the body of ``/state-summary``."""
    return {
        "hostname": desk.address.hostname,
        "cluster": "local",
        "slaves": [
            {**_slave(desk, agent), **_counts(_tasks_on(desk, agent))}
            for agent in desk.state.agents.values()
        ],
        "frameworks": [
            {
                **{
                    k: v
                    for k, v in _framework(desk, framework).items()
                    if k not in ("tasks", "unreachable_tasks", "completed_tasks", "offers")
                },
                **_counts([*framework.tasks.values(), *framework.completed_tasks]),
                "slave_ids": sorted({task.agent_id for task in framework.tasks.values()}),
            }
            for framework in desk.state.frameworks.values()
        ],
    }


def slaves(desk: Desk) -> Json:
    """Return the body of ``/slaves``."""
    found = []
    for agent in desk.state.agents.values():
        unreserved = agent.total.filter([])
        used = desk.state.used(agent.agent_id)
        offered = desk.state.offered(agent.agent_id)
        full = {
            role: Resources({k: v for k, v in agent.total if k.reservation_role == role}).to_json(
                refined=False
            )
            for role in reserved(agent.total)
        }
        found.append(
            {
                **_slave(desk, agent),
                "reserved_resources_full": full,
                "unreserved_resources_full": unreserved.to_json(refined=False),
                "used_resources_full": used.to_json(refined=False),
                "offered_resources_full": offered.to_json(refined=False),
            }
        )
    return {"slaves": found, "recovered_slaves": []}


def _slave(desk: Desk, agent: RegisteredAgent) -> Json:
    found: Json = {
        "id": agent.agent_id,
        "hostname": agent.hostname,
        "port": agent.info["port"],
        "attributes": attributes(agent.attributes),
        "pid": agent_pid(agent),
        "registered_time": agent.registered_at,
        "resources": scalars(agent.total),
        "used_resources": scalars(desk.state.used(agent.agent_id)),
        "offered_resources": scalars(desk.state.offered(agent.agent_id)),
        "reserved_resources": reserved(agent.total),
        "unreserved_resources": scalars(agent.total.filter([])),
        "active": agent.active,
        "deactivated": agent.restriction.deactivated,
        "version": MESOS_VERSION,
        "capabilities": AGENT_CAPABILITIES,
    }
    if agent.reregistered_at is not None:
        found["reregistered_time"] = agent.reregistered_at
    if "domain" in agent.info:
        found["domain"] = agent.info["domain"]
    if agent.restriction.drain is not None:
        found["drain_info"] = agent.restriction.drain
        found["estimated_drain_start_time_seconds"] = int(agent.restriction.drain_started_at)
    return found


def frameworks(desk: Desk) -> Json:
    """Return the body of ``/frameworks``."""
    state = desk.state
    return {
        "frameworks": [_framework(desk, one) for one in state.frameworks.values()],
        "completed_frameworks": [
            _framework(desk, one) for one in state.completed_frameworks.values()
        ],
        "unregistered_frameworks": [],
    }


def _framework(desk: Desk, framework: Framework) -> Json:
    info = framework.info
    offers = [
        offer
        for offer in desk.state.offers.values()
        if offer.framework_id == framework.framework_id
    ]
    offered = sum((offer.resources for offer in offers), Resources())
    used = framework.used()
    found: Json = {
        "id": framework.framework_id,
        "name": info["name"],
        "used_resources": scalars(used),
        "offered_resources": scalars(offered),
        "capabilities": [one["type"] for one in info.get("capabilities", []) if "type" in one],
        "hostname": info.get("hostname", ""),
        "webui_url": info.get("webui_url", ""),
        "active": framework.connected,
        "connected": framework.connected,
        "recovered": framework.recovered,
        "user": info["user"],
        "failover_timeout": framework.failover_timeout,
        "checkpoint": bool(info.get("checkpoint", False)),
        "registered_time": framework.registered_at,
        "unregistered_time": framework.unregistered_at,
        "resources": scalars(used + offered),
        "tasks": [_task(task) for task in framework.tasks.values()],
        "unreachable_tasks": [_task(task) for task in framework.unreachable_tasks.values()],
        "completed_tasks": [_task(task) for task in framework.completed_tasks],
        "offers": [_offer(offer) for offer in offers],
        "executors": [],
        "offer_constraints": framework.constraints,
    }
    if framework.reregistered_at != framework.registered_at:
        found["reregistered_time"] = framework.reregistered_at
    if "principal" in info:
        found["principal"] = info["principal"]
    if "labels" in info:
        found["labels"] = info["labels"].get("labels", [])
    if framework.capable("MULTI_ROLE"):
        found["roles"] = framework.roles
    else:
        found["role"] = framework.roles[0]
    return found


def _offer(offer: Offer) -> Json:
    return {
        "id": offer.offer_id,
        "framework_id": offer.framework_id,
        "slave_id": offer.agent_id,
        "allocation_info": {"role": offer.mesos_role},
        "resources": scalars(offer.resources),
    }


def _task(task: Task) -> Json:
    found: Json = {
        "id": task.task_id,
        "name": task.info["name"],
        "framework_id": task.framework_id,
        "executor_id": task.executor_id or "",
        "slave_id": task.agent_id,
        "state": "TASK_UNREACHABLE" if task.unreachable else task.state,
        "resources": scalars(task.resources),
        "role": next(iter(task.resources.roles())) or "*",
        "statuses": [status_summary(status) for status in task.statuses],
    }
    if "labels" in task.info:
        found["labels"] = task.info["labels"].get("labels", [])
    for name in ("discovery", "container", "health_check"):
        if name in task.info:
            found[name] = task.info[name]
    return found


def tasks(desk: Desk, limit: int, offset: int) -> Json:
    """Return the body of ``/tasks``, newest first."""
    known = [*desk.state.frameworks.values(), *desk.state.completed_frameworks.values()]
    found = [
        task
        for framework in known
        for task in (
            *framework.tasks.values(),
            *framework.unreachable_tasks.values(),
            *framework.completed_tasks,
        )
    ]
    return {"tasks": [_task(task) for task in found[::-1][offset : offset + limit]]}


def roles(desk: Desk) -> Json:
    """Return the body of ``/roles``."""
    found = []
    for role in role_names(desk):
        allocated, offered = allocated_to_role(desk, role), offered_to_role(desk, role)
        limits = desk.state.quotas.get(role, {})
        found.append(
            {
                "name": role,
                "weight": 1.0,
                "quota": {
                    "role": role,
                    "guarantee": {},
                    "limit": {name: value / 1000 for name, value in limits.items()},
                    "consumed": _amounts(allocated),
                },
                "resources": _amounts(allocated + offered),
                "allocated": _amounts(allocated),
                "offered": _amounts(offered),
                "reserved": {},
                "frameworks": frameworks_in(desk, role),
            }
        )
    return {"roles": found}


def _amounts(resources: Resources) -> Json:
    return {k: v for k, v in scalars(resources).items() if v} if resources else {}


def _tasks_on(desk: Desk, agent: RegisteredAgent) -> list[Task]:
    return [
        task
        for framework in desk.state.frameworks.values()
        for task in (*framework.tasks.values(), *framework.completed_tasks)
        if task.agent_id == agent.agent_id
    ]


# The order of Mesos' task state enumeration.
_SUMMARY_STATES = (
    "STAGING",
    "STARTING",
    "RUNNING",
    "KILLING",
    "FINISHED",
    "KILLED",
    "FAILED",
    "LOST",
    "ERROR",
    "UNREACHABLE",
)


def _counts(found: list[Task]) -> Json:
    states = [task.state for task in found]
    return {f"TASK_{name}": states.count(f"TASK_{name}") for name in _SUMMARY_STATES}


_COUNTED_STATES = (
    "dropped",
    "error",
    "failed",
    "finished",
    "gone",
    "gone_by_operator",
    "killed",
    "killing",
    "lost",
    "running",
    "staging",
    "starting",
    "unreachable",
)


def metrics(desk: Desk, now: float) -> Json:
    """Return the body of ``/metrics/snapshot``: Mesos' names, those that are counted here."""
    total = sum((agent.total for agent in desk.state.agents.values()), Resources())
    used = sum(map(desk.state.used, desk.state.agents), Resources())
    found: dict[str, float] = {}
    for name in ("cpus", "mem", "disk", "gpus"):
        found[f"master/{name}_total"] = total.scalar(name)
        found[f"master/{name}_used"] = used.scalar(name)
        found[f"master/{name}_percent"] = (
            used.scalar(name) / total.scalar(name) if total.scalar(name) else 0.0
        )
    known = list(desk.state.frameworks.values())
    connected = float(sum(one.connected for one in known))
    found["master/frameworks_active"] = found["master/frameworks_connected"] = connected
    away = float(len(known)) - connected
    found["master/frameworks_inactive"] = found["master/frameworks_disconnected"] = away
    agents = desk.state.agents.values()
    found["master/slaves_active"] = float(sum(one.active for one in agents))
    found["master/slaves_connected"] = float(sum(not one.disconnected for one in agents))
    found["master/slaves_disconnected"] = float(sum(one.disconnected for one in agents))
    found["master/slaves_unreachable"] = float(len(desk.state.unreachable_agents))
    found["master/outstanding_offers"] = float(len(desk.state.offers))
    found["master/elected"] = 1.0
    found["master/uptime_secs"] = now - desk.started_at
    states = [
        task.state
        for framework in [*known, *desk.state.completed_frameworks.values()]
        for task in (*framework.tasks.values(), *framework.completed_tasks)
    ]
    for name in _COUNTED_STATES:
        found[f"master/tasks_{name}"] = float(states.count(f"TASK_{name.upper()}"))
    found.update({name: float(count) for name, count in desk.counters.items()})
    load = os.getloadavg()
    found["system/cpus_total"] = float(os.cpu_count() or 1)
    for name, value in zip(("1min", "5min", "15min"), load, strict=True):
        found[f"system/load_{name}"] = value
    return found
