"""What the master answers to RECONCILE, and to KILL of a task that it does not know.

Called by ``scheduler_calls``. The cases are those of Mesos (``master.cpp``, reconcileTasks).
"""

from __future__ import annotations

from dcos_tensorflow.local.master import Master
from dcos_tensorflow.local.records import Framework, Task, last_details, nanoseconds

_REASON = "REASON_RECONCILIATION"


def reconcile(
    master: Master, framework: Framework, wanted: list[tuple[str, str | None]], now: float
) -> None:
    """Answer for each (task id, agent id); for all that is known when ``wanted`` is empty."""
    if not wanted:
        for task in list(framework.tasks.values()):
            _answer_known(master, framework, task, now)
        return
    for task_id, agent_id in wanted:
        answer(master, framework, task_id, agent_id, now)


def answer(
    master: Master, framework: Framework, task_id: str, agent_id: str | None, now: float
) -> None:
    """Answer for one task."""
    state = master.state
    known = framework.tasks.get(task_id)
    if known is not None and agent_id in (None, known.agent_id):
        _answer_known(master, framework, known, now)
        return
    if known is None and master.recovering(now) and agent_id not in state.agents:
        # Its agent may still come back and tell: silence, as in Mesos.
        return
    unreachable = framework.unreachable_tasks.get(task_id)
    if agent_id is None and unreachable is not None:
        agent_id = unreachable.agent_id
    if agent_id in state.agents:
        _tell(
            master,
            framework,
            task_id,
            agent_id,
            "TASK_GONE",
            "Reconciliation: Task is unknown to the agent",
            now,
        )
    elif agent_id in state.unreachable_agents:
        assert agent_id is not None
        _tell(
            master,
            framework,
            task_id,
            agent_id,
            "TASK_UNREACHABLE",
            "Reconciliation: Task is unreachable",
            now,
            unreachable_time=state.unreachable_agents[agent_id],
        )
    elif agent_id in state.gone_agents:
        message = "Reconciliation: Task is gone"
        _tell(master, framework, task_id, agent_id, "TASK_GONE_BY_OPERATOR", message, now)
    else:
        message = "Reconciliation: Task is unknown"
        _tell(master, framework, task_id, agent_id, "TASK_UNKNOWN", message, now)


def _tell(
    master: Master,
    framework: Framework,
    task_id: str,
    agent_id: str | None,
    state: str,
    message: str,
    now: float,
    unreachable_time: float | None = None,
) -> None:
    more = {} if unreachable_time is None else {"unreachable_time": nanoseconds(unreachable_time)}
    master.update_from_master(
        framework,
        task_id,
        state if framework.capable("PARTITION_AWARE") else "TASK_LOST",
        agent_id=agent_id,
        reason=_REASON,
        message=message,
        now=now,
        more=more,
    )


def _answer_known(master: Master, framework: Framework, task: Task, now: float) -> None:
    master.update_from_master(
        framework,
        task.task_id,
        task.status_update_state,
        agent_id=task.agent_id,
        reason=_REASON,
        message="Reconciliation: Latest task state",
        now=now,
        more=last_details(task),
    )
