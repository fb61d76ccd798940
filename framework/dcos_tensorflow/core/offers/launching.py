"""From a placement to launches: the records, the next epoch, and one ACCEPT per agent.

Called by ``core.offers.use`` once everything that was wanted together has a place. A gang that
starts as a whole is launched to run at once, so that it comes up with the scheduler away. Who joins
others is launched with its process held: those who must learn of it are stopped when it is ready,
not before (``core.recovery.restarts``).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dcos_tensorflow.core.cluster import addresses
from dcos_tensorflow.core.cluster.fingerprint import fingerprint
from dcos_tensorflow.core.cluster.launch import launch_task
from dcos_tensorflow.core.cluster.launch_options import options_of
from dcos_tensorflow.core.cluster.orders import must_agree
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.actions import Accept
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.spec import GANG_ROLES, TaskRole, split_task_name
from dcos_tensorflow.core.model.task import TaskRecord, TaskState, mesos_task_id
from dcos_tensorflow.core.offers import reservations, volume_places
from dcos_tensorflow.core.offers.returning import decline, note_offers
from dcos_tensorflow.core.placement.place import Assignment, Placement
from dcos_tensorflow.core.recovery import sidecar_ends
from dcos_tensorflow.core.recovery.members import members
from dcos_tensorflow.core.recovery.membership import who_must_know
from dcos_tensorflow.core.recovery.restarts import renew_epoch

#: What is left over of an agent comes back soon; if nothing is wanted then, it is suppressed.
SOON_REFUSE_SECONDS = 5.0


def launch(draft: Draft, result: Placement) -> None:
    """Launch what was placed; every offer that was not needed for it goes back."""
    if not result.assignments:
        return
    attempt = draft.job.attempt + 1
    by_task = {a.task: a for a in result.assignments}
    gang = [n for n in by_task if split_task_name(n)[0] in GANG_ROLES]
    held = bool(gang) and _must_be_held(draft, gang)
    _note_given_up(draft, by_task)
    paused = draft.state.controls.paused_tasks
    launched = {
        name: _record(draft, assignment, attempt, held if name in gang else name in paused)
        for name, assignment in by_task.items()
    }
    _forget_what_was_said_of_earlier_attempts(draft)
    draft.set_job(
        attempt=attempt,
        started_at=draft.job.started_at or draft.now,
        absent=tuple(n for n in draft.job.absent if n not in gang),
        joining=tuple(n for n in draft.job.joining if n not in gang),
        replacing=tuple(n for n in draft.job.replacing if n not in gang),
        updating=tuple(n for n in draft.job.updating if n not in by_task),
    )
    draft.set(tasks={**draft.state.tasks, **launched}, misfits=(), gang_since=0.0)
    if gang:
        _enter(draft, gang, held, by_task)
    epoch = draft.state.epoch
    if epoch is None:
        raise AssertionError("a sidecar is never placed before the first gang")
    launched = {n: replace(r, epoch=epoch.epoch) for n, r in launched.items()}
    draft.set(tasks={**draft.state.tasks, **launched})
    _accept_all(draft, launched, by_task, epoch)


def _must_be_held(draft: Draft, gang: Sequence[str]) -> bool:
    """Say whether the processes of what is launched wait to be told to start."""
    if addresses.are_learned(draft.state.spec):
        return True
    whole = set(gang) >= set(members(draft.state)) and not draft.state.controls.paused_tasks
    return not whole or must_agree(draft.state.spec, draft.job.strategy_seen)


def _note_given_up(draft: Draft, by_task: Mapping[str, Assignment]) -> None:
    """Remember the unreachable attempts that are replaced: should they return, they are killed."""
    given_up = {
        r.task_id: r.agent_id
        for name in by_task
        if (r := draft.state.tasks.get(name)) is not None and not r.terminal
    }
    draft.set(abandoned={**draft.state.abandoned, **given_up})


def _enter(
    draft: Draft, gang: Sequence[str], held: bool, by_task: Mapping[str, Assignment]
) -> None:
    before = dict(draft.state.epoch.addresses) if draft.state.epoch is not None else {}
    renew_epoch(draft)
    epoch = draft.state.epoch
    if epoch is None:
        raise AssertionError("a gang was placed without a ClusterSpec")
    hosts = len({by_task[name].agent_id for name in gang})
    where = f"placed on {hosts} agents (epoch {epoch.epoch})"
    draft.set(gang_rounds=0)
    if not held:
        draft.enter(JobPhase.STARTING, f"all {len(gang)} tasks of the gang {where}", restarting=())
        return
    told = who_must_know(draft.state, before, epoch.addresses)
    concerned = {*draft.job.restarting, *gang, *told}
    draft.enter(
        JobPhase.STAGING,
        f"{', '.join(gang)} {where}; their containers are being prepared",
        restarting=tuple(n for n in members(draft.state) if n in concerned),
    )


def _accept_all(
    draft: Draft,
    launched: Mapping[str, TaskRecord],
    by_task: dict[str, Assignment],
    epoch: ClusterSpec,
) -> None:
    used: dict[str, list[str]] = {}
    launches: dict[tuple[str, str], list[TaskRecord]] = {}
    for name, assignment in by_task.items():
        key = (assignment.agent_id, assignment.mesos_role)
        launches.setdefault(key, []).append(launched[name])
        for offer_id in assignment.offer_ids:
            used.setdefault(offer_id, []).append(name)
    for records in launches.values():
        _accept(draft, records, by_task, epoch)
    left = tuple(o for o in draft.state.offers if o not in used)
    note_offers(draft, tuple(used), True, "tasks launched", used)
    rest = {k: o for k, o in draft.state.offers.items() if k not in used}
    draft.set(offers=rest, offers_version=draft.state.offers_version + 1)
    decline(draft, left, SOON_REFUSE_SECONDS, "not needed: everything has a place")


def _forget_what_was_said_of_earlier_attempts(draft: Draft) -> None:
    """A job that restarts for weeks must not grow: keep what belongs to a task or an incident."""
    told = {r.task_id for r in draft.state.tasks.values()}
    told |= {incident.task_id for incident in draft.job.incidents}
    draft.set(
        reports={k: v for k, v in draft.state.reports.items() if k in told},
        evidence={k: v for k, v in draft.state.evidence.items() if k in told},
    )


def _record(draft: Draft, assignment: Assignment, attempt: int, held: bool) -> TaskRecord:
    state = draft.state
    role, index = split_task_name(assignment.task)
    role_spec = state.spec.role(role)
    own = state.spec.has_own_addresses() and role_spec is not None
    unique = uuid.uuid5(uuid.NAMESPACE_OID, f"{state.instance}/{assignment.task}/{attempt}")
    task_id = mesos_task_id(state.spec.name, assignment.task, str(unique))
    ports = (*volume_places.kept_ports(state, assignment.task), *assignment.ports)
    resource_id = reservations.for_launch(draft, assignment, attempt, task_id)
    before = state.tasks.get(assignment.task)
    beside = before is not None and role not in GANG_ROLES
    earlier = sidecar_ends.ends(state, before) if before and beside else sidecar_ends.NONE
    return TaskRecord(
        name=assignment.task,
        role=TaskRole(role),
        index=index,
        attempt=attempt,
        task_id=task_id,
        state=TaskState.LAUNCHING,
        epoch=0,
        agent_id=assignment.agent_id,
        hostname=assignment.hostname,
        address="" if own else assignment.address,
        ports=addresses.own_ports(role_spec) if own and role_spec else ports,
        launched_at=draft.now,
        changed_at=draft.now,
        failures=earlier.failures,
        interruptions=earlier.interruptions,
        held=held,
        fingerprint=fingerprint(options_of(state, assignment.task), role),
        attributes=assignment.attributes,
        zone=assignment.zone,
        region=assignment.region,
        resource_id=resource_id,
    )


def _accept(
    draft: Draft, records: Sequence[TaskRecord], by_task: dict[str, Assignment], epoch: ClusterSpec
) -> None:
    """Launch the tasks of one agent, with offers of one Mesos role."""
    state = draft.state
    offer_ids = tuple(dict.fromkeys(offer for r in records for offer in by_task[r.name].offer_ids))
    launches = tuple(
        replace(
            launch_task(
                options_of(state, r.name),
                state.settings,
                state.framework_id,
                r,
                epoch,
                instance=state.instance,
            ),
            reservation=reservations.order(state, r),
        )
        for r in records
    )
    names = ", ".join(r.name for r in records)
    draft.act(
        Accept(offer_ids, records[0].agent_id, launches, refuse_seconds=SOON_REFUSE_SECONDS),
        f"launching {names} on {records[0].hostname}",
    )
