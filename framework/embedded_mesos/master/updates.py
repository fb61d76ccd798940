"""Agents' updates of tasks, operations and executors, on their way to the schedulers.

Called by ``master``, and by ``scheduler_calls`` for acknowledgements. Pure.
"""

from __future__ import annotations

import base64
from typing import Any

from embedded_mesos import messages
from embedded_mesos.master import draining
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.records import Framework, RegisteredAgent
from embedded_mesos.messages import TERMINAL_STATES

Json = dict[str, Any]


def status_update(desk: Desk, message: messages.StatusUpdate) -> None:
    """Pass a task's update on, and note what it says."""
    framework = desk.state.frameworks.get(message.framework_id)
    if framework is None:
        return
    status = message.status
    task = framework.tasks.get(status["task_id"]["value"])
    desk.count("master/messages_status_update")
    if task is not None:
        task.state = message.latest_state
        task.status_update_state = status["state"]
        task.status_update_uuid = status.get("uuid")
        if not task.statuses or task.statuses[-1].get("uuid") != status.get("uuid"):
            task.statuses = [*task.statuses[-9:], status]
    desk.send_event(framework, {"type": "UPDATE", "update": {"status": status}})


def acknowledge(
    desk: Desk, framework: Framework, *, agent_id: str, task_id: str, uid: str, now: float
) -> None:
    """Pass an acknowledgement on; a terminal one ends what is known of the task."""
    agent = desk.state.agents.get(agent_id)
    task = framework.tasks.get(task_id)
    if agent is None:
        desk.count("master/invalid_status_update_acknowledgements")
        return
    desk.count("master/valid_status_update_acknowledgements")
    if (
        task is not None
        and task.status_update_state in TERMINAL_STATES
        and _same_bytes(task.status_update_uuid, uid)
    ):
        desk.complete_task(framework, task)
    desk.send_to_agent(agent, messages.AcknowledgeUpdate(framework.framework_id, task_id, uid))
    draining.check_drained(desk, agent, now)


def operation_update(desk: Desk, message: messages.OperationUpdate) -> None:
    """Pass an operation's outcome on."""
    framework = desk.state.frameworks.get(message.framework_id)
    if framework is None:
        return
    if "operation_id" in message.status:
        event = {
            "type": "UPDATE_OPERATION_STATUS",
            "update_operation_status": {"status": message.status},
        }
        desk.send_event(framework, event)


def executor_exited(desk: Desk, agent: RegisteredAgent, message: messages.ExecutorExited) -> None:
    """Tell a framework that an executor ended."""
    agent.executors.pop((message.framework_id, message.executor_id), None)
    framework = desk.state.frameworks.get(message.framework_id)
    if framework is not None:
        failure = {
            "agent_id": {"value": agent.agent_id},
            "executor_id": {"value": message.executor_id},
            "status": message.status,
        }
        desk.send_event(framework, {"type": "FAILURE", "failure": failure})


def _same_bytes(one: str | None, other: str) -> bool:
    return one is not None and base64.b64decode(one) == base64.b64decode(other)
