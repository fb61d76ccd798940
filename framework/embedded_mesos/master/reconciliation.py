"""The master's answers to RECONCILE, and to KILL of an unknown task.

Called by ``scheduler_calls``. The cases are those of Mesos (``master.cpp``, reconcileTasks).
"""

from __future__ import annotations

from typing import Any

from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import Framework, Task, last_details, nanoseconds

Json = dict[str, Any]

_REASON = "REASON_RECONCILIATION"


def reconcile(
    desk: Desk, framework: Framework, wanted: list[tuple[str, str | None]], now: float
) -> None:
    """Answer for each (task id, agent id); for all that is known when ``wanted`` is empty."""
    if not wanted:
        for task in list(framework.tasks.values()):
            _answer_known(desk, framework, task, now)
        return
    for task_id, agent_id in wanted:
        answer(desk, framework, task_id, agent_id, now)


def answer(
    desk: Desk, framework: Framework, task_id: str, agent_id: str | None, now: float
) -> None:
    """Answer for one task."""
    state = desk.state
    known = framework.tasks.get(task_id)
    if known is not None and agent_id in (None, known.agent_id):
        _answer_known(desk, framework, known, now)
        return
    if known is None and state.may_come_back(agent_id, now):
        # Its agent may still come back and tell: silence, as in Mesos.
        return
    unreachable = framework.unreachable_tasks.get(task_id)
    if agent_id is None and unreachable is not None:
        agent_id = unreachable.agent_id
    found, text, since = "TASK_UNKNOWN", "Task is unknown", None
    if agent_id in state.agents:
        found, text = "TASK_GONE", "Task is unknown to the agent"
    elif agent_id in state.unreachable_agents:
        found, text = "TASK_UNREACHABLE", "Task is unreachable"
        since = state.unreachable_agents[agent_id]
    elif agent_id in state.gone_agents:
        found, text = "TASK_GONE_BY_OPERATOR", "Task is gone"
    desk.update_from_master(
        framework,
        task_id,
        found if framework.capable("PARTITION_AWARE") else "TASK_LOST",
        agent_id=agent_id,
        reason=_REASON,
        message=f"Reconciliation: {text}",
        now=now,
        more={} if since is None else {"unreachable_time": nanoseconds(since)},
    )


def _answer_known(desk: Desk, framework: Framework, task: Task, now: float) -> None:
    desk.update_from_master(
        framework,
        task.task_id,
        task.status_update_state,
        agent_id=task.agent_id,
        reason=_REASON,
        message="Reconciliation: Latest task state",
        now=now,
        more=last_details(task),
    )
