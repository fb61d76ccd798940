"""A service of many tasks that all run, as the benchmarks of the scheduler need one.

The state is that of a gang of workers and one parameter server in its training: every member runs,
has been heard of, and keeps to its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.model.events import RunnerReported, TaskUpdate
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.core.step import step
from samples.states import NOW, a_record, a_role, a_spec, a_state

AGENTS = 1_000


def running_service(tasks: int, *, starting: int = 0) -> ServiceState:
    """Return a service of so many tasks; the last ``starting`` of them have just been launched."""
    spec = a_spec(roles=(a_role(TaskRole.PS, 1), a_role(TaskRole.WORKER, tasks - 1)))
    names = ["ps-0", *(f"worker-{number}" for number in range(tasks - 1))]
    records = [
        a_record(
            name,
            TaskState.RUNNING if number < tasks - starting else TaskState.STARTING,
            agent_id=f"a{number % AGENTS}",
            hostname=f"node{number % AGENTS}",
            address=f"10.{number % AGENTS >> 8}.{number % AGENTS & 255}.1",
            ports=(31000 + number // AGENTS * 2, 31001 + number // AGENTS * 2),
        )
        for number, name in enumerate(names)
    ]
    told = {record.task_id: report(record, 1) for record in records}
    return a_state(JobPhase.RUNNING, records, spec=spec, job={"deployed": True}, reports=told)


def settled(state: ServiceState, steps: int = 3) -> ServiceState:
    """Return the state when the core has nothing more to do about it."""
    for second in range(steps):
        state = step(state, (), NOW + second).state
    return state


def report(record: TaskRecord, at_step: int) -> Mapping[str, Any]:
    """Return what the runner of a training process reports (docs/task-runner.md)."""
    return {
        "service": "tensorflow",
        "task": record.name,
        "attempt": record.task_id,
        "epoch": 1,
        "start": record.start,
        "run": True,
        "state": "running",
        "waiting_for": [],
        "pid": 4711,
        "started_at": NOW,
        "starts": 1,
        "exit_code": None,
        "contract": "script",
        "strategy": "",
        "summary": "The process runs",
        "hint": "",
        "exit": None,
        "progress": {"step": at_step, "loss": 0.5, "at": NOW + at_step},
        "result": None,
        "checkpoint": None,
        "memory_bytes": 500_000_000,
        "frozen_seconds": 0.0,
        "dropped_log_bytes": 0,
        "storage": None,
    }


def reports(state: ServiceState, count: int) -> list[RunnerReported]:
    """Return that so many tasks have made progress."""
    records = list(state.tasks.values())[:count]
    return [RunnerReported(record.task_id, report(record, 2)) for record in records]


def updates(state: ServiceState, count: int) -> list[TaskUpdate]:
    """Return that so many tasks that were starting run now."""
    records = [r for r in state.tasks.values() if r.state is TaskState.STARTING][:count]
    return [
        TaskUpdate(r.task_id, TaskState.RUNNING, r.agent_id, uuid=f"update of {r.name}")
        for r in records
    ]
