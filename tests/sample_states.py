"""States of a service in the making, for tests of whatever only looks at one.

Hand-built values; where a history matters, ``played`` makes it with the real ``core.step.step``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dcos_tensorflow.core.cluster.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.events import Event, OffersReceived, Registered, TaskUpdate
from dcos_tensorflow.core.model.job import Incident, JobPhase, JobState, Outcome, Verdict
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.resources import PortRanges, Resources
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.spec import (
    JobSpec,
    RoleSpec,
    ServiceSpec,
    TaskRole,
    split_task_name,
)
from dcos_tensorflow.core.model.task import TaskRecord, TaskState, mesos_task_id
from dcos_tensorflow.core.placement.place import Misfit
from dcos_tensorflow.core.step import step

NOW = 1_800_000_000.0
TOKEN_KEY = "5ec0de" * 10
FRAMEWORK_ID = "10ca1dc0-5000-4000-8000-000000000001-0002"


def a_role(role: TaskRole, count: int, **changes: Any) -> RoleSpec:
    """Return a role of small tasks."""
    return RoleSpec(role, count, **{"resources": Resources(cpus=1, mem=512, disk=64), **changes})


def a_spec(**changes: Any) -> ServiceSpec:
    """Return two parameter servers' worth of the usual: 1 ps, 2 workers, TensorBoard."""
    roles = (
        a_role(TaskRole.WORKER, 2),
        a_role(TaskRole.PS, 1),
        a_role(TaskRole.TENSORBOARD, 1),
    )
    job = JobSpec(name="mnist", context='{"epochs": 3}')
    return ServiceSpec(**{"name": "tensorflow", "roles": roles, "job": job, **changes})


def a_record(name: str, state: TaskState = TaskState.RUNNING, **changes: Any) -> TaskRecord:
    """Return a record of the first attempt of ``name``."""
    role, index = split_task_name(name)
    port = 31000 + 10 * index + 100 * list(TaskRole).index(role)
    fields = {
        "name": name,
        "role": role,
        "index": index,
        "attempt": 1,
        "task_id": mesos_task_id("tensorflow", name, f"{role}-unique-{index}"),
        "state": state,
        "epoch": 1,
        "agent_id": "a1",
        "hostname": "node1",
        "address": "127.0.0.11",
        "ports": (port, port + 1),
        "launched_at": NOW,
        "changed_at": NOW,
    }
    return TaskRecord(**{**fields, **changes})


def a_state(
    phase: JobPhase = JobPhase.PLACING,
    records: Iterable[TaskRecord] = (),
    *,
    job: dict[str, Any] | None = None,
    misfits: dict[str, str] | None = None,
    **changes: Any,
) -> ServiceState:
    """Return a registered service's state; ``job`` are further fields of its JobState."""
    tasks = {record.name: record for record in records}
    addresses = {n: f"{r.address}:{r.ports[0]}" for n, r in tasks.items()}
    fields = {
        "spec": a_spec(),
        "instance": "an-instance",
        "settings": LaunchSettings(token_key=TOKEN_KEY),
        "framework_id": FRAMEWORK_ID,
        "registered": True,
        "tasks": tasks,
        "epoch": ClusterSpec(1, addresses) if tasks else None,
        "job": JobState(phase=phase, **(job or {})),
        "misfits": tuple(Misfit(task, reason) for task, reason in (misfits or {}).items()),
    }
    return ServiceState(**{**fields, **changes})


def gang(state: TaskState = TaskState.RUNNING, **changes: Any) -> list[TaskRecord]:
    """Return records of the whole gang of ``a_spec``, all in ``state``."""
    return [a_record(name, state, **changes) for name in ("ps-0", "worker-0", "worker-1")]


def running() -> ServiceState:
    """Return a deployed service with everything running."""
    records = [*gang(), a_record("tensorboard-0")]
    return a_state(JobPhase.RUNNING, records, job={"deployed": True, "why": "all 3 tasks run"})


def an_incident(task: str = "worker-1", **changes: Any) -> Incident:
    """Return a charged incident."""
    fields = {
        "task": task,
        "task_id": a_record(task).task_id,
        "at": NOW,
        "kind": "failed",
        "summary": f"{task} failed on node1: exited with status 3",
        "charged": True,
    }
    return Incident(**{**fields, **changes})


def failed(**job: Any) -> ServiceState:
    """Return a service whose job has failed on its way to the first deployment."""
    verdict = Verdict(Outcome.FAILED, 3, "worker-1 failed: exit 3 (3 retries are used up)")
    records = [
        a_record("ps-0", TaskState.KILLED, kill_reason="the job is ending"),
        a_record("worker-0", TaskState.KILLED, kill_reason="the job is ending"),
        a_record("worker-1", TaskState.FAILED, message="exited with status 3"),
    ]
    known = {"verdict": verdict, "incidents": (an_incident(),), **job}
    return a_state(JobPhase.DONE, records, job=known)


def an_offer(number: int, **changes: Any) -> Offer:
    """Return an offer of agent ``number`` with room for one small task."""
    fields = {
        "offer_id": f"o{number}",
        "agent_id": f"a{number}",
        "hostname": f"node{number}",
        "address": f"127.0.0.{number + 10}",
        "mesos_role": "*",
        "resources": Resources(cpus=1, mem=600, disk=100),
        "ports": PortRanges(((31000, 31009),)),
    }
    return Offer(**{**fields, **changes})


def played(*events: Event, spec: ServiceSpec | None = None) -> ServiceState:
    """Return the state that ``events`` lead to, one second apart, from a new service's state."""
    state = ServiceState(
        spec=spec or a_spec(), instance="an-instance", settings=LaunchSettings(token_key=TOKEN_KEY)
    )
    for number, event in enumerate(events):
        state = step(state, (event,), NOW + number).state
    return state


def registered() -> Event:
    """Return the event that begins every history."""
    return Registered(FRAMEWORK_ID, "127.0.0.1:5050")


def offered(*numbers: int) -> Event:
    """Return offers of these agents."""
    return OffersReceived(tuple(an_offer(number) for number in numbers))


def updated(state: ServiceState, name: str, to: TaskState, **changes: Any) -> ServiceState:
    """Return the state after a status update of ``name``, by the real step."""
    event = TaskUpdate(state.tasks[name].task_id, to, agent_id=state.tasks[name].agent_id)
    return step(state, (replace(event, **changes),), NOW + 60).state
