"""Agents come and go: registration, pings, loss, and the end of their tasks.

Called by ``master``, by ``operator_calls`` (MARK_AGENT_GONE), by ``maintenance`` (a machine goes
down) and by ``draining`` (an empty agent is gone for ever). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from embedded_mesos import messages
from embedded_mesos.master import inverse_offers, offers
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import (
    Framework,
    RegisteredAgent,
    Restriction,
    Task,
    last_details,
    machine_key,
    nanoseconds,
)
from embedded_mesos.resources import Resources

Json = dict[str, Any]


@dataclass(frozen=True)
class Loss:
    """How tasks are lost: the state for frameworks that are PARTITION_AWARE, reason, message."""

    state: str
    reason: str
    message: str


_UNREACHABLE = Loss("TASK_UNREACHABLE", "REASON_AGENT_REMOVED", "health check timed out")
_GONE = Loss(
    "TASK_GONE_BY_OPERATOR", "REASON_AGENT_REMOVED_BY_OPERATOR", "Agent has been marked gone"
)


def removed(agent: RegisteredAgent, why: str) -> Loss:
    """Return what an agent that leaves in order does to its tasks."""
    return Loss("TASK_LOST", "REASON_AGENT_REMOVED", f"Agent {agent.hostname} removed: {why}")


def register(
    desk: Desk, link: int, message: messages.RegisterAgent, now: float
) -> RegisteredAgent | None:
    """Take an agent in: a new one, one that comes back, or one that lost its connection.

    Returns None for one that may not come: it is told to leave.
    """
    state = desk.state
    agent_id = message.agent_id
    if agent_id is not None and agent_id in state.gone_agents:
        refusal = messages.ShutdownAgent("Agent has been marked gone")
        desk.send_to_link(link, refusal)
        return None
    if machine_key(message.info) in state.down_machines:
        desk.send_to_link(link, messages.ShutdownAgent("Machine is DOWN"))
        return None
    if agent_id is None:
        before = state.agent_at(link)
        if before is not None:
            # A machine that was set up anew while its old agent was still waited for.
            remove(desk, before, removed(before, "a new agent registered at the same address"), now)
        agent_id = state.new_agent_id()
    agent = state.agents.get(agent_id)
    if agent is None:
        agent = _admit(desk, agent_id, link, message, now)
    agent.unanswered_pings = 0
    agent.disconnected = False
    agent.next_ping = now + desk.timing.agent_ping
    desk.send_to_agent(agent, messages.AgentRegistered(agent_id))
    _reregister_tasks(desk, agent, message, now)
    state.unreachable_agents.pop(agent_id, None)
    state.recovering.discard(agent_id)
    return agent


def _admit(
    desk: Desk, agent_id: str, link: int, message: messages.RegisterAgent, now: float
) -> RegisteredAgent:
    total = message.total if message.total is not None else message.info["offered_resources"]
    info = {k: v for k, v in message.info.items() if k != "offered_resources"}
    agent = RegisteredAgent(
        agent_id=agent_id,
        link=link,
        info=info,
        total=Resources.parse(total),
        registered_at=now,
        reregistered_at=None if message.agent_id is None else now,
        restriction=desk.state.restrictions.get(agent_id, Restriction()),
    )
    agent.unavailability = desk.state.unavailability(agent)
    desk.state.agents[agent_id] = agent
    return agent


def _reregister_tasks(
    desk: Desk, agent: RegisteredAgent, message: messages.RegisterAgent, now: float
) -> None:
    for known in message.frameworks:
        _recover_framework(desk, known, now)
    told = set()
    for entry in message.tasks:
        framework = desk.state.frameworks.get(entry["framework_id"])
        task_id = entry["info"]["task_id"]["value"]
        if framework is None:
            # Its framework was removed while the agent was away (Mesos shuts it down too).
            gone = messages.ShutdownFramework(entry["framework_id"])
            desk.send_to_agent(agent, gone)
            continue
        told.add((framework.framework_id, task_id))
        if task_id in framework.tasks:
            framework.tasks[task_id].state = entry["state"]
            continue
        _readmit_task(desk, framework, agent, entry, now)
    # What the agent does not know any more never ran there, or ended unseen.
    for framework, task in desk.state.tasks_on(agent.agent_id):
        if (framework.framework_id, task.task_id) not in told:
            loss = Loss(
                "TASK_DROPPED" if task.state == "TASK_STAGING" else "TASK_GONE",
                "REASON_RECONCILIATION",
                "Reconciliation: Task is unknown to the agent",
            )
            lose_task(desk, framework, task, loss, now)


def _readmit_task(
    desk: Desk, framework: Framework, agent: RegisteredAgent, entry: Json, now: float
) -> None:
    info = entry["info"]
    task_id = info["task_id"]["value"]
    task = framework.unreachable_tasks.pop(task_id, None)
    came_back = task is not None
    if task is None:
        task = Task(
            info=info,
            framework_id=framework.framework_id,
            agent_id=agent.agent_id,
            resources=Resources.parse(info["resources"]),
            executor_id=entry.get("group_executor_id"),
        )
    task.unreachable_time = None
    task.state = entry["state"]
    if entry.get("status") is not None:
        task.status_update_state = entry["status"]["state"]
        task.status_update_uuid = entry["status"].get("uuid")
        task.statuses = [*task.statuses[-9:], entry["status"]]
    framework.tasks[task_id] = task
    if entry.get("executor") is not None:
        key = (framework.framework_id, entry["group_executor_id"])
        agent.executors[key] = Resources.parse(entry["executor"]["resources"])
    if came_back and not task.terminal:
        desk.update_from_master(
            framework,
            task_id,
            task.status_update_state,
            agent_id=agent.agent_id,
            reason="REASON_AGENT_REREGISTERED",
            message="Unreachable agent re-reregistered",
            now=now,
            more=last_details(task),
        )


def _recover_framework(desk: Desk, known: Json, now: float) -> None:
    framework_id = known["id"]["value"]
    state = desk.state
    if framework_id in state.frameworks or framework_id in state.completed_frameworks:
        return
    framework = Framework(
        framework_id=framework_id,
        info=known,
        stream_id=None,
        registered_at=now,
        reregistered_at=now,
        recovered=True,
    )
    # A recovered framework has its whole failover timeout to come back.
    framework.failover_deadline = now + framework.failover_timeout
    state.frameworks[framework_id] = framework


def ping(desk: Desk, agent: RegisteredAgent, now: float) -> None:
    """Ask whether an agent is there; one that was silent too often is unreachable."""
    if agent.unanswered_pings >= desk.timing.agent_ping_timeouts:
        desk.state.unreachable_agents[agent.agent_id] = now
        remove(desk, agent, _UNREACHABLE, now)
        return
    agent.unanswered_pings += 1
    agent.next_ping = now + desk.timing.agent_ping
    desk.send_to_agent(agent, messages.Ping())


def remove(desk: Desk, agent: RegisteredAgent, loss: Loss, now: float) -> None:
    """Take an agent out: updates for its tasks, RESCINDs, FAILURE."""
    del desk.state.agents[agent.agent_id]
    for framework in desk.state.frameworks.values():
        # Those too that have ended and whose end was not acknowledged: no agent tells of it now.
        for task in list(framework.tasks.values()):
            if task.agent_id == agent.agent_id:
                lose_task(desk, framework, task, loss, now)
    offers.rescind_all(desk, agent.agent_id)
    inverse_offers.drop(desk, agent_id=agent.agent_id, tell=True)
    for framework in desk.state.frameworks.values():
        failure = {"agent_id": {"value": agent.agent_id}}
        desk.send_event(framework, {"type": "FAILURE", "failure": failure})


def lose_task(desk: Desk, framework: Framework, task: Task, loss: Loss, now: float) -> None:
    """Tell a framework that a task is lost, and to what."""
    sent = loss.state if framework.capable("PARTITION_AWARE") else "TASK_LOST"
    more: Json = {}
    if loss.state == "TASK_UNREACHABLE":
        task.unreachable_time = now
        more["unreachable_time"] = nanoseconds(now)
        framework.tasks.pop(task.task_id, None)
        framework.unreachable_tasks[task.task_id] = task
    else:
        task.state = loss.state
        desk.complete_task(framework, task)
    desk.update_from_master(
        framework,
        task.task_id,
        sent,
        agent_id=task.agent_id,
        reason=loss.reason,
        message=loss.message,
        now=now,
        more=more,
    )


# -- orders of the operator --------------------------------------------------------------------


def mark_gone(desk: Desk, agent_id: str, now: float) -> None:
    """Take an agent out for ever: it is told to shut down whenever it asks to come back."""
    state = desk.state
    state.gone_agents[agent_id] = now
    state.unreachable_agents.pop(agent_id, None)
    state.restrictions.pop(agent_id, None)
    state.recovering.discard(agent_id)
    agent = state.agents.get(agent_id)
    if agent is not None:
        desk.send_to_agent(agent, messages.ShutdownAgent(_GONE.message))
        remove(desk, agent, _GONE, now)
    for framework in state.frameworks.values():
        for task in list(framework.unreachable_tasks.values()):
            if task.agent_id == agent_id:
                task.unreachable_time = None
                lose_task(desk, framework, task, _GONE, now)
