"""Draining an agent, taking it out of offers, and back: orders of an operator. Pure.

Called by ``operator_calls``; by ``master`` for an agent that was away when the order came, and by
it and ``updates`` whenever an agent may have become empty. Facts: ``master.cpp`` and ``http.cpp``,
drainAgent(), deactivateAgent(), reactivateAgent(), and the recordings.
"""

from __future__ import annotations

from typing import Any

from embedded_mesos import messages
from embedded_mesos.master import membership, offers
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import RegisteredAgent, Restriction, nanoseconds

Json = dict[str, Any]


def _restriction(desk: Desk, agent_id: str) -> Restriction:
    restriction = desk.state.restrictions.setdefault(agent_id, Restriction())
    agent = desk.state.agents.get(agent_id)
    if agent is not None:
        agent.restriction = restriction
    return restriction


def deactivate(desk: Desk, agent_id: str) -> None:
    """Offer nothing of an agent any more; its tasks run on. It may be away."""
    _restriction(desk, agent_id).deactivated = True
    offers.rescind_all(desk, agent_id)


def drain(
    desk: Desk, agent_id: str, max_grace_seconds: float | None, gone: bool, now: float
) -> None:
    """End an agent's tasks and keep it empty, at once or when it comes back.

    ``max_grace_seconds`` bounds the grace of every task; None leaves it to the tasks. ``gone``
    marks the agent gone once it is empty.
    """
    config: Json = {"mark_gone": gone}
    if max_grace_seconds is not None:
        config["max_grace_period"] = nanoseconds(max_grace_seconds)
    restriction = _restriction(desk, agent_id)
    restriction.drain = {"state": "DRAINING", "config": config}
    restriction.drain_started_at = now
    deactivate(desk, agent_id)
    agent = desk.state.agents.get(agent_id)
    if agent is not None:
        tell(desk, agent)
        check_drained(desk, agent, now)


def tell(desk: Desk, agent: RegisteredAgent) -> None:
    """Tell an agent that is to be drained to end its tasks; again, when it comes back."""
    drain_info = agent.restriction.drain
    if drain_info is None or drain_info["state"] != "DRAINING":
        return
    config = drain_info["config"]
    grace = config.get("max_grace_period", {}).get("nanoseconds")
    for framework in desk.state.frameworks.values():
        for task in framework.tasks.values():
            if task.agent_id == agent.agent_id:
                message = messages.KillTask(
                    framework.framework_id,
                    task.task_id,
                    max_grace_seconds=None if grace is None else grace / 1e9,
                    draining=True,
                    mark_gone=config["mark_gone"],
                )
                desk.send_to_agent(agent, message)


def check_drained(desk: Desk, agent: RegisteredAgent, now: float) -> None:
    """Note that a draining agent is empty: every task has ended and is acknowledged."""
    drain_info = agent.restriction.drain
    if drain_info is None or drain_info["state"] != "DRAINING":
        return
    if agent.disconnected or agent.agent_id not in desk.state.agents:
        return
    for framework in desk.state.frameworks.values():
        if any(task.agent_id == agent.agent_id for task in framework.tasks.values()):
            return
    agent.restriction.drain = {**drain_info, "state": "DRAINED"}
    if drain_info["config"]["mark_gone"]:
        membership.mark_gone(desk, agent.agent_id, now)


def reactivate(desk: Desk, agent_id: str, now: float) -> str | None:
    """Offer an agent again; return why that cannot be, or None."""
    restriction = _restriction(desk, agent_id)
    if restriction.drain is not None and restriction.drain["state"] == "DRAINING":
        return "Agent is still in the DRAINING state"
    restriction.deactivated = False
    restriction.drain = None
    offers.allocate(desk, now)
    return None
