"""The agent's ``/state``: the same keys as Mesos' agent. Pure."""

from __future__ import annotations

from typing import Any

from embedded_mesos.agent.agent import Agent
from embedded_mesos.agent.containers import Container
from embedded_mesos.resources import Resources
from embedded_mesos.shared_views import (
    AGENT_CAPABILITIES,
    attributes,
    reserved,
    scalars,
    status_summary,
    version,
)

Json = dict[str, Any]


def state(agent: Agent, master: str) -> Json:
    """Return the body of ``/state``."""
    total = Resources.parse(agent.total or agent.identity.info["offered_resources"])
    unreserved = total.filter([])
    containers = agent.containerizer.containers.values()
    held = (one.resources.allocated_to(None) for one in containers if not one.terminal)
    used = sum(held, Resources())
    live = {one.framework_id for one in containers}
    completed = {one.framework_id for one in agent.containerizer.completed}
    return {
        **version(),
        "start_time": agent.started_at,
        "id": agent.agent_id or "",
        "pid": agent.identity.pid,
        "hostname": agent.identity.hostname,
        "capabilities": AGENT_CAPABILITIES,
        "resources": scalars(total),
        "reserved_resources": reserved(total),
        "unreserved_resources": scalars(unreserved),
        "reserved_resources_full": {},
        "unreserved_resources_full": unreserved.to_json(refined=False),
        "reserved_resources_allocated": {},
        "unreserved_resources_allocated": scalars(used),
        "resource_providers": [],
        "attributes": attributes(agent.identity.info["attributes"]),
        "master_hostname": master.partition(":")[0],
        "frameworks": [_framework(agent, one) for one in sorted(live)],
        "completed_frameworks": [_framework(agent, one) for one in sorted(completed - live)],
    }


def sandboxes(agent: Agent) -> dict[str, str]:
    """Return the directory of each sandbox by the name that ``/files/debug`` gives it."""
    return {
        f"/frameworks/{one.framework_id}/executors/{one.executor_id}"
        f"/runs/{one.parent or one.container_id}": one.sandbox
        for one in (*agent.containerizer.completed, *agent.containerizer.containers.values())
    }


def sandboxes_of_tasks(agent: Agent) -> Json:
    """Return who an agent is and the sandbox of each of its tasks, for the cluster's page."""
    held = agent.containerizer
    return {
        "link": agent.identity.link,
        "id": agent.agent_id or "",
        "hostname": agent.identity.hostname,
        "address": agent.identity.ip,
        "is_there": not agent.left,
        "sandboxes": {
            one.task_id: one.sandbox for one in (*held.completed, *held.containers.values())
        },
    }


def _framework(agent: Agent, framework_id: str) -> Json:
    info = agent.containerizer.frameworks[framework_id]
    found: Json = {
        "id": framework_id,
        "name": info["name"],
        "user": info["user"],
        "failover_timeout": float(info.get("failover_timeout", 0.0)),
        "checkpoint": bool(info.get("checkpoint", False)),
        "hostname": info.get("hostname", ""),
    }
    if "roles" in info:
        found["roles"] = info["roles"]
    else:
        found["role"] = info.get("role", "*")
    found["executors"] = [
        _executor(one)
        for one in agent.containerizer.containers.values()
        if one.framework_id == framework_id
    ]
    found["completed_executors"] = [
        _executor(one) for one in agent.containerizer.completed if one.framework_id == framework_id
    ]
    return found


def _executor(container: Container) -> Json:
    task = container.task
    # Mesos cuts the command after fifteen characters here.
    command = task.get("command", {}).get("value", "")
    shown = command if len(command) <= 15 else f"{command[:12]}..."
    text = f"sh -c '{shown}'" if task.get("command", {}).get("shell", True) else shown
    found: Json = {
        "id": container.executor_id,
        "name": f"Command Executor (Task: {container.task_id}) (Command: {text})",
        "source": container.task_id,
        "container": container.parent or container.container_id,
        "directory": container.sandbox,
        "resources": scalars(container.resources),
        "role": next(iter(container.resources.roles())) or "*",
        "tasks": [],
        "queued_tasks": [],
        "completed_tasks": [],
    }
    if "labels" in task:
        found["labels"] = task["labels"].get("labels", [])
    if container.terminal:
        found["completed_tasks"] = [_task(container)]
    elif container.statuses:
        found["tasks"] = [_task(container)]
    else:
        found["queued_tasks"] = [_task(container)]
    return found


def _task(container: Container) -> Json:
    task = container.task
    found: Json = {
        "id": container.task_id,
        "name": task["name"],
        "framework_id": container.framework_id,
        "executor_id": "" if container.parent is None else container.executor_id,
        "slave_id": task["agent_id"]["value"],
        "state": container.state,
        "resources": scalars(container.resources),
        "role": next(iter(container.resources.roles())) or "*",
        "statuses": [status_summary(status) for status in container.statuses],
    }
    if "labels" in task:
        found["labels"] = task["labels"].get("labels", [])
    if "discovery" in task:
        found["discovery"] = task["discovery"]
    return found
