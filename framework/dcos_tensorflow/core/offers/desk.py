"""What becomes of each offer: the active half of a step, part two.

Called by ``core.step`` after ``core.advance``. A gang is placed all or none; offers that cannot
help go back at once with a long filter; none is held longer than ``gang.hold_seconds``; when
nothing is wanted the master is told (rule 6). Every misfit keeps its reason, and so does every wait
(rule 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dcos_tensorflow.core.counted import agreeing, counted, listed
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.actions import Revive, Suppress
from dcos_tensorflow.core.model.gang import Placing
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.quota import shortage
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.offers import reservations, volume_places
from dcos_tensorflow.core.offers.launching import SOON_REFUSE_SECONDS, launch
from dcos_tensorflow.core.offers.reconciliation import doubt
from dcos_tensorflow.core.offers.returning import decline
from dcos_tensorflow.core.offers.wants import Wants, wants
from dcos_tensorflow.core.placement.agent_table import AgentTable
from dcos_tensorflow.core.placement.constraints import depends_on_counts
from dcos_tensorflow.core.placement.place import Placement, place
from dcos_tensorflow.core.recovery import avoidance, sidecars
from dcos_tensorflow.core.recovery.backoff import spread
from dcos_tensorflow.core.recovery.maintenance import is_leaving

#: Seconds. Nothing is wanted / this offer cannot help.
IDLE_REFUSE_SECONDS = 3600.0
#: A restart is under way: its members may need a place any moment now.
RESTARTING_REFUSE_SECONDS = 1.0
USELESS_REFUSE_SECONDS = 300.0
#: REVIVE drops every filter of the role: not more often than this.
REVIVE_SECONDS = 5.0

#: Phases in which nothing is wanted now, but will be in seconds.
_SOON = frozenset({JobPhase.STOPPING, JobPhase.BACKING_OFF, JobPhase.PLACING, JobPhase.STAGING})
_RUNNING = frozenset({JobPhase.STARTING, JobPhase.RUNNING})


def use_offers(draft: Draft) -> None:
    """Decide about every offer in hand."""
    if not draft.state.registered:
        return
    # Also an agent whose offers go back at once has said that it is there.
    reachable = frozenset(offer.agent_id for offer in draft.state.desk.offers.values())
    reservations.look_after(draft)
    _hand_back_offers_of_leaving_agents(draft)
    wanted = [(gang, what) for gang in draft.gangs() if (what := wants(gang))]
    if not wanted:
        _want_nothing(draft)
        return
    _ask_for_offers(draft)
    blocked = _old_attempts_may_live(draft, reachable)
    waiting = [gang for gang, what in wanted if what.members]
    for gang, what in wanted:
        if blocked:
            gang.block(blocked)
        elif draft.state.desk.offers and _consider(gang, what):
            waiting = [other for other in waiting if other is not gang]
            if not waiting:
                left = tuple(draft.state.desk.offers)
                decline(draft, left, SOON_REFUSE_SECONDS, "not needed: everything has a place")
        _tell_of_quota(gang, what)
    _hold_no_longer(draft, waiting, blocked)


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
    if not draft.state.maintenance.starts:
        return
    offers = draft.state.desk.offers
    going = tuple(key for key, offer in offers.items() if is_leaving(draft, offer.agent_id))
    decline(draft, going, USELESS_REFUSE_SECONDS, "the agent is to be taken down for maintenance")


def _old_attempts_may_live(draft: Draft, reachable: frozenset[str]) -> str:
    """Say which attempt that was given up may still run on an agent that is back; empty for none.

    An agent that makes offers is reachable. What we left behind on it is asked about and killed
    before the same task starts anywhere (rule 5). So is what the master still owes an answer about.
    An operator may let go of an attempt: then nobody waits for its end.
    """
    state = draft.state
    let_go = frozenset(state.controls.let_go)
    running = [task_id for task_id in state.strays if task_id not in let_go]
    given_up = {
        record.task_id: record.agent_id
        for gang in state.gangs.values()
        for record in gang.tasks.records_of(gang.tasks.having(Fact.UNREACHABLE))
    }
    given_up |= {key: at for key, at in state.abandoned.items() if key not in let_go}
    doubtful = frozenset(task_id for task_id, agent_id in given_up.items() if agent_id in reachable)
    if running:
        return f"nothing is placed before {_named(running)} ended: not wanted any more, and killed"
    if doubtful:
        doubt(draft, doubtful)
    owed = doubtful | (given_up.keys() & state.reconciliation.waiting)
    if not owed:
        return ""
    return f"nothing is placed before the master says what became of {_named(owed)}"


def _named(task_ids: Iterable[str]) -> str:
    """Name attempts, with what lets go of them."""
    found = sorted(task_ids)
    return f"{listed(found)} ('pod replace {found[0]}' goes on without waiting for it)"


def _want_nothing(draft: Draft) -> None:
    seconds = min((_idle_seconds(gang) for gang in draft.gangs()), default=IDLE_REFUSE_SECONDS)
    soon = seconds <= SOON_REFUSE_SECONDS
    awaited = bool(draft.state.awaited_back)
    if awaited:
        seconds = min(seconds, USELESS_REFUSE_SECONDS)
    for gang in draft.gangs():
        _stop_looking(gang)
    decline(draft, tuple(draft.state.desk.offers), seconds, "nothing is wanted now")
    if draft.state.desk.table is not None:
        draft.state = replace(draft.state, desk=replace(draft.state.desk, table=None))
    if awaited:
        _ask_for_offers(draft)
    elif not soon and draft.state.desk.suppressed is not True:
        draft.state = replace(draft.state, desk=replace(draft.state.desk, suppressed=True))
        draft.act(Suppress((draft.state.spec.mesos_role,)), "nothing is wanted: no more offers")


def _stop_looking(gang: GangDraft) -> None:
    """Forget why nobody found a place: nobody looks for one."""
    before = gang.placing
    after = Placing(considered=before.considered, rounds=before.rounds)
    if after != before:
        gang.placing = after


def _idle_seconds(gang: GangDraft) -> float:
    """Return for how long a gang that wants nothing can do without offers."""
    if gang.job.phase in _SOON:
        return RESTARTING_REFUSE_SECONDS
    waits = gang.job.phase in _RUNNING and sidecars.is_pending(gang.view)
    return SOON_REFUSE_SECONDS if waits else IDLE_REFUSE_SECONDS


def _ask_for_offers(draft: Draft) -> None:
    desk = draft.state.desk
    if desk.suppressed is False or draft.now - desk.revived_at < REVIVE_SECONDS:
        return
    draft.state = replace(draft.state, desk=replace(desk, suppressed=False, revived_at=draft.now))
    draft.act(Revive((draft.state.spec.mesos_role,)), "asking for offers")


def _consider(gang: GangDraft, what: Wants) -> bool:
    """Look for places in the offers in hand; say whether something was launched.

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
        return False
    avoided = avoidance.reasons(draft) if choosy else {}
    offers = _table(gang)
    placed = _placed(draft, what)
    salt = _port_salt(gang)
    result = place(what.every, offers, placed, avoided, salt)
    names = [request.name for request in what.others]
    late = avoided and not what.members and not result.complete
    if late and not avoidance.has_just_begun(gang, names):
        # Nobody holds offers for these: they take now what is there.
        result = place(what.every, offers, placed, salt=salt)
    misfits = result.misfits
    if what.members and what.others and not result.complete:
        result = place(what.members, offers, placed, avoided, salt)
    if what.members and not result.complete:
        useless = SOON_REFUSE_SECONDS if what.picky else USELESS_REFUSE_SECONDS
        _keep_waiting(gang, result, asked, useless, avoided)
        return False
    if result.assignments:
        launch(gang, result)
    # A sidecar without a place does not hold up the gang, but says why it waits.
    gang.placing = replace(gang.placing, misfits=misfits)
    return bool(result.assignments)


def _port_salt(gang: GangDraft) -> str:
    """Return what spreads our choice of ports: the same, until one turned out to be taken.

    It differs from instance to instance: clusters that share a machine do not know of each other.
    """
    state = gang.service.state
    clashed = volume_places.found_taken(gang.view)
    return f"{state.instance}/{state.attempt}" if clashed else state.instance


def _table(gang: GangDraft) -> AgentTable:
    """Return the offers in hand as placement has them, made of the table before and kept."""
    draft = gang.service
    desk = draft.state.desk
    before = desk.table if desk.table is not None else AgentTable()
    table = before.of(volume_places.placeable(gang.spec, desk.offers))
    draft.state = replace(draft.state, desk=replace(desk, table=table))
    return table


def _placed(draft: Draft, what: Wants) -> tuple[TaskRecord, ...]:
    """Return what runs already, as far as placement constraints count it."""
    rules = {rule for request in what.every for rule in request.constraints}
    if not any(depends_on_counts(rule) for rule in rules):
        return ()
    wanted = {request.name for request in what.members}
    return tuple(record for record in draft.state.live_tasks if record.name not in wanted)


def _keep_waiting(
    gang: GangDraft,
    result: Placement,
    asked: tuple[str, ...],
    refuse_seconds: float,
    avoided: Mapping[str, str],
) -> None:
    """Hold what helps, hand back what does not, and remember why."""
    draft = gang.service
    first = result.misfits[0].reason if result.misfits else "no offer fits"
    others = len(result.misfits) - 1
    waiting = f"{counted(others, 'more task')} {agreeing(others, 'wait')}"
    more = f" (and {waiting})" if others > 0 else ""
    gang.explain(first + more)
    gang.placing = replace(gang.placing, misfits=result.misfits)
    gang.say(first + more)
    by_reason: dict[str, list[str]] = {}
    for offer_id, reason in result.useless_offers.items():
        if draft.state.desk.offers[offer_id].agent_id in avoided:
            # It may have to do in the end.
            continue
        by_reason.setdefault(reason, []).append(offer_id)
    for reason, offer_ids in by_reason.items():
        decline(draft, tuple(offer_ids), refuse_seconds, reason)
    # What was declined changes nothing about what was considered.
    considered = (draft.state.desk.version, asked)
    gang.placing = replace(gang.placing, considered=considered)


def _hold_no_longer(draft: Draft, waiting: list[GangDraft], blocked: str) -> None:
    """Hand every held offer back once the hold has lasted long enough."""
    desk = draft.state.desk
    if not desk.offers:
        for gang in draft.gangs():
            if gang.placing.held_since:
                gang.placing = replace(gang.placing, held_since=0.0)
        return
    if not waiting:
        why = blocked or "nothing fits here now"
        decline(draft, tuple(desk.offers), SOON_REFUSE_SECONDS, why)
        return
    came = min(offer.received_at for offer in desk.offers.values())
    rules = draft.state.spec.gang
    over = 0
    for gang in waiting:
        if draft.now - (gang.placing.held_since or came) >= rules.hold_seconds:
            over += 1
            continue
        if not gang.placing.held_since and gang.placing.rounds:
            # What was refused at other moments would come back when these are gone, for ever.
            draft.ask_anew()
        since = gang.placing.held_since or came
        gang.placing = replace(gang.placing, held_since=since)
    if over < len(waiting):
        return
    rounds = min(gang.placing.rounds for gang in waiting)
    wait = min(rules.retry_seconds * 2 ** min(rounds, 16), rules.max_retry_seconds)
    seconds = wait * spread(f"{draft.state.instance}/{rounds}")
    why = blocked or f"the gang was not complete within {rules.hold_seconds:g} s"
    decline(draft, tuple(desk.offers), seconds, f"{why}; others may use these")
    for gang in waiting:
        placing = gang.placing
        gang.placing = replace(placing, held_since=0.0, rounds=placing.rounds + 1)
