"""ACCEPT: its operations are played, in order, on the resources of its offers.

Called by ``scheduler_calls``. Tasks that Mesos would refuse get Mesos' update; operations that
this cluster does not do are refused by name; the rest is declined with the filter.
Facts: ``master.cpp`` accept() and _accept().
"""

from __future__ import annotations

from typing import Any

from embedded_mesos import messages
from embedded_mesos.master import offers
from embedded_mesos.master.calls.validation import (
    NOT_SUPPORTED,
    group_error,
    offers_error,
    task_error,
)
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.operations import (
    CONVERSIONS,
    InvalidOperation,
    convert,
    with_allocation,
)
from embedded_mesos.master.records import Framework, Offer, RegisteredAgent, Task
from embedded_mesos.resources import Resources

Json = dict[str, Any]


def accept(desk: Desk, framework: Framework, call: Json, now: float) -> None:
    """Carry out the ``accept`` part of a call."""
    state = desk.state
    offer_ids = [one["value"] for one in call.get("offer_ids", [])]
    operations = call.get("operations", [])
    error = offers_error(state, framework, offer_ids)
    accepted = [
        state.offers[offer_id]
        for offer_id in dict.fromkeys(offer_ids)
        if offer_id in state.offers
        and state.offers[offer_id].framework_id == framework.framework_id
    ]
    for offer in accepted:
        offers.drop(desk, offer)
    if error is not None:
        for operation in operations:
            _invalid_offers(desk, framework, operation, error, now)
        return
    agent = state.agents[accepted[0].agent_id]
    session = _Session(desk, framework, agent, accepted[0], now)
    for offer in accepted:
        session.remaining += offer.resources
    for operation in operations:
        session.play(operation)
    offers.refuse(desk, accepted[0], session.remaining, call.get("filters"), now)


def tasks_of(operation: Json) -> list[Json]:
    """Return the tasks that an operation launches."""
    if operation.get("type") == "LAUNCH":
        return list(operation.get("launch", {}).get("task_infos", []))
    if operation.get("type") == "LAUNCH_GROUP":
        return list(operation.get("launch_group", {}).get("task_group", {}).get("tasks", []))
    return []


def _invalid_offers(
    desk: Desk, framework: Framework, operation: Json, error: str, now: float
) -> None:
    for task in tasks_of(operation):
        desk.update_from_master(
            framework,
            task["task_id"]["value"],
            "TASK_DROPPED" if framework.capable("PARTITION_AWARE") else "TASK_LOST",
            agent_id=task["agent_id"]["value"],
            reason="REASON_INVALID_OFFERS",
            message=f"Task launched with invalid offers: {error}",
            now=now,
        )
    if not tasks_of(operation):
        message = f"Operation attempted with invalid resources: {error}"
        operation_failed(desk, framework, operation, "OPERATION_DROPPED", message)


def operation_failed(
    desk: Desk, framework: Framework, operation: Json, state: str, message: str
) -> None:
    """Tell the outcome of an operation that has an id; without an id it fails in silence."""
    if "id" in operation:
        status = {"operation_id": operation["id"], "state": state, "message": message}
        event = {"type": "UPDATE_OPERATION_STATUS", "update_operation_status": {"status": status}}
        desk.send_event(framework, event)


class _Session:
    """One ACCEPT while its operations are played."""

    def __init__(
        self, desk: Desk, framework: Framework, agent: RegisteredAgent, offer: Offer, now: float
    ) -> None:
        self.desk = desk
        self.framework = framework
        self.agent = agent
        self.role = offer.mesos_role
        self.now = now
        self.remaining = Resources()

    def play(self, operation: Json) -> None:
        kind = operation.get("type")
        if kind == "LAUNCH":
            self._launch(operation)
        elif kind == "LAUNCH_GROUP":
            self._launch_group(operation)
        elif kind in CONVERSIONS:
            self._convert(operation)
        else:
            message = f"{NOT_SUPPORTED}: operation {kind}"
            operation_failed(self.desk, self.framework, operation, "OPERATION_ERROR", message)

    def _convert(self, operation: Json) -> None:
        """Play an operation that turns resources of the agent into others."""
        try:
            change = convert(
                operation, self.role, self.framework.info.get("principal"), self.remaining
            )
        except InvalidOperation as error:
            operation_failed(self.desk, self.framework, operation, "OPERATION_ERROR", str(error))
            return
        self.remaining = self.remaining - change.consumed + change.produced
        self.agent.total = (
            self.agent.total
            - change.consumed.allocated_to(None)
            + change.produced.allocated_to(None)
        )
        status = None
        if "id" in operation:
            status = {"operation_id": operation["id"], "state": "OPERATION_FINISHED"}
        message = messages.ApplyOperation(
            self.framework.framework_id,
            tuple(self.agent.total.to_json()),
            status,
            change.destroyed,
        )
        self.desk.send_to_agent(self.agent, message)

    def _launch_group(self, operation: Json) -> None:
        group = operation["launch_group"]
        given = group["executor"]
        executor = {
            **given,
            "resources": with_allocation(given.get("resources", []), self.role),
        }
        tasks = [
            {**task, "resources": with_allocation(task.get("resources", []), self.role)}
            for task in tasks_of(operation)
        ]
        error = group_error(executor, tasks, self.framework, self.agent.agent_id, self.remaining)
        if error is not None:
            for task in tasks:
                self._error(task, error, "REASON_TASK_GROUP_INVALID")
            return
        executor_id = executor["executor_id"]["value"]
        resources = Resources.parse(executor["resources"])
        self.agent.executors[(self.framework.framework_id, executor_id)] = resources
        self.remaining -= resources
        for task in tasks:
            self._add(task, executor_id)
        message = messages.RunTasks(
            self.framework.framework_id, self.framework.info, tuple(tasks), executor
        )
        self.desk.send_to_agent(self.agent, message)

    def _launch(self, operation: Json) -> None:
        for given in tasks_of(operation):
            task = {**given, "resources": with_allocation(given.get("resources", []), self.role)}
            if "id" in operation:
                error: str | None = "The `id` field cannot be set on LAUNCH operations"
            else:
                error = task_error(task, self.framework, self.agent.agent_id, self.remaining)
            if error is not None:
                self._error(task, error, "REASON_TASK_INVALID")
                continue
            self._add(task, None)
            message = messages.RunTasks(self.framework.framework_id, self.framework.info, (task,))
            self.desk.send_to_agent(self.agent, message)

    def _add(self, task: Json, executor_id: str | None) -> None:
        resources = Resources.parse(task["resources"])
        self.remaining -= resources
        record = Task(
            info=task,
            framework_id=self.framework.framework_id,
            agent_id=self.agent.agent_id,
            resources=resources,
            executor_id=executor_id,
        )
        self.framework.tasks[record.task_id] = record

    def _error(self, task: Json, message: str, reason: str) -> None:
        self.desk.update_from_master(
            self.framework,
            task["task_id"]["value"],
            "TASK_ERROR",
            agent_id=task["agent_id"]["value"],
            reason=reason,
            message=message,
            now=self.now,
        )
