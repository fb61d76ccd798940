"""From a placement to launches: the next epoch, the records, and one ACCEPT per agent.

Called by ``core.offer_use`` once everything that was wanted together has a place.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from dcos_tensorflow.core.actions import Accept
from dcos_tensorflow.core.cluster_spec import ClusterSpec, address_of
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.job import JobPhase
from dcos_tensorflow.core.launch import launch_task
from dcos_tensorflow.core.offer_return import decline, note_offers
from dcos_tensorflow.core.placement import Assignment, Placement
from dcos_tensorflow.core.spec import GANG_ROLES, TaskRole, split_task_name
from dcos_tensorflow.core.task import TaskRecord, TaskState, mesos_task_id

#: What is left over of an agent comes back soon; if nothing is wanted then, it is suppressed.
SOON_REFUSE_SECONDS = 5.0


def launch(draft: Draft, result: Placement) -> None:
    """Launch what was placed; every offer that was not needed for it goes back."""
    if not result.assignments:
        return
    attempt = draft.job.attempt + 1
    by_task = {a.task: a for a in result.assignments}
    gang = {n: a for n, a in by_task.items() if split_task_name(n)[0] in GANG_ROLES}
    epoch = _next_epoch(draft, gang) if gang else draft.state.epoch
    if epoch is None:
        raise AssertionError("a sidecar is never placed before the first gang")
    used: dict[str, list[str]] = {}
    launched: dict[str, TaskRecord] = {}
    launches: dict[tuple[str, str], list[TaskRecord]] = {}
    for name, assignment in by_task.items():
        record = _record(draft, assignment, attempt, epoch.epoch)
        launched[name] = record
        key = (assignment.agent_id, assignment.mesos_role)
        launches.setdefault(key, []).append(record)
        for offer_id in assignment.offer_ids:
            used.setdefault(offer_id, []).append(name)
    given_up = {
        r.task_id: r.agent_id
        for name in by_task
        if (r := draft.state.tasks.get(name)) is not None and not r.terminal
    }
    draft.set(abandoned={**draft.state.abandoned, **given_up})
    _forget_what_was_said_of_earlier_attempts(draft)
    draft.set_job(attempt=attempt, started_at=draft.job.started_at or draft.now)
    draft.set(epoch=epoch, tasks={**draft.state.tasks, **launched}, misfits=(), gang_since=0.0)
    if gang:
        draft.set(gang_rounds=0)
        hosts = len({a.agent_id for a in gang.values()})
        draft.enter(
            JobPhase.STARTING,
            f"all {len(gang)} tasks of the gang placed on {hosts} agents (epoch {epoch.epoch})",
        )
    for records in launches.values():
        _accept(draft, records, by_task, epoch)
    left = tuple(o for o in draft.state.offers if o not in used)
    note_offers(draft, tuple(used), True, "tasks launched", used)
    taken = {k: o for k, o in draft.state.offers.items() if k not in used}
    draft.set(offers=taken, offers_version=draft.state.offers_version + 1)
    decline(draft, left, SOON_REFUSE_SECONDS, "not needed: the gang is placed")


def _forget_what_was_said_of_earlier_attempts(draft: Draft) -> None:
    """A job that restarts for weeks must not grow: keep what belongs to a task or an incident."""
    told = {r.task_id for r in draft.state.tasks.values()}
    told |= {incident.task_id for incident in draft.job.incidents}
    draft.set(
        reports={k: v for k, v in draft.state.reports.items() if k in told},
        evidence={k: v for k, v in draft.state.evidence.items() if k in told},
    )


def _next_epoch(draft: Draft, gang: dict[str, Assignment]) -> ClusterSpec:
    spec = draft.state.spec
    before = draft.state.epoch.epoch if draft.state.epoch is not None else 0
    addresses = {}
    for name, assignment in gang.items():
        role, index = split_task_name(name)
        role_spec = spec.role(role)
        if role_spec is None:
            raise AssertionError(f"{name} was placed but is not wanted")
        addresses[name] = address_of(
            spec, role_spec, index, assignment.address, assignment.ports[0]
        )
    return ClusterSpec(epoch=before + 1, addresses=addresses)


def _record(draft: Draft, assignment: Assignment, attempt: int, epoch: int) -> TaskRecord:
    state = draft.state
    role, index = split_task_name(assignment.task)
    unique = uuid.uuid5(uuid.NAMESPACE_OID, f"{state.instance}/{assignment.task}/{attempt}")
    earlier = state.tasks.get(assignment.task)
    failures = earlier.failures + 1 if earlier is not None and role not in GANG_ROLES else 0
    return TaskRecord(
        name=assignment.task,
        role=TaskRole(role),
        index=index,
        attempt=attempt,
        task_id=mesos_task_id(state.spec.name, assignment.task, str(unique)),
        state=TaskState.LAUNCHING,
        epoch=epoch,
        agent_id=assignment.agent_id,
        hostname=assignment.hostname,
        address=assignment.address,
        ports=assignment.ports,
        launched_at=draft.now,
        changed_at=draft.now,
        failures=failures,
    )


def _accept(
    draft: Draft, records: Sequence[TaskRecord], by_task: dict[str, Assignment], epoch: ClusterSpec
) -> None:
    """Launch the tasks of one agent, with offers of one Mesos role."""
    state = draft.state
    offer_ids = tuple(dict.fromkeys(offer for r in records for offer in by_task[r.name].offer_ids))
    launches = tuple(
        launch_task(state.spec, state.settings, state.framework_id, r, epoch) for r in records
    )
    names = ", ".join(r.name for r in records)
    draft.act(
        Accept(offer_ids, records[0].agent_id, launches, refuse_seconds=SOON_REFUSE_SECONDS),
        f"launching {names} on {records[0].hostname}",
    )
