"""From a placement to launches: the records, the next epoch, and one ACCEPT per agent.

Called by ``core.offers.desk`` once everything that a gang wanted together has a place, and again
when every gang has looked at the offers: an ACCEPT uses an offer up, so one ACCEPT has
the launches of all gangs on an agent. A gang that starts as a whole is launched to run at once, so
that it comes up with the scheduler away. A member that joins others is launched held: members that
must learn of it are stopped when it is ready, not before (``core.restarts.restarts``).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dcos_tensorflow.core.cluster import addresses
from dcos_tensorflow.core.cluster.launch import launch_task
from dcos_tensorflow.core.cluster.orders import must_agree
from dcos_tensorflow.core.cluster.output_places import run_of
from dcos_tensorflow.core.counted import counted, listed
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.actions import Accept, LaunchTask
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.controls import UPDATE
from dcos_tensorflow.core.model.gang import Placing
from dcos_tensorflow.core.model.job import JobPhase, Membership, Update
from dcos_tensorflow.core.model.service_state import OfferUse
from dcos_tensorflow.core.model.task import TaskRecord, TaskState, mesos_task_id
from dcos_tensorflow.core.offers import reservations, volume_places
from dcos_tensorflow.core.offers.returning import note_offers
from dcos_tensorflow.core.placement.request import Assignment, Placement
from dcos_tensorflow.core.restarts import data_service, sidecars
from dcos_tensorflow.core.restarts.launch_options import options_of
from dcos_tensorflow.core.restarts.membership import members_to_tell
from dcos_tensorflow.core.restarts.restarts import renew_epoch
from dcos_tensorflow.core.spec.service_spec import MAIN, split_task_name

#: What is left over of an agent comes back soon; if nothing is wanted then, it is suppressed.
SOON_REFUSE_SECONDS = 5.0


def launch(gang: GangDraft, result: Placement) -> None:
    """Make the launches of what was placed; ``accept_all`` sends them."""
    by_task = {a.task: a for a in result.assignments}
    members = [n for n in by_task if split_task_name(n)[0].is_in_gang]
    held = bool(members) and _must_be_held(gang, members)
    _note_given_up(gang, by_task)
    draft = gang.service
    attempt = draft.state.attempt + 1
    draft.state = replace(draft.state, attempt=attempt)
    paused = draft.state.controls.paused_tasks
    mine = set(members)
    records = [
        _record(gang, assignment, attempt, held if name in mine else name in paused)
        for name, assignment in by_task.items()
    ]
    if not draft.accepts:
        _forget_what_was_said_of_earlier_attempts(draft)
    _note_launched(gang, mine, by_task)
    for record in records:
        gang.put(record)
    gang.placing = Placing(rounds=gang.placing.rounds)
    if members:
        _enter(gang, members, held, by_task)
    epoch = gang.epoch
    if epoch is None:
        raise AssertionError("a sidecar is never placed before the first gang")
    launched = [
        replace(record, epoch=epoch.epoch, data_service=data_service.told(gang.view, record.role))
        for record in records
    ]
    for record in launched:
        gang.put(record)
    _add_launches(gang, launched, by_task, epoch)


def _must_be_held(gang: GangDraft, members: Sequence[str]) -> bool:
    """Say whether the processes of what is launched wait to be told to start."""
    if addresses.are_learned(gang.spec) or gang.roster.is_of_slot:
        # Which unit a slot runs is said in an order.
        return True
    whole = set(members) >= gang.roster.members and not gang.view.controls.paused_tasks
    return not whole or must_agree(gang.spec, gang.job.strategy_seen)


def _note_given_up(gang: GangDraft, names: Iterable[str]) -> None:
    """Remember the unreachable attempts that are replaced: should they return, they are killed."""
    given_up = {
        r.task_id: r.agent_id
        for name in names
        if (r := gang.tasks.get(name)) is not None and not r.terminal
    }
    state = gang.service.state
    if given_up:
        gang.service.state = replace(state, abandoned={**state.abandoned, **given_up})


def _note_launched(gang: GangDraft, members: set[str], names: Iterable[str]) -> None:
    """Take what is launched off the lists of members that are waited for."""
    known, launched = gang.job, set(names)
    gang.set_membership(
        Membership(
            absent=tuple(n for n in known.membership.absent if n not in members),
            joining=tuple(n for n in known.membership.joining if n not in members),
        )
    )
    replacing = tuple(n for n in known.restart.replacing if n not in members)
    joined = not members.isdisjoint(known.membership.joining)
    plan = UPDATE if joined else known.restart.plan
    gang.restart = replace(gang.restart, replacing=replacing, plan=plan)
    updating = tuple(n for n in known.update.updating if n not in launched)
    update = Update(canary=known.update.canary, updating=updating)
    gang.job = replace(gang.job, update=update)
    # The work on units begins with its first slot.
    for begun in (gang, gang.service.gang(MAIN)):
        if not begun.job.started_at:
            begun.job = replace(begun.job, started_at=gang.now)


def _enter(
    gang: GangDraft, members: Sequence[str], held: bool, by_task: Mapping[str, Assignment]
) -> None:
    before = dict(gang.epoch.addresses) if gang.epoch is not None else {}
    epoch = renew_epoch(gang)
    hosts = len({by_task[name].agent_id for name in members})
    where = f"placed on {counted(hosts, 'agent')} (cluster version {epoch.epoch})"
    gang.placing = replace(gang.placing, rounds=0)
    if not held:
        gang.restart = replace(gang.restart, members=())
        who = f"all {len(members)} tasks" if len(members) > 1 else "the only task"
        gang.enter(JobPhase.STARTING, f"{who} of the gang {where}")
        return
    told = members_to_tell(gang.view, before, epoch.addresses)
    concerned = gang.roster.in_order({*gang.restart.members, *members, *told})
    # Beside a gang that trains nothing has failed: a task that stops for joining ones saves first.
    planned = gang.restart.planned or gang.job.phase is JobPhase.RUNNING
    gang.restart = replace(gang.restart, members=concerned, planned=planned)
    what = "its container is" if len(members) == 1 else "their containers are"
    gang.enter(JobPhase.STAGING, f"{listed(members)} {where}; {what} being prepared")


def _add_launches(
    gang: GangDraft,
    launched: Iterable[TaskRecord],
    by_task: Mapping[str, Assignment],
    epoch: ClusterSpec,
) -> None:
    launches: dict[tuple[str, ...], list[TaskRecord]] = {}
    for record in launched:
        launches.setdefault(by_task[record.name].offer_ids, []).append(record)
    accepts = gang.service.accepts
    for offer_ids, records in launches.items():
        added = tuple(_launch_task(gang, record, epoch) for record in records)
        before = accepts.get(offer_ids)
        known = before.launches if before is not None else ()
        agent_id = records[0].agent_id
        accepts[offer_ids] = Accept(offer_ids, agent_id, (*known, *added), SOON_REFUSE_SECONDS)


def accept_all(draft: Draft) -> None:
    """Launch what all gangs have made of the offers. Those that hold it are used up."""
    if not draft.accepts:
        return
    offers = draft.state.desk.offers
    used: dict[str, list[str]] = {}
    for accept in draft.accepts.values():
        names = [launch.name for launch in accept.launches]
        hostname = offers[accept.offer_ids[0]].hostname
        draft.act(accept, f"launching {listed(names)} on {hostname}")
        used.update(dict.fromkeys(accept.offer_ids, names))
    note_offers(draft, tuple(used), OfferUse.LAUNCHED, "tasks launched", used)
    draft.drop_offers(used)
    draft.accepts.clear()


def _forget_what_was_said_of_earlier_attempts(draft: Draft) -> None:
    """A job that restarts for weeks must not grow: keep what belongs to a task or an incident."""
    known = {r.task_id for gang in draft.state.gangs.values() for r in gang.tasks.values()}
    known |= {i.task_id for gang in draft.state.gangs.values() for i in gang.job.incidents}
    draft.keep_what_was_said_of(known)


def _record(gang: GangDraft, assignment: Assignment, attempt: int, held: bool) -> TaskRecord:
    view, state = gang.view, gang.service.state
    role, index = split_task_name(assignment.task)
    options = options_of(view, assignment.task)
    role_spec = view.spec.role(role)
    own = view.spec.has_own_addresses() and role_spec is not None
    unique = uuid.uuid5(uuid.NAMESPACE_OID, f"{state.instance}/{assignment.task}/{attempt}")
    task_id = mesos_task_id(view.spec.name, assignment.task, str(unique))
    ports = (*volume_places.kept_ports(view, assignment.task), *assignment.ports)
    resource_id = reservations.for_launch(gang, assignment, attempt, task_id)
    before = view.tasks.get(assignment.task)
    is_sidecar = not role.is_in_gang
    earlier = sidecars.ends(view, before) if before and is_sidecar else sidecars.NO_ENDS
    return TaskRecord(
        name=assignment.task,
        role=role,
        index=index,
        attempt=attempt,
        task_id=task_id,
        state=TaskState.LAUNCHING,
        epoch=0,
        agent_id=assignment.agent_id,
        hostname=assignment.hostname,
        address="" if own else assignment.address,
        ports=addresses.own_ports(role_spec) if own and role_spec else ports,
        launched_at=gang.now,
        changed_at=gang.now,
        failures=earlier.failures,
        interruptions=earlier.interruptions,
        held=held,
        fingerprint=options.fingerprints[role],
        attributes=assignment.attributes,
        zone=assignment.zone,
        region=assignment.region,
        resource_id=resource_id,
    )


def _launch_task(gang: GangDraft, record: TaskRecord, epoch: ClusterSpec) -> LaunchTask:
    view, state = gang.view, gang.service.state
    return replace(
        launch_task(
            options_of(view, record.name),
            state.settings,
            state.framework_id,
            record,
            epoch,
            run=run_of(state),
        ),
        reservation=reservations.order(view, record),
    )
