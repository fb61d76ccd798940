"""The use of each offer: the active half of a step, part two.

Called by ``core.step`` after ``core.advance``. A gang is placed all or none; offers that cannot
help go back at once with a long filter; none is held longer than ``gang.hold_seconds``; when
nothing is wanted the master is told (rule 6). Every misfit keeps its reason, and so does every wait
(rule 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from dcos_tensorflow.core.agents import avoidance, maintenance
from dcos_tensorflow.core.counted import agreeing, counted, listed
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.actions import Revive, Suppress
from dcos_tensorflow.core.model.gang import MAIN, Placing
from dcos_tensorflow.core.model.job import BEGUN_PHASES, JobPhase
from dcos_tensorflow.core.model.machine_records import emptied
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.quota import shortage
from dcos_tensorflow.core.model.service_state import OfferUse
from dcos_tensorflow.core.model.task import TaskRecord, parse_task_id
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.offers import reservations, volume_places
from dcos_tensorflow.core.offers.launching import SOON_REFUSE_SECONDS, accept_all, launch
from dcos_tensorflow.core.offers.reconciliation import doubt
from dcos_tensorflow.core.offers.returning import decline
from dcos_tensorflow.core.offers.wants import Wants, wants
from dcos_tensorflow.core.placement.constraints import depends_on_counts
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import Assignment, Placement, TaskRequest
from dcos_tensorflow.core.restarts import planned_changes, sidecars
from dcos_tensorflow.core.restarts.backoff import spread
from dcos_tensorflow.core.spec.service_spec import gang_named
from dcos_tensorflow.core.work import shares, slots
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.core.placement.agent_table import AgentTable

#: Seconds. Nothing is wanted / this offer cannot help.
IDLE_REFUSE_SECONDS = 3600.0
#: A restart is under way: its members may need a place any moment now.
RESTARTING_REFUSE_SECONDS = 1.0
USELESS_REFUSE_SECONDS = 300.0
#: REVIVE drops every filter of the role: not more often than this.
REVIVE_SECONDS = 5.0

#: Phases in which nothing is wanted now, but will be in seconds.
_SOON = frozenset({JobPhase.STOPPING, JobPhase.BACKING_OFF, JobPhase.PLACING, JobPhase.STAGING})


def use_offers(draft: Draft) -> None:
    """Decide about every offer in hand."""
    if not draft.state.registered:
        return
    # Also an agent whose offers go back at once has said that it is there.
    reachable = frozenset(offer.agent_id for offer in draft.state.desk.offers.values())
    reservations.look_after(draft)
    _hand_back_offers_of_leaving_agents(draft)
    _hand_back_offers_of_emptied_machines(draft)
    wanted = [(gang, what) for gang in draft.awake() if (what := wants(gang))]
    if not wanted:
        _want_nothing(draft)
        return
    wanted.sort(key=_turn)
    _ask_for_offers(draft)
    blocked = _old_attempts_may_live(draft, reachable)
    looks = _place_in_turn(draft, wanted, blocked) or _grow(draft, wanted, blocked)
    waiting = list(looks)
    launches = bool(draft.accepts)
    accept_all(draft)
    _decline_useless(draft, looks)
    if launches and not waiting:
        left = tuple(draft.state.desk.offers)
        why = "not needed: everything has a place"
        decline(draft, left, SOON_REFUSE_SECONDS, why, OfferUse.UNNEEDED)
    for gang, what in wanted:
        _tell_of_quota(gang, what)
    why = next((blocked[gang.name] for gang, _ in wanted if gang.name in blocked), "")
    _hold_no_longer(draft, waiting, why)


def _turn(wanted: tuple[GangDraft, Wants]) -> tuple[object, ...]:
    """Return what puts gangs in the order in which they look at offers.

    First those that have waited too long, then those that have run before or hold places already,
    then new ones; the oldest wait first. A gang that wants no members takes what is left.
    """
    gang, what = wanted
    late, new = _keeps_others_away(gang), _is_new(gang)
    return (not what.members, not late, new, gang.job.phase_since, len(gang.name), gang.name)


def _is_new(gang: GangDraft) -> bool:
    """Say whether a gang has never run, and holds no places: nothing is lost while it waits."""
    return not gang.job.deployed and not gang.tasks.having(Fact.CONTAINED)


def _is_late(gang: GangDraft) -> bool:
    return gang.service.waited(gang.job.phase_since) > gang.spec.gang.wait_seconds


def _place_in_turn(
    draft: Draft, wanted: Sequence[tuple[GangDraft, Wants]], blocked: Mapping[str, str]
) -> dict[GangDraft, _Considered]:
    """Let each gang take what it wants of what is left by then; return the gangs that wait.

    One that does not fit hands everything on to the next, so that no two hold offers against each
    other; but one that has waited for long is alone with them while they are held for it, so that
    smaller ones do not take them away piece by piece for ever.
    """
    waiting: dict[GangDraft, _Considered] = {}
    alone = False
    for number, (gang, what) in enumerate(wanted, start=1):
        look = _NOT_CONSIDERED
        if gang.name in blocked:
            gang.block(blocked[gang.name])
        elif not alone and draft.state.desk.offers:
            look = _consider(gang, what)
        if look.launched:
            if number < len(wanted) or gang.spec.units is not None:
                _take_out(draft, what, look.launched)
        elif what.ahead:
            waiting[gang] = look
            if gang.name not in blocked and _is_room(gang, what.ahead):
                planned_changes.leave_early(gang)
        elif what.members:
            waiting[gang] = look
            alone = alone or (_keeps_others_away(gang) and not _is_hold_over(draft, [gang]))
    return waiting


def _grow(
    draft: Draft, wanted: list[tuple[GangDraft, Wants]], blocked: Mapping[str, str]
) -> dict[GangDraft, _Considered]:
    """Make more slots while all find places; return one of each shape that waits for offers."""
    while draft.accepts and (made := slots.grow(draft, slots.GROWTH)):
        more = [(gang, what) for gang in made if (what := wants(gang))]
        waiting = _place_in_turn(draft, more, blocked)
        if waiting:
            first = {gang.job.shape: gang for gang in reversed(waiting)}.values()
            slots.drop_unplaced(draft, [gang for gang in waiting if gang not in first])
            wanted += [(gang, what) for gang, what in more if gang in first]
            return {gang: waiting[gang] for gang in first}
    return {}


def _keeps_others_away(gang: GangDraft) -> bool:
    return _is_late(gang) and not _is_new(gang)


@dataclass(frozen=True)
class _Considered:
    """What came of a gang's look at the offers."""

    #: What was placed and is launched.
    launched: tuple[Assignment, ...] = ()
    #: Offers that could hold none of its members, and why ...
    useless: Mapping[str, str] = field(default_factory=dict)
    #: ... for so long (seconds).
    useless_seconds: float = USELESS_REFUSE_SECONDS
    #: What it has looked for.
    asked: tuple[str, ...] = ()


#: Of a gang that has not looked anew every offer in hand may be of use.
_NOT_CONSIDERED = _Considered()


def _take_out(draft: Draft, what: Wants, launched: Iterable[Assignment]) -> None:
    """Leave to those behind what is left of the offers that hold these launches."""
    requests = {request.name: request for request in what.every}
    offers = dict(draft.state.desk.offers)
    changed: dict[str, Offer] = {}
    for assignment in launched:
        request = requests[assignment.task]
        owed = request.resources
        for offer_id in assignment.offer_ids:
            offer = changed.get(offer_id, offers[offer_id])
            taken = owed.common(offer.resources)
            owed = owed - taken
            changed[offer_id] = replace(
                offer,
                resources=offer.resources - taken,
                ports=offer.ports.without(assignment.ports),
                mounts=() if request.mount else offer.mounts,
            )
    draft.take_offers(changed)


def _decline_useless(draft: Draft, waiting: Mapping[GangDraft, _Considered]) -> None:
    if not waiting:
        return
    looks = tuple(waiting.values())
    in_vain = set.intersection(*(set(look.useless) for look in looks))
    by_reason: dict[str, list[str]] = {}
    for offer_id, reason in looks[0].useless.items():
        if offer_id in in_vain and offer_id in draft.state.desk.offers:
            by_reason.setdefault(reason, []).append(offer_id)
    seconds = min(look.useless_seconds for look in looks)
    for reason, offer_ids in by_reason.items():
        decline(draft, tuple(offer_ids), seconds, reason, OfferUse.UNFIT)
    for gang, look in waiting.items():
        if look.asked:
            # What was declined or launched meanwhile makes nothing fit that did not.
            considered = (draft.state.desk.version, look.asked)
            gang.placing = replace(gang.placing, considered=considered)


def _tell_of_quota(gang: GangDraft, what: Wants) -> None:
    """Note what a quota has to do with members that wait: the offers do not."""
    waits = what.members and gang.job.phase is JobPhase.PLACING
    quota = gang.service.state.told.quota
    short = shortage(quota, (r.resources for r in what.members)) if waits else ""
    if short != gang.placing.short_of_quota:
        gang.placing = replace(gang.placing, short_of_quota=short)
        if short:
            gang.say(f"the quota of the Mesos role {short}")


def _hand_back_offers_of_leaving_agents(draft: Draft) -> None:
    if not maintenance.agents(draft):
        return
    going = {
        key: maintenance.remembered_seconds(draft, offer.agent_id)
        for key, offer in draft.state.desk.offers.items()
        if maintenance.is_leaving(draft, offer.agent_id)
    }
    # A task that waits for a volume there hears of the agent as soon as no notice counts any more.
    forgotten_in = min(going.values(), default=0.0)
    seconds = min(USELESS_REFUSE_SECONDS, max(SOON_REFUSE_SECONDS, forgotten_in))
    decline(draft, tuple(going), seconds, "the agent is to be taken down", OfferUse.LEAVING)


def _hand_back_offers_of_emptied_machines(draft: Draft) -> None:
    names = emptied(draft.state.capacity) if draft.state.capacity else frozenset()
    if not names:
        return
    offers = draft.state.desk.offers
    going = tuple(
        key
        for key, offer in offers.items()
        if not names.isdisjoint((offer.hostname, offer.address))
    )
    why = "the machine is to be given back"
    decline(draft, going, USELESS_REFUSE_SECONDS, why, OfferUse.LEAVING)


def _old_attempts_may_live(draft: Draft, reachable: frozenset[str]) -> Mapping[str, str]:
    """Say of each gang which attempt that it gave up may still run on an agent that is back.

    An agent that makes offers is reachable. What we left behind on it is asked about and killed
    before the same task starts anywhere (rule 5). So is what the master still owes an answer about.
    An operator may let go of an attempt: then the service no longer waits for its end.
    """
    state = draft.state
    let_go = frozenset(state.controls.let_go)
    running = [task_id for task_id in state.strays if task_id not in let_go]
    given_up = {
        record.task_id: record.agent_id
        for gang in draft.awake()
        for record in gang.tasks.records_of(gang.tasks.having(Fact.UNREACHABLE))
    }
    given_up |= {key: at for key, at in state.abandoned.items() if key not in let_go}
    doubtful = frozenset(task_id for task_id, agent_id in given_up.items() if agent_id in reachable)
    found = {
        gang: f"nothing is placed before {_named(mine)} ended: not wanted any more, and killed"
        for gang, mine in _by_gang(running).items()
    }
    # A gang that waits for an end does not ask, too.
    doubtful = frozenset(key for key in doubtful if _gang_of(key) not in found)
    if doubtful:
        doubt(draft, doubtful)
    owed = doubtful | (given_up.keys() & draft.state.reconciliation.waiting)
    for gang, mine in _by_gang(owed).items():
        told = f"nothing is placed before the master reports the state of {_named(mine)}"
        found.setdefault(gang, told)
    return found


def _gang_of(task_id: str) -> str:
    parsed = parse_task_id(task_id)
    return gang_named(parsed[1]) if parsed is not None else MAIN


def _by_gang(task_ids: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for task_id in task_ids:
        found.setdefault(_gang_of(task_id), []).append(task_id)
    return found


def _named(task_ids: Iterable[str]) -> str:
    """Name attempts, with what lets go of them."""
    found = sorted(task_ids)
    return f"{listed(found)} ('pod replace {found[0]}' goes on without waiting for it)"


def _want_nothing(draft: Draft) -> None:
    seconds = min((_idle_seconds(gang) for gang in draft.awake()), default=IDLE_REFUSE_SECONDS)
    soon = seconds <= SOON_REFUSE_SECONDS
    awaited = bool(draft.state.awaited_back) or shares.looks_for_more(draft)
    if awaited:
        seconds = min(seconds, USELESS_REFUSE_SECONDS)
    for gang in draft.awake():
        _stop_looking(gang)
    unwanted = tuple(draft.state.desk.offers)
    decline(draft, unwanted, seconds, "nothing is wanted now", OfferUse.UNWANTED)
    if draft.state.desk.table is not None:
        draft.state = replace(draft.state, desk=replace(draft.state.desk, table=None))
    if awaited:
        _ask_for_offers(draft)
    elif not soon and draft.state.desk.suppressed is not True:
        draft.state = replace(draft.state, desk=replace(draft.state.desk, suppressed=True))
        draft.act(Suppress((draft.state.spec.mesos_role,)), "nothing is wanted: no more offers")


def _stop_looking(gang: GangDraft) -> None:
    """Forget why no place was found: the gang looks for none."""
    before = gang.placing
    after = Placing(considered=before.considered, rounds=before.rounds)
    if after != before:
        gang.placing = after


def _idle_seconds(gang: GangDraft) -> float:
    """Return for how long a gang that wants nothing can do without offers."""
    if gang.job.phase in _SOON:
        return RESTARTING_REFUSE_SECONDS
    waits = gang.job.phase in BEGUN_PHASES and sidecars.is_pending(gang.view)
    return SOON_REFUSE_SECONDS if waits else IDLE_REFUSE_SECONDS


def _ask_for_offers(draft: Draft) -> None:
    desk = draft.state.desk
    if desk.suppressed is False:
        return
    if draft.now - desk.revived_at < REVIVE_SECONDS:
        draft.state = replace(draft.state, desk=replace(desk, throttled=desk.throttled + 1))
        return
    draft.state = replace(draft.state, desk=replace(desk, suppressed=False, revived_at=draft.now))
    draft.act(Revive((draft.state.spec.mesos_role,)), "asking for offers")


def _consider(gang: GangDraft, what: Wants) -> _Considered:
    """Look for places in the offers in hand, and launch what has some.

    Never some members without the others.
    """
    draft = gang.service
    choosy = avoidance.is_on(gang)
    asked = (
        *(r.name for r in what.every),
        *(f"{r.required_port or ''}{r.bound_by}" for r in what.every),
        str(choosy),
    )
    if gang.placing.considered == (draft.state.desk.version, asked):
        return _NOT_CONSIDERED
    avoided = avoidance.reasons(draft) if choosy else {}
    offers = _table(gang)
    placed = _placed(gang, what)
    salt = _port_salt(gang)
    preferred = gang.spec.placement
    result = place(what.every, offers, placed, avoided, salt, preferred=preferred)
    names = [request.name for request in what.others]
    late = avoided and not what.members and not result.complete
    if late and not avoidance.has_just_begun(gang, names):
        # No offers are held for these: they take now what is there.
        result = place(what.every, offers, placed, salt=salt, preferred=preferred)
    misfits = result.misfits
    if what.members and what.others and not result.complete:
        result = place(what.members, offers, placed, avoided, salt, preferred=preferred)
    if what.members and not result.complete:
        _keep_waiting(gang, result)
        # What is avoided may have to do in the end.
        offers_now = draft.state.desk.offers
        useless = {
            offer_id: reason
            for offer_id, reason in result.useless_offers.items()
            if offers_now[offer_id].agent_id not in avoided
        }
        seconds = SOON_REFUSE_SECONDS if what.picky else USELESS_REFUSE_SECONDS
        return _Considered((), useless, seconds, asked)
    if result.assignments:
        launch(gang, result)
    # A sidecar without a place does not hold up the gang, but says why it waits.
    gang.placing = replace(gang.placing, misfits=misfits)
    return _Considered(result.assignments)


def _is_room(gang: GangDraft, requests: tuple[TaskRequest, ...]) -> bool:
    """Say whether members that run would all find a place in the offers in hand."""
    placed = _placed(gang, Wants(requests))
    return place(requests, _table(gang), placed, salt=_port_salt(gang)).complete


def _port_salt(gang: GangDraft) -> str:
    """Return what spreads our choice of ports: the same, until one turned out to be taken.

    It differs from instance to instance: clusters that share a machine do not know of each other.
    """
    state = gang.service.state
    clashed = volume_places.found_taken(gang.view)
    return f"{state.instance}/{state.attempt}" if clashed else state.instance


def _table(gang: GangDraft) -> AgentTable:
    """Return the offers in hand as placement has them, and keep them for the next time."""
    # With numpy, which a service that wants nothing does without.
    from dcos_tensorflow.core.placement.agent_table import AgentTable

    draft = gang.service
    desk = draft.state.desk
    offers = volume_places.placeable(gang.spec, desk.offers)
    table = (desk.table or AgentTable()).of(offers)
    draft.state = replace(draft.state, desk=replace(desk, table=table))
    return table


def _placed(gang: GangDraft, what: Wants) -> tuple[TaskRecord, ...]:
    """Return what runs already, as far as placement constraints count it."""
    rules = {rule for request in what.every for rule in request.constraints}
    counted = [rule for rule in rules if depends_on_counts(rule)]
    if not counted:
        return ()
    wanted = {request.name for request in what.members}
    everywhere = any(rule.of_service for rule in counted)
    live = gang.service.state.live_tasks if everywhere else gang.tasks.live
    return tuple(record for record in live if record.name not in wanted)


def _keep_waiting(gang: GangDraft, result: Placement) -> None:
    first = result.misfits[0].reason if result.misfits else "no offer fits"
    others = len(result.misfits) - 1
    waiting = f"{counted(others, 'more task')} {agreeing(others, 'wait')}"
    more = f" (and {waiting})" if others > 0 else ""
    gang.explain(first + more)
    gang.placing = replace(gang.placing, misfits=result.misfits)
    gang.say(first + more)


def _held_since(draft: Draft, gangs: Iterable[GangDraft]) -> float:
    """Return since when offers are held for these gangs, in unix seconds.

    A hold begins only where another's ends: what is in hand goes back in time.
    """
    began = [gang.placing.held_since for gang in gangs if gang.placing.held_since]
    came = (offer.received_at for offer in draft.state.desk.offers.values())
    return min(began) if began else min(came, default=draft.now)


def _is_hold_over(draft: Draft, gangs: Iterable[GangDraft]) -> bool:
    return draft.now - _held_since(draft, gangs) >= draft.state.spec.gang.hold_seconds


def _hold_no_longer(draft: Draft, waiting: Sequence[GangDraft], blocked: str) -> None:
    """Hand every held offer back once the hold has lasted long enough."""
    offers = draft.state.desk.offers
    if not offers:
        for gang in draft.awake():
            if gang.placing.held_since:
                gang.placing = replace(gang.placing, held_since=0.0)
        return
    if not waiting:
        why = blocked or "nothing fits here now"
        use = OfferUse.BLOCKED if blocked else OfferUse.UNFIT
        decline(draft, tuple(offers), SOON_REFUSE_SECONDS, why, use)
        return
    rules = draft.state.spec.gang
    since = _held_since(draft, waiting)
    if draft.now - since < rules.hold_seconds:
        for gang in waiting:
            if not gang.placing.held_since and gang.placing.rounds:
                # What was refused at other moments would come back when these are gone, for ever.
                draft.ask_anew()
            if gang.placing.held_since != since:
                gang.placing = replace(gang.placing, held_since=since)
        return
    rounds = min(gang.placing.rounds for gang in waiting)
    wait = min(rules.retry_seconds * 2 ** min(rounds, 16), rules.max_retry_seconds)
    seconds = wait * spread(f"{draft.state.instance}/{rounds}")
    why = blocked or f"the gang was not complete within {rules.hold_seconds:g} s"
    use = OfferUse.BLOCKED if blocked else OfferUse.INCOMPLETE
    decline(draft, tuple(offers), seconds, f"{why}; others may use these", use)
    for gang in waiting:
        placing = gang.placing
        gang.placing = replace(placing, held_since=0.0, rounds=placing.rounds + 1)
