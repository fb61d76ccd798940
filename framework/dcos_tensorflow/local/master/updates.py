"""What agents tell of tasks, operations and executors, on its way to the schedulers.

Part of ``master``'s core, split off for its size: functions over a ``Master``.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.local import messages
from dcos_tensorflow.local.master import draining
from dcos_tensorflow.local.master.records import TERMINAL_STATES, Agent, Framework

if TYPE_CHECKING:
    from dcos_tensorflow.local.master.master import Master

Json = dict[str, Any]


def status_update(master: Master, agent: Agent, message: messages.StatusUpdate) -> None:
    """Pass a task's update on, and note what it says."""
    framework = master.state.frameworks.get(message.framework_id)
    if framework is None:
        return
    status = message.status
    task = framework.tasks.get(status["task_id"]["value"])
    master.count("master/messages_status_update")
    if task is not None:
        task.state = message.latest_state
        task.status_update_state = status["state"]
        task.status_update_uuid = status.get("uuid")
        if not task.statuses or task.statuses[-1].get("uuid") != status.get("uuid"):
            task.statuses = [*task.statuses[-9:], status]
    master.send_event(framework, {"type": "UPDATE", "update": {"status": status}})


def acknowledge(
    master: Master, framework: Framework, *, agent_id: str, task_id: str, uid: str, now: float
) -> None:
    """Pass an acknowledgement on; a terminal one ends what is known of the task."""
    agent = master.state.agents.get(agent_id)
    task = framework.tasks.get(task_id)
    if agent is None:
        master.count("master/invalid_status_update_acknowledgements")
        return
    master.count("master/valid_status_update_acknowledgements")
    if (
        task is not None
        and task.status_update_state in TERMINAL_STATES
        and _same_bytes(task.status_update_uuid, uid)
    ):
        master.complete_task(framework, task)
    master.send_to_agent(agent, messages.AcknowledgeUpdate(framework.framework_id, task_id, uid))
    draining.check_drained(master, agent, now)


def operation_update(master: Master, message: messages.OperationUpdate) -> None:
    """Pass an operation's outcome on."""
    framework = master.state.frameworks.get(message.framework_id)
    if framework is None:
        return
    operation_id = message.status.get("operation_id", {}).get("value")
    if operation_id is not None:
        framework.operations[operation_id] = message.status
        event = {
            "type": "UPDATE_OPERATION_STATUS",
            "update_operation_status": {"status": message.status},
        }
        master.send_event(framework, event)


def executor_exited(master: Master, agent: Agent, message: messages.ExecutorExited) -> None:
    """Tell a framework that an executor ended."""
    agent.executors.pop((message.framework_id, message.executor_id), None)
    framework = master.state.frameworks.get(message.framework_id)
    if framework is not None:
        failure = {
            "agent_id": {"value": agent.agent_id},
            "executor_id": {"value": message.executor_id},
            "status": message.status,
        }
        master.send_event(framework, {"type": "FAILURE", "failure": failure})


def executor_message(master: Master, agent: Agent, message: messages.ExecutorMessage) -> None:
    """Pass data of an executor on."""
    framework = master.state.frameworks.get(message.framework_id)
    if framework is not None:
        body = {
            "agent_id": {"value": agent.agent_id},
            "executor_id": {"value": message.executor_id},
            "data": message.data,
        }
        master.send_event(framework, {"type": "MESSAGE", "message": body})


def _same_bytes(one: str | None, other: str) -> bool:
    return one is not None and base64.b64decode(one) == base64.b64decode(other)
