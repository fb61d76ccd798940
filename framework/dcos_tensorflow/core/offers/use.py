"""The active half of a step, part two: what is wanted, and what becomes of each offer.

Called by ``core.step.step`` after ``core.advance``. A gang is placed all or none; offers that
cannot help go back at once with a long filter; none is held longer than ``gang.hold_seconds``;
when nothing is wanted the master is told (rule 6). Every misfit keeps its reason (rule 7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dcos_tensorflow.core.cluster import addresses
from dcos_tensorflow.core.cluster.launch_options import options_of, preferred_port
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.actions import Revive, Suppress
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.quota import explained
from dcos_tensorflow.core.model.spec import (
    GANG_ROLES,
    Addressing,
    ConstraintOperator,
    PlacementConstraint,
    Strategy,
    split_task_name,
)
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.offers import reservations, volume_places
from dcos_tensorflow.core.offers.launching import SOON_REFUSE_SECONDS, launch
from dcos_tensorflow.core.offers.reconciliation import doubt
from dcos_tensorflow.core.offers.returning import decline
from dcos_tensorflow.core.placement.agent_table import AgentTable
from dcos_tensorflow.core.placement.place import Placement, TaskRequest, place
from dcos_tensorflow.core.recovery import avoidance, restarts, sidecars
from dcos_tensorflow.core.recovery.backoff import spread
from dcos_tensorflow.core.recovery.causes import INVALID_OFFERS_REASON, PORT_TAKEN
from dcos_tensorflow.core.recovery.members import (
    cluster_addresses,
    has_container,
    is_idle,
    is_quiet,
    leaving,
    may_return,
    members,
    missing,
    stays,
    strategy_of,
)
from dcos_tensorflow.core.recovery.membership import can_do_without, who_must_know
from dcos_tensorflow.core.recovery.planned_changes import is_leaving

#: Seconds. Nothing is wanted / this offer cannot help.
IDLE_REFUSE_SECONDS = 3600.0
#: A restart is under way: its members may need a place any moment now.
RESTARTING_REFUSE_SECONDS = 1.0
USELESS_REFUSE_SECONDS = 300.0
#: REVIVE drops every filter of the role: not more often than this.
REVIVE_SECONDS = 5.0
#: gRPC (or TensorBoard) first, the task runner last.
PORTS_PER_TASK = 2

#: Phases in which nothing is wanted now, but will be in seconds.
_SOON = frozenset({JobPhase.STOPPING, JobPhase.BACKING_OFF, JobPhase.PLACING, JobPhase.STAGING})
#: Reasons of an end after which the agent makes no offers any more.
_LEFT_BEHIND = frozenset({"REASON_AGENT_DRAINING", "REASON_SLAVE_DRAINING"})
#: A task is wanted at its old address for so long; its offer comes with the next allocation.
KEEP_PLACE_SECONDS = 6.0


def use_offers(draft: Draft) -> None:
    """Decide about every offer in hand."""
    if not draft.state.registered:
        return
    # Also an agent whose offers go back at once has said that it is there.
    reachable = frozenset(offer.agent_id for offer in draft.state.offers.values())
    reservations.look_after(draft)
    _hand_back_offers_of_leaving_agents(draft)
    gang = _wanted_gang(draft)
    if gang and _waited_too_long(draft, gang):
        gang = _wanted_gang(draft)
    sidecars = _wanted_sidecars(draft, with_gang=bool(gang))
    joining = _wanted_again(draft)
    if not gang and not sidecars and not joining:
        _want_nothing(draft)
        return
    _ask_for_offers(draft)
    if draft.state.offers and not _old_attempts_may_live(draft, reachable):
        _consider(draft, gang, (*sidecars, *joining))
    _tell_of_quota(draft, gang)
    _hold_no_longer(draft, bool(gang))


def _tell_of_quota(draft: Draft, gang: Sequence[TaskRequest]) -> None:
    """Say what a quota has to do with a gang that waits: the offers do not."""
    if not gang or draft.job.phase is not JobPhase.PLACING:
        return
    why = explained(draft.job.why, draft.state.quota, (request.resources for request in gang))
    if why != draft.job.why:
        draft.set_job(why=why)


def _hand_back_offers_of_leaving_agents(draft: Draft) -> None:
    going = tuple(k for k, o in draft.state.offers.items() if is_leaving(draft, o.agent_id))
    decline(draft, going, USELESS_REFUSE_SECONDS, "the agent is to be taken down for maintenance")


def _request(draft: Draft, name: str) -> TaskRequest:
    return volume_places.bound(draft.state, _free_request(draft, name))


def _free_request(draft: Draft, name: str) -> TaskRequest:
    spec = options_of(draft.state, name)
    task_role, _ = split_task_name(name)
    role = spec.role(task_role)
    if role is None:
        raise AssertionError(f"{name} is not wanted and cannot be placed")
    was_taken = any(i.kind == PORT_TAKEN and i.task == name for i in draft.job.incidents)
    before = draft.state.tasks.get(name)
    preferred = preferred_port(draft.state, name)
    own = spec.has_own_addresses()
    by_name = not own and spec.addressing is Addressing.DNS and task_role in GANG_ROLES
    request = TaskRequest(
        name=name,
        role=task_role,
        resources=role.resources,
        port_count=0 if own else PORTS_PER_TASK,
        preferred_port=None if was_taken or own else preferred or None,
        required_port=role.port if by_name else None,
        constraints=role.constraints,
        region=spec.region or ("" if role.names_region() else draft.state.master_region),
    )
    if before is None or was_taken or by_name or not _keeps_its_place(draft, before):
        return request
    same_host = PlacementConstraint("hostname", ConstraintOperator.IS, before.hostname)
    return replace(
        request, required_port=before.ports[0], constraints=(*role.constraints, same_host)
    )


def _keeps_its_place(draft: Draft, before: TaskRecord) -> bool:
    """Say whether a task is wanted at its old address: for some seconds, where a move costs more.

    Sessions never find a peer that has moved, and a ParameterServerStrategy chief would have to
    restart to find it; MultiWorkerMirrored members all restart anyway. A container with an address
    of its own has another one after each launch.
    """
    if strategy_of(draft.state) not in (Strategy.PARAMETER_SERVER, Strategy.BETWEEN_GRAPH):
        return False
    if before.role not in GANG_ROLES or before.kill_reason or not before.terminal:
        return False
    if draft.state.spec.has_own_addresses():
        return False
    if before.reason in _LEFT_BEHIND or before.agent_id in avoidance.agents(draft):
        return False
    if before.state is TaskState.LOST and before.reason != INVALID_OFFERS_REASON:
        return False
    alone = set(missing(draft.state)) < set(members(draft.state))
    return alone and draft.now - draft.job.phase_since < KEEP_PLACE_SECONDS


def _wanted_gang(draft: Draft) -> tuple[TaskRequest, ...]:
    """Return requests for the members that have no container; all of them or none are placed."""
    state = draft.state
    if state.job.phase is not JobPhase.PLACING:
        return ()
    plan = "recovery" if state.job.deployed else "deploy"
    roles = {str(role) for role in GANG_ROLES}
    asked_for = state.job.deployed and state.job.planned
    if not asked_for and any(state.controls.holds(plan, role) for role in roles):
        return ()
    lost = missing(state)
    if is_quiet(state) and leaving(state):
        return ()
    if any(may_return(state, state.tasks.get(name), draft.now) for name in lost):
        return ()
    return tuple(_request(draft, name) for name in lost)


def _waited_too_long(draft: Draft, gang: Sequence[TaskRequest]) -> bool:
    """Go on with fewer where that is allowed, or give the places of the others back."""
    state, job = draft.state, draft.job
    forced = [request.name for request in gang if state.controls.forced(request.name)]
    if forced and can_do_without(state, forced):
        _go_without(draft, forced, "as it was asked to")
        return True
    if draft.waited(job.phase_since) < state.spec.gang.wait_seconds:
        return False
    lost = [misfit.task for misfit in state.misfits] or [request.name for request in gang]
    names = ", ".join(lost)
    if can_do_without(state, lost):
        _go_without(draft, lost, "until there is room")
        return True
    holding = [n for n in members(state) if has_container(state.tasks.get(n))]
    if not holding or not is_idle(state):
        return False
    draft.set_job(replacing=tuple(holding))
    why = f"no place for {names} within {state.spec.gang.wait_seconds:g} s: the whole gang waits"
    restarts.stop(draft, members(state), why, planned=False)
    return True


def _go_without(draft: Draft, lost: Sequence[str], how_long: str) -> None:
    """Take members out of the gang; whoever must know of it restarts when all others are there."""
    why = f"the job goes on without {', '.join(lost)} {how_long}"
    draft.set_job(absent=(*draft.job.absent, *lost), why=why)
    draft.set(considered=(-1, ()), misfits=())
    draft.reasons.append(why)
    state = draft.state
    if not missing(state) and state.epoch is not None:
        told = who_must_know(state, dict(state.epoch.addresses), cluster_addresses(state))
        restarts.stop(draft, told, why, planned=False)


def _wanted_again(draft: Draft) -> tuple[TaskRequest, ...]:
    """Return requests for members that the job goes on without: joining costs a restart."""
    job, controls = draft.job, draft.state.controls
    if job.phase is not JobPhase.RUNNING or not job.absent:
        return ()
    grows = draft.now - job.phase_since >= draft.state.spec.gang.grow_seconds
    held = job.joining if controls.holds("update") else ()
    due = job.absent if grows else job.joining
    return tuple(
        _request(draft, name)
        for name in due
        if name not in held and not controls.forced(name) and not _may_still_run(draft, name)
    )


def _may_still_run(draft: Draft, name: str) -> bool:
    """Say whether the attempt before has not ended: who left and is wanted again may still stop."""
    record = draft.state.tasks.get(name)
    return has_container(record) or may_return(draft.state, record, draft.now)


def _old_attempts_may_live(draft: Draft, reachable: frozenset[str]) -> bool:
    """Say whether an attempt that was given up may run on an agent that is back.

    An agent that makes offers is reachable. What we left behind on it is asked about and killed
    before the same task starts anywhere (rule 5). So is what the master still owes an answer about.
    """
    state = draft.state
    if state.strays:
        return True
    given_up = {r.task_id: r.agent_id for r in state.live_tasks if r.state is TaskState.UNREACHABLE}
    given_up |= dict(state.abandoned)
    doubtful = frozenset(task_id for task_id, agent_id in given_up.items() if agent_id in reachable)
    if doubtful:
        doubt(draft, doubtful)
    return bool(doubtful) or not given_up.keys().isdisjoint(state.reconciliation.waiting)


def _wanted_sidecars(draft: Draft, *, with_gang: bool) -> tuple[TaskRequest, ...]:
    """Return requests for sidecars: beside a gang that is placed now, or that runs.

    And for those that outlive the job, when it is done.
    """
    # Beside a gang whose addresses are not known yet, a sidecar could not be told them.
    first = with_gang and draft.state.epoch is None and not addresses.are_learned(draft.state.spec)
    is_over = draft.job.phase is JobPhase.DONE and draft.state.epoch is not None
    if not first and not is_over and draft.job.phase not in (JobPhase.STARTING, JobPhase.RUNNING):
        return ()
    names = [
        f"{role.role}-{index}"
        for role in draft.state.spec.roles
        if role.role not in GANG_ROLES
        for index in range(role.count)
    ]
    return tuple(
        _request(draft, name)
        for name in names
        if sidecars.is_due(draft, name) and (not is_over or stays(draft.state, name))
    )


def _want_nothing(draft: Draft) -> None:
    running = draft.job.phase in (JobPhase.STARTING, JobPhase.RUNNING)
    soon = draft.job.phase in _SOON or (running and sidecars.is_pending(draft.state))
    seconds = SOON_REFUSE_SECONDS if soon else IDLE_REFUSE_SECONDS
    if draft.job.phase in _SOON:
        seconds = RESTARTING_REFUSE_SECONDS
    awaited = bool(draft.state.awaited_back)
    if awaited:
        seconds = min(seconds, USELESS_REFUSE_SECONDS)
    if draft.state.misfits or draft.state.gang_since:
        draft.set(misfits=(), gang_since=0.0)
    decline(draft, tuple(draft.state.offers), seconds, "nothing is wanted now")
    if len(draft.state.agent_table):
        draft.set(agent_table=AgentTable())
    if awaited:
        _ask_for_offers(draft)
    elif not soon and draft.state.suppressed is not True:
        draft.set(suppressed=True)
        draft.act(Suppress((draft.state.spec.mesos_role,)), "nothing is wanted: no more offers")


def _ask_for_offers(draft: Draft) -> None:
    if draft.state.suppressed is False:
        return
    if draft.now - draft.state.revived_at < REVIVE_SECONDS:
        return
    draft.set(suppressed=False, revived_at=draft.now)
    draft.act(Revive((draft.state.spec.mesos_role,)), "asking for offers")


def _consider(draft: Draft, gang: tuple[TaskRequest, ...], others: tuple[TaskRequest, ...]) -> None:
    every = (*gang, *others)
    choosy = avoidance.is_on(draft)
    key = (
        draft.state.offers_version,
        (
            *(r.name for r in every),
            *(f"{r.required_port or ''}{r.bound_by}" for r in every),
            str(choosy),
        ),
    )
    if draft.state.considered == key:
        return
    avoided = avoidance.reasons(draft) if choosy else {}
    offers = draft.state.agent_table.of(volume_places.placeable(draft.state))
    draft.set(agent_table=offers)
    placed = _placed(draft, gang)
    salt = _port_salt(draft)
    result = place(every, offers, placed, avoided, salt)
    if avoided and not gang and not result.complete and not avoidance.has_just_begun(draft, others):
        # Nobody holds offers for these: they take now what is there.
        result = place(every, offers, placed, salt=salt)
    misfits = result.misfits
    if gang and others and not result.complete:
        result = place(gang, offers, placed, avoided, salt)
    if gang and not result.complete:
        # Who is wanted at its old place now is content with another one in a moment.
        befores = (draft.state.tasks.get(r.name) for r in gang)
        picky = any(b is not None and _keeps_its_place(draft, b) for b in befores)
        useless = SOON_REFUSE_SECONDS if picky else USELESS_REFUSE_SECONDS
        _keep_waiting(draft, result, key, useless, avoided)
    else:
        launch(draft, result)
        # A sidecar without a place does not hold up the gang, but says why it waits.
        draft.set(misfits=misfits)


def _port_salt(draft: Draft) -> str:
    """Return what spreads our choice of ports: the same, until one turned out to be taken.

    It differs from instance to instance: clusters that share a machine do not know of each other.
    """
    clashes = [i for i in draft.job.incidents if i.kind == PORT_TAKEN]
    again = f"/{draft.job.attempt}" if clashes else ""
    return f"{draft.state.instance}{again}"


def _placed(draft: Draft, gang: Sequence[TaskRequest]) -> tuple[TaskRecord, ...]:
    """Return what runs already: placement constraints count it."""
    wanted = {request.name for request in gang}
    return tuple(record for record in draft.state.live_tasks if record.name not in wanted)


def _keep_waiting(
    draft: Draft,
    result: Placement,
    key: tuple[int, tuple[str, ...]],
    refuse_seconds: float,
    avoided: Mapping[str, str],
) -> None:
    """Hold what helps, hand back what does not, and remember why."""
    first = result.misfits[0].reason if result.misfits else "no offer fits"
    more = f" (and {len(result.misfits) - 1} more tasks wait)" if len(result.misfits) > 1 else ""
    if first + more != draft.job.why:
        draft.set_job(why=first + more)
    draft.set(misfits=result.misfits)
    draft.reasons.append(first + more)
    by_reason: dict[str, list[str]] = {}
    for offer_id, reason in result.useless_offers.items():
        if draft.state.offers[offer_id].agent_id in avoided:
            # It may have to do in the end.
            continue
        by_reason.setdefault(reason, []).append(offer_id)
    for reason, offer_ids in by_reason.items():
        decline(draft, tuple(offer_ids), refuse_seconds, reason)
    # What was declined changes nothing about what was considered.
    draft.set(considered=(draft.state.offers_version, key[1]))


def _hold_no_longer(draft: Draft, gang: bool) -> None:
    """Hand every held offer back once the hold has lasted long enough."""
    state = draft.state
    if not state.offers:
        if state.gang_since:
            draft.set(gang_since=0.0)
        return
    if not gang:
        decline(draft, tuple(state.offers), SOON_REFUSE_SECONDS, "nothing fits here now")
        return
    since = state.gang_since or min(o.received_at for o in state.offers.values())
    if draft.now - since < state.spec.gang.hold_seconds:
        if not state.gang_since and state.gang_rounds:
            # What was refused at other moments would come back when these are gone, for ever.
            draft.set(suppressed=None)
        draft.set(gang_since=since)
        return
    rules = state.spec.gang
    wait = min(rules.retry_seconds * 2 ** min(state.gang_rounds, 16), rules.max_retry_seconds)
    seconds = wait * spread(f"{state.instance}/{state.gang_rounds}")
    why = f"the gang was not complete within {rules.hold_seconds:g} s; others may use these"
    decline(draft, tuple(state.offers), seconds, why)
    draft.set(gang_since=0.0, gang_rounds=state.gang_rounds + 1)
