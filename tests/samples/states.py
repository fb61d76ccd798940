"""States of a service in the making, for tests of whatever only looks at one.

Hand-built values; where a history matters, ``played`` makes it with the real ``core.step.step``.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.events import Event, OffersReceived, Registered, TaskUpdate
from dcos_tensorflow.core.model.gang import MAIN, Gang, Misfit, Placing
from dcos_tensorflow.core.model.job import (
    Incident,
    JobPhase,
    JobState,
    Membership,
    Outcome,
    Restart,
    Update,
    Verdict,
)
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState, Uninstall
from dcos_tensorflow.core.model.task import TaskRecord, TaskState, mesos_task_id
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import (
    JobSpec,
    RoleSpec,
    ServiceSpec,
    TaskRole,
    split_task_name,
)
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
    known = tuple(records)
    spec = changes.pop("spec", a_spec())
    described = job_state(phase=phase, **(job or {}))
    addresses = {r.name: f"{r.address}:{r.ports[0]}" for r in known}
    table = TaskTable(Roster.of(spec, described.membership.absent), known, changes.get("reports"))
    placing = Placing(tuple(Misfit(task, reason) for task, reason in (misfits or {}).items()))
    epoch = changes.pop("epoch", ClusterSpec(1, addresses) if known else None)
    state = ServiceState(
        spec=spec,
        instance="an-instance",
        settings=LaunchSettings(token_key=TOKEN_KEY),
        framework_id=FRAMEWORK_ID,
        gangs={MAIN: Gang(MAIN, table, epoch, described, placing)},
        attempt=(job or {}).get("attempt", 0),
        uninstall=Uninstall(
            (job or {}).get("uninstalling", False), (job or {}).get("given_up", ())
        ),
    )
    return changed(state, **{"registered": True, **changes})


#: Where each fact of a state is, by the name that tests call it.
_PLACES = {
    "registered": "subscription",
    "disconnected": "subscription",
    "reports": "told",
    "evidence": "told",
    "quota": "told",
    "silent": "told",
    "refused_configuration": "told",
    "offers": "desk",
    "suppressed": "desk",
    "offer_log": "desk",
    "erased": "removal",
}
_NAMES = {"offer_log": "log"}


def changed(state: ServiceState, **changes: Any) -> ServiceState:
    """Return the state with other facts, wherever in it each of them is."""
    for name, value in changes.items():
        place = _PLACES.get(name)
        if place is None:
            state = replace(state, **{name: value})
        else:
            part = replace(getattr(state, place), **{_NAMES.get(name, name): value})
            state = replace(state, **{place: part})
    return state


def with_job(state: ServiceState, **changes: Any) -> ServiceState:
    """Return the state with another job; fields as ``job_state`` takes them."""
    gang, job = state.only_gang, state.job
    parts = {
        "restart": {_RESTART[k]: changes.pop(k) for k in tuple(changes) if k in _RESTART},
        "membership": {k: changes.pop(k) for k in tuple(changes) if k in _MEMBERSHIP},
        "update": {k: changes.pop(k) for k in tuple(changes) if k in _UPDATE},
    }
    nested = {name: replace(getattr(job, name), **part) for name, part in parts.items()}
    after = replace(gang, job=replace(job, **nested, **changes))
    return replace(state, gangs={gang.name: after})


def with_records(state: ServiceState, *records: TaskRecord) -> ServiceState:
    """Return the state with these records in place of, or beside, those it has."""
    tasks = {**state.tasks, **{record.name: record for record in records}}
    gang = state.only_gang
    table = TaskTable(gang.tasks.roster, tasks.values(), state.told.reports)
    return replace(state, gangs={gang.name: replace(gang, tasks=table)})


_RESTART = {
    "restarting": "members",
    "planned": "planned",
    "replacing": "replacing",
    "restore_step": "restore_step",
    "restart_at": "due_at",
    "restarts": "count",
}
_MEMBERSHIP, _UPDATE = ("absent", "joining"), ("canary", "updating")
_OF_SERVICE = ("attempt", "uninstalling", "given_up")


def job_state(**fields: Any) -> JobState:
    """Return a job of flat fields, as the API shows it."""
    return JobState(
        restart=Restart(**{_RESTART[k]: v for k, v in fields.items() if k in _RESTART}),
        membership=Membership(**{k: v for k, v in fields.items() if k in _MEMBERSHIP}),
        update=Update(**{k: v for k, v in fields.items() if k in _UPDATE}),
        **{
            k: v
            for k, v in fields.items()
            if k not in (*_RESTART, *_MEMBERSHIP, *_UPDATE, *_OF_SERVICE)
        },
    )


def gang(state: TaskState = TaskState.RUNNING, **changes: Any) -> list[TaskRecord]:
    """Return records of the whole gang of ``a_spec``, all in ``state``."""
    return [a_record(name, state, **changes) for name in ("ps-0", "worker-0", "worker-1")]


def running() -> ServiceState:
    """Return a deployed service with everything running."""
    records = [*gang(), a_record("tensorboard-0")]
    return a_state(JobPhase.RUNNING, records, job={"deployed": True, "why": "all 3 tasks run"})


def reporting(step_number: int, **more: Any) -> ServiceState:
    """Return a running service of which worker-0 has reported a step."""
    progress = {
        "step": step_number,
        "loss": 1.0 / (step_number + 1),
        "at": 1000.0 + step_number,
        **more,
    }
    record = running().tasks["worker-0"]
    return changed(running(), reports={record.task_id: {"progress": progress}})


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
    settings = LaunchSettings(token_key=TOKEN_KEY)
    state = ServiceState.of_one_gang(spec or a_spec(), "an-instance", settings)
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
