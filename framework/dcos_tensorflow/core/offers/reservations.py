"""Reservations and the volumes on them: their owners, and when all goes back.

Called by ``core.offers.desk`` first in each step, and where tasks are launched, replaced or removed
(where they go is ``core.offers.volume_places``). A task with a volume goes back to the agent that
has it, for as long as its options ask for it; only ``pod replace``, an agent that is gone for good,
and an uninstall give it up. A reservation with our labels and no task's name is given back once
offered: nothing in an offer is in use. A reservation with other labels, or none, is never touched
(rule 12). Level-triggered: an operation that did not succeed shows in the next offers and is asked
for again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.actions import Release, ReservationOrder
from dcos_tensorflow.core.model.job import ENDED_PHASES
from dcos_tensorflow.core.model.offer import Offer, OfferedReservation
from dcos_tensorflow.core.model.service_state import GangView, OfferUse, ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.offers.returning import note_offers
from dcos_tensorflow.core.placement.request import Assignment
from dcos_tensorflow.core.restarts.launch_options import options_of
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import name_in_gang, split_task_name
from dcos_tensorflow.core.spec.volume_spec import Reservation

#: What was told to be given back and is not offered again within this time is gone (seconds).
RELEASED_SECONDS = 3.0
#: What may never have been made, and is not seen within this time, is not there (seconds).
UNSEEN_SECONDS = 30.0
#: The rest of an offer that something was given back of comes again with the next allocation.
RELEASE_REFUSE_SECONDS = 0.1
#: The agent will never be back (Mesos: MARK_AGENT_GONE).
AGENT_GONE = "REASON_AGENT_REMOVED_BY_OPERATOR"

#: States that only a launch which has reached its agent leads to.
_REACHED = frozenset(
    {
        TaskState.STAGING,
        TaskState.STARTING,
        TaskState.RUNNING,
        TaskState.FINISHED,
        TaskState.FAILED,
        TaskState.KILLED,
    }
)


class Kept(Enum):
    """What is to stay of a reservation."""

    ALL = "all"
    VOLUME = "volume"
    NOTHING = "nothing"


def kept(state: ServiceState, reservation: Reservation) -> Kept:
    """Return what is to stay: a job that is over keeps its data, and nothing that others could use.

    Mesos offers nothing that runs, so this may be asked before the task has ended.
    """
    if reservation.given_up or state.uninstall.asked:
        return Kept.NOTHING
    view = _owner(state, reservation.task)
    record = view.tasks.get(reservation.task) if view is not None else None
    finished = record is not None and record.state is TaskState.FINISHED
    if finished or (view is not None and view.job.phase in ENDED_PHASES):
        return Kept.VOLUME
    return Kept.ALL


def _owner(state: ServiceState, task: str) -> GangView | None:
    """Return the gang that has a task, or would have it once launched; None for an unknown one."""
    gang = state.gang_wanting(task)
    return state.view(gang.name) if gang is not None else None


def _is_adopted(state: ServiceState, reservation: Reservation) -> bool:
    """Say whether a task has this that was not launched yet in this run, or after a lost state."""
    return state.gang_with(reservation.task) is None and not reservation.given_up


def offered(offers: Iterable[Offer], wanted: Reservation) -> tuple[OfferedReservation, ...]:
    """Return what offers hold of a reservation."""
    return tuple(
        each
        for offer in offers
        if offer.agent_id == wanted.agent_id
        for each in offer.reserved
        if (each.framework_id, each.resource_id) == (wanted.framework_id, wanted.resource_id)
    )


# -- launches --------------------------------------------------------------------------------------


def for_launch(gang: GangDraft, assignment: Assignment, attempt: int, task_id: str) -> str:
    """Return the id of the reservation that a launch is made on; empty when it needs none."""
    name = assignment.task
    role = options_of(gang.view, name).role(split_task_name(name)[0])
    if role is None or role.volume is None:
        return ""
    draft = gang.service
    before = draft.state.reservation_of(name)
    if before is not None and before.confirmed:
        _put(draft, replace(before, volume_only=False))
        return before.resource_id
    if before is not None:
        # It was made for an attempt that cannot be reached: it may be there.
        _put(draft, _given_up(draft, before, "placed anew"))
    unique = f"{draft.state.instance}/{name}/{attempt}/reservation"
    made = Reservation(
        resource_id=str(uuid.uuid5(uuid.NAMESPACE_OID, unique)),
        framework_id=draft.state.framework_id,
        task=name,
        task_id=task_id,
        agent_id=assignment.agent_id,
        hostname=assignment.hostname,
        mesos_role=assignment.mesos_role,
    )
    _put(draft, made)
    return made.resource_id


def order(view: GangView, record: TaskRecord) -> ReservationOrder | None:
    """Return what a launch is told about its reservation; None when it has none."""
    found = view.service.reservations.get(record.resource_id)
    if found is None:
        return None
    role = options_of(view, record.name).role(record.role)
    if role is None or role.volume is None:
        return None
    return ReservationOrder(
        resource_id=found.resource_id,
        framework_id=found.framework_id,
        mesos_role=found.mesos_role,
        principal=view.spec.principal,
        persistence_id=found.persistence_id,
        volume=role.volume,
    )


# -- what goes back --------------------------------------------------------------------------------


def give_up(gang: GangDraft, name: str, why: str) -> None:
    """Let go of a task's volume; what is there of it goes back when it is offered."""
    draft = gang.service
    found = draft.state.reservation_of(name)
    if found is None:
        return
    _put(draft, _given_up(draft, found, why))
    # What fits nowhere with the volume may fit without.
    gang.look_again()
    draft.ask_anew()
    gang.say(f"the volume of {name} on {found.hostname} is given up: {why}")


def look_after(draft: Draft) -> None:
    """Learn from tasks and offers what is there, and give back what no task wants."""
    state = draft.state
    if not state.reservations and not any(o.reserved for o in state.desk.offers.values()):
        return
    for offer in state.desk.offers.values():
        for each in offer.reserved:
            _adopt(draft, offer, each)
    for reservation in draft.state.reservations.values():
        _learn(draft, reservation)
    for offer in tuple(draft.state.desk.offers.values()):
        if offer.reserved:
            _give_back(draft, offer)
    for reservation in draft.state.reservations.values():
        _forget(draft, reservation)
    due = frozenset(r.resource_id for r in draft.state.reservations.values() if _is_due(draft, r))
    if due - draft.state.awaited_back:
        draft.ask_anew()
    if due != draft.state.awaited_back:
        draft.state = replace(draft.state, awaited_back=due)


def release_failed(draft: Draft, resource_ids: Iterable[str]) -> None:
    """Expect these to be offered again: the call that was to give them back did not succeed."""
    for resource_id in resource_ids:
        _note(draft, resource_id, released_at=0.0, volume_only=False)


def attempt_ended(draft: Draft, task_id: str, state: TaskState) -> None:
    """Note the end of an attempt that was abandoned: now it shows whether its volume was made."""
    for found in draft.state.reservations.values():
        if found.task_id == task_id and found.given_up and not found.confirmed:
            reached = state in _REACHED
            _put(draft, replace(found, confirmed=reached, given_up_at=draft.now))


def left(state: ServiceState) -> tuple[Reservation, ...]:
    """Return what is not given back yet of what is to be given back in full."""
    return tuple(r for r in state.reservations.values() if kept(state, r) is Kept.NOTHING)


def _put(draft: Draft, reservation: Reservation) -> None:
    known = draft.state.reservations
    if known.get(reservation.resource_id) != reservation:
        changed = {**known, reservation.resource_id: reservation}
        draft.state = replace(draft.state, reservations=changed)


def _drop(draft: Draft, reservation: Reservation) -> None:
    others = {k: r for k, r in draft.state.reservations.items() if r is not reservation}
    draft.state = replace(draft.state, reservations=others)


def _given_up(draft: Draft, reservation: Reservation, why: str) -> Reservation:
    return replace(reservation, given_up=why, given_up_at=draft.now, released_at=0.0)


def _adopt(draft: Draft, offer: Offer, each: OfferedReservation) -> None:
    """Take up the volume of a task that was never launched: the service's state was lost."""
    state = draft.state
    if each.resource_id in state.reservations or each.framework_id != state.framework_id:
        return
    for volume in each.volumes:
        name, _, resource_id = volume.rpartition(".")
        if resource_id != each.resource_id or name_in_gang(name) not in state.spec.wanted_names:
            continue
        role = state.spec.role(split_task_name(name)[0])
        if state.gang_with(name) is not None or role is None or role.volume is None:
            continue
        owner = _owner(state, name)
        over = owner is None or owner.job.phase in ENDED_PHASES
        if over or state.reservation_of(name) is not None:
            continue
        adopted = Reservation(
            resource_id=resource_id,
            framework_id=each.framework_id,
            task=name,
            task_id="",
            agent_id=offer.agent_id,
            hostname=offer.hostname,
            mesos_role=offer.mesos_role,
            confirmed=True,
        )
        _put(draft, adopted)
        draft.reasons.append(f"the volume of {name} on {offer.hostname} is taken up again")
        return


def _learn(draft: Draft, found: Reservation) -> None:
    """Confirm what was seen, give up what has lost its task, drop what has lost its agent."""
    state = draft.state
    wanted = name_in_gang(found.task) in state.spec.wanted_names
    if found.given_up:
        made_with = state.task_by_id(found.task_id)
        if made_with is not None and made_with.state in _REACHED and not found.confirmed:
            _put(draft, replace(found, confirmed=True))
        return
    seen = any(
        found.persistence_id in each.volumes for each in offered(state.desk.offers.values(), found)
    )
    if wanted and _is_adopted(state, found):
        if seen and not found.confirmed:
            _put(draft, replace(found, confirmed=True))
        return
    gang = state.gang_with(found.task)
    record = gang.tasks[found.task] if gang is not None else None
    if record is None or record.resource_id != found.resource_id:
        why = "its task was placed anew" if wanted else "its task is not wanted any more"
        _put(draft, _given_up(draft, replace(found, confirmed=True), why))
    elif record.terminal and record.reason == AGENT_GONE:
        _drop(draft, found)
        draft.reasons.append(f"the volume of {found.task} is gone with {found.hostname}")
    elif not found.confirmed:
        if seen or (record.task_id == found.task_id and record.state in _REACHED):
            _put(draft, replace(found, confirmed=True))
        elif record.state is TaskState.LOST:
            _put(draft, _given_up(draft, found, "its launch failed"))


def _give_back(draft: Draft, offer: Offer) -> None:
    """Give back what an offer holds of reservations of ours that are not to stay."""
    state = draft.state
    everything, but_volumes = [], []
    for each in offer.reserved:
        key = (each.framework_id, each.resource_id)
        found = state.reservations.get(each.resource_id)
        if found is not None and found.framework_id == each.framework_id:
            staying = kept(state, found)
        elif found is None and each.resource_id and each.framework_id == state.framework_id:
            staying = Kept.NOTHING
        else:
            continue
        if staying is Kept.NOTHING:
            everything.append(key)
        elif staying is Kept.VOLUME and (each.resources != Resources() or each.ports.ranges):
            but_volumes.append(key)
    if not everything and not but_volumes:
        return
    for _, resource_id in everything:
        _note(draft, resource_id, released_at=draft.now)
    for _, resource_id in but_volumes:
        _note(draft, resource_id, volume_only=True)
    _release(draft, offer, everything, but_volumes)


def _note(draft: Draft, resource_id: str, **changes: float | bool) -> None:
    found = draft.state.reservations.get(resource_id)
    if found is not None:
        _put(draft, replace(found, **changes))  # type: ignore[arg-type]


def _release(
    draft: Draft,
    offer: Offer,
    everything: list[tuple[str, str]],
    but_volumes: list[tuple[str, str]],
) -> None:
    known = draft.state.reservations
    tasks = [known[rid].task if rid in known else rid for _, rid in (*everything, *but_volumes)]
    why = f"giving back the resources that were reserved for {', '.join(tasks)} on {offer.hostname}"
    note_offers(draft, (offer.offer_id,), OfferUse.RELEASED, why, {})
    draft.drop_offers((offer.offer_id,))
    draft.act(
        Release(
            (offer.offer_id,),
            offer.agent_id,
            tuple(everything),
            tuple(but_volumes),
            RELEASE_REFUSE_SECONDS,
        ),
        why,
    )


def _forget(draft: Draft, found: Reservation) -> None:
    """Drop what has been given back, and what was never made."""
    if _is_given_back(draft, found) or _was_never_made(draft, found):
        _drop(draft, found)


def _is_given_back(draft: Draft, found: Reservation) -> bool:
    """Say so when it was told, and is not offered again.

    What was to be told before this subscription may never have been: only an offer of its agent
    shows that it is gone. All offers in hand were made since.
    """
    if not found.released_at or kept(draft.state, found) is not Kept.NOTHING:
        return False
    if _is_told(draft, found):
        return draft.waited(found.released_at) >= RELEASED_SECONDS
    return _is_missing(draft, found, since=0.0)


def _is_told(draft: Draft, found: Reservation) -> bool:
    since = draft.state.subscription.registered_at
    return found.released_at > 0 and found.released_at >= since


def _was_never_made(draft: Draft, found: Reservation) -> bool:
    """Say so when the launch it was made with is over, and it is not seen after that.

    While the agent of that launch is away, no time that passes says anything.
    """
    if found.confirmed or not found.given_up or found.released_at:
        return False
    made_with = draft.state.task_by_id(found.task_id)
    may_run = made_with is not None and not made_with.terminal
    if may_run or found.task_id in draft.state.abandoned:
        return False
    since = max(found.given_up_at, made_with.changed_at if made_with is not None else 0.0)
    missing = _is_missing(draft, found, since)
    return missing or draft.waited(since) >= UNSEEN_SECONDS


def _is_missing(draft: Draft, found: Reservation, since: float) -> bool:
    """Say whether its agent has made an offer without it since then."""
    return any(
        offer.agent_id == found.agent_id and offer.received_at > since
        for offer in draft.state.desk.offers.values()
        if all(each.resource_id != found.resource_id for each in offer.reserved)
    )


def _is_due(draft: Draft, found: Reservation) -> bool:
    """Say whether offers are wanted to give this back: not for ever, its agent may be gone."""
    staying = kept(draft.state, found)
    if (
        staying is Kept.ALL
        or _is_told(draft, found)
        or (staying is Kept.VOLUME and found.volume_only)
    ):
        return False
    view = _owner(draft.state, found.task)
    record = view.tasks.get(found.task) if view is not None else None
    phase_since = view.job.phase_since if view is not None else 0.0
    its_own = record is not None and record.resource_id == found.resource_id
    if its_own and record is not None and not record.terminal:
        return False
    since = max(found.given_up_at, phase_since, record.changed_at if record else 0.0)
    return draft.waited(since) < draft.state.spec.uninstall_give_up_seconds
