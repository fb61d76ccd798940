"""The passive half of a step: it mirrors facts from outside, and decides nothing.

``core.step`` calls it with every event that is no request of an operator. ``core.advance`` and
``core.offers`` look at the state afterwards and decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.agents import maintenance
from dcos_tensorflow.core.counted import agreeing, counted
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.failures import evidence
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import (
    AcceptInverse,
    Acknowledge,
    CapacityKept,
    Exit,
    Resubscribe,
)
from dcos_tensorflow.core.model.bounds import NAME_BYTES, TEXT_BYTES, cut
from dcos_tensorflow.core.model.job import ENDED_PHASES, Incident
from dcos_tensorflow.core.model.own_error import own_error_of
from dcos_tensorflow.core.model.report import Report, may_be_taken_back, peer_address, taken_back_at
from dcos_tensorflow.core.model.service_state import Evidence, Removal, Stray
from dcos_tensorflow.core.model.task import TERMINAL_STATES, TaskRecord, TaskState
from dcos_tensorflow.core.offers import reconciliation, reservations
from dcos_tensorflow.core.operator.uninstall import HEARD_SECONDS
from dcos_tensorflow.core.spec.service_spec import Strategy
from dcos_tensorflow.core.work import assignment as units
from dcos_tensorflow.core.work import shares, slots

EXIT_REFUSED = 6
#: What Mesos says of a framework that was torn down or whose failover timeout has passed.
REMOVED = "has been removed"
#: A call that failed is asked about after so long (seconds).
ASK_AFTER_SECONDS = 1.0


def absorb(draft: Draft, event: events.Event) -> None:
    """Let the draft's state mirror ``event``."""
    mirror = _MIRRORS.get(type(event))
    if mirror is not None:
        mirror(draft, event)


# -- the subscription ------------------------------------------------------------------------------


def _registered(draft: Draft, event: events.Registered) -> None:
    known = draft.state.subscription
    # To a first subscription of this process offers come by themselves; the driver repeats a
    # suppression of before.
    first = not known.registered_at
    suppressed = False if first or draft.state.desk.suppressed is False else None
    draft.drop_all_offers()
    draft.state = replace(
        draft.state,
        subscription=replace(
            known,
            registered=True,
            registered_at=draft.now,
            master=event.master,
            master_region=event.region,
            disconnected="",
        ),
        desk=replace(draft.state.desk, suppressed=suppressed),
        framework_id=event.framework_id,
    )
    reconciliation.begin_anew(draft)
    draft.reasons.append(f"registered with {event.master} as {event.framework_id}")


def _disconnected(draft: Draft, event: events.Disconnected) -> None:
    known = draft.state.subscription
    lost = replace(known, registered=False, disconnected=event.why)
    draft.state = replace(draft.state, subscription=lost)
    draft.drop_all_offers()
    was = "disconnected from the master" if known.registered else "not connected to a master"
    draft.reasons.append(f"{was}: {event.why}")


def _refused(draft: Draft, event: events.FrameworkRefused) -> None:
    """Begin again as a new framework where the old one was removed; else leave.

    Mesos ends every task of a removed framework, those on unreachable agents when they are back
    (master.cpp: removeFramework, and re-registration of an agent with a completed framework). So
    nothing of it can be alive, or will stay so.
    """
    why = f"the master refused the framework: {event.message}"
    if REMOVED not in event.message:
        draft.act(Exit(EXIT_REFUSED, why), why)
        return
    for gang in draft.gangs():
        for record in gang.tasks.live:
            gang.advance(record, TaskState.LOST, reason="REASON_MASTER_DISCONNECTED", message=why)
    gone = replace(draft.state.subscription, registered=False)
    draft.state = replace(draft.state, subscription=gone, framework_id="")
    draft.drop_all_offers()
    draft.ask_anew()
    if all(gang.job.phase in ENDED_PHASES for gang in draft.state.gangs.values()):
        draft.reasons.append(why)
    else:
        draft.act(Resubscribe(), f"{why}; subscribing as a new framework")


def _former_life(draft: Draft, event: events.FormerLifeKnown) -> None:
    """Take over the framework that the service was before its state was lost, if it was one.

    Its tasks are given up: they are killed before anything is launched, and the job goes on from
    its checkpoint.
    """
    if not draft.state.seeks_former_life:
        return
    draft.state = replace(draft.state, seeks_former_life=False)
    if not event.framework_id:
        return
    tasks = len(event.tasks)
    what = (
        f"the state of this service was lost; Mesos knew it as the framework"
        f" {event.framework_id}, which goes on: {counted(tasks, 'task')} of it"
        f" {agreeing(tasks, 'are')} ended, and the job starts again from its last checkpoint"
    )
    abandoned = {**draft.state.abandoned, **event.tasks}
    draft.state = replace(draft.state, framework_id=event.framework_id, abandoned=abandoned)
    for gang in draft.gangs():
        lost = Incident(gang.spec.decider, "", draft.now, "state lost", what, charged=False)
        gang.job = replace(gang.job, incidents=(*gang.job.incidents, lost), why=what)
    draft.reasons.append(what)


def _call_failed(draft: Draft, event: events.CallFailed) -> None:
    draft.reasons.append(f"{event.call} failed: {event.message}")
    if event.call in ("SUPPRESS", "REVIVE"):
        draft.ask_anew()
    if event.call == "TEARDOWN":
        # It is tried again by and by: the master did not hear that the framework is to be removed.
        again = Removal(not_before=draft.now + HEARD_SECONDS, erased=draft.state.removal.erased)
        draft.state = replace(draft.state, removal=again)
    if event.call != "ACCEPT":
        return
    reservations.release_failed(draft, event.resource_ids)
    records = [r for r in map(draft.state.task_by_id, event.task_ids) if r is not None]
    if event.ambiguous:
        # The master may have launched them: ask, and never send the ACCEPT again (rule 4).
        doubtful = frozenset(r.task_id for r in records)
        reconciliation.ask_in(draft, ASK_AFTER_SECONDS, doubtful)
        return
    message = f"the launch did not reach the master: {event.message}"
    for record in records:
        reason = "REASON_INVALID_OFFERS"
        draft.put(record.advance(TaskState.LOST, draft.now, reason=reason, message=message))


# -- offers and agents -----------------------------------------------------------------------------


def _offers(draft: Draft, event: events.OffersReceived) -> None:
    # An agent that tells no region is none of another one (Mesos' allocator: isRemoteSlave).
    home = draft.state.subscription.master_region or None
    draft.take_offers(
        {
            o.offer_id: replace(o, received_at=draft.now, region=o.region or home)
            for o in event.offers
        }
    )
    shares.note_offered(draft, (offer.agent_id for offer in event.offers))
    starts = dict(draft.state.maintenance.starts)
    told = []
    for offer in event.offers:
        if offer.unavailable_from is not None:
            starts[offer.agent_id] = offer.unavailable_from
            told.append(offer.agent_id)
        else:
            starts.pop(offer.agent_id, None)
    if starts or draft.state.maintenance.starts:
        maintenance.note(draft, starts, told)


def _inverse_offers(draft: Draft, event: events.InverseOffersReceived) -> None:
    """Note when agents are to be taken down, and agree: tasks leave in time.

    An inverse offer without an agent asks for all of them (mesos.proto, InverseOffer).
    """
    ours = sorted({r.agent_id for r in draft.state.live_tasks})
    starts, asked = dict(draft.state.maintenance.starts), {}
    for offer in event.offers:
        for agent_id in (offer.agent_id,) if offer.agent_id else ours:
            starts[agent_id] = offer.start
            asked[agent_id] = offer.inverse_offer_id
    maintenance.note(draft, starts, asked)
    known = {**draft.state.inverse_offers, **asked}
    left = {a: key for a, key in known.items() if a in draft.state.maintenance.starts}
    draft.state = replace(draft.state, inverse_offers=left)
    draft.act(
        AcceptInverse(tuple(o.inverse_offer_id for o in event.offers)),
        f"agreed to leave {counted(len(event.offers), 'agent')} before their maintenance",
    )


def _inverse_offer_rescinded(draft: Draft, event: events.InverseOfferRescinded) -> None:
    """Take back what was said of an agent: the schedule has changed, or the agent went."""
    known = draft.state.inverse_offers
    rescinded = {a for a, key in known.items() if key == event.inverse_offer_id}
    left = {a: key for a, key in known.items() if a not in rescinded}
    draft.state = replace(draft.state, inverse_offers=left)
    starts = draft.state.maintenance.starts
    maintenance.note(draft, {a: at for a, at in starts.items() if a not in rescinded}, ())


def _agent_failed(draft: Draft, event: events.AgentFailed) -> None:
    offers = draft.state.desk.offers
    draft.drop_offers([key for key, offer in offers.items() if offer.agent_id == event.agent_id])
    shares.forget(draft, event.agent_id)
    # The event itself proves nothing about tasks (Mesos: no order is guaranteed): ask about those
    # that the master has not spoken of yet. Nothing is placed while an answer is owed.
    doubtful = frozenset(
        record.task_id
        for gang in draft.state.gangs.values()
        if gang.tasks.on_agent(event.agent_id)
        for record in gang.tasks.live
        if record.agent_id == event.agent_id and record.state is not TaskState.UNREACHABLE
    )
    if doubtful:
        reconciliation.ask_in(draft, ASK_AFTER_SECONDS, doubtful)


# -- tasks -----------------------------------------------------------------------------------------


def _update(draft: Draft, event: events.TaskUpdate) -> None:
    if event.uuid:
        draft.acknowledgements.append(Acknowledge(event.agent_id, event.task_id, event.uuid))
    record = draft.state.task_by_id(event.task_id)
    gang = draft.gang_with(record.name) if record is not None else None
    if record is None or gang is None or _was_given_up(draft, record):
        reconciliation.answered(draft, event.task_id)
        _stray(draft, event)
        return
    if reconciliation.wants_explanation(gang, record, event):
        return
    reconciliation.answered(draft, event.task_id)
    reached = _reached(gang, record, event.container_address)
    after = reached.advance(
        event.state, draft.now, source=event.source, reason=event.reason, message=event.message
    )
    if after is reached:
        return
    gang.put(after)
    because = f": {after.message}" if after.terminal and after.message else ""
    gang.say(f"{record.name} is {after.state}{because}")


def _reached(gang: GangDraft, record: TaskRecord, address: str) -> TaskRecord:
    """Return the record with the address of its container, where it has one of its own."""
    if record.address or not address:
        return record
    known = replace(record, address=address)
    gang.put(known)
    gang.say(f"{record.name} has the address {address}")
    return known


def _found_by_peers(gang: GangDraft, record: TaskRecord, address: str) -> TaskRecord:
    """Return the record with the address that its runner has found in the peers' network."""
    if not address:
        return record
    known = replace(record, peer_address=address)
    gang.put(known)
    gang.say(f"peers reach {record.name} at {address}")
    return known


def _was_given_up(draft: Draft, record: TaskRecord) -> bool:
    """Say whether this attempt is over for us, whatever Mesos says of it."""
    return record.task_id in draft.state.abandoned or record.state is TaskState.LOST


def _stray(draft: Draft, event: events.TaskUpdate) -> None:
    """Note a task that is not the current attempt of anything; ``core.advance`` kills it."""
    state, task_id = draft.state, event.task_id
    ended = event.state in TERMINAL_STATES
    if ended and (task_id in state.abandoned or task_id in state.controls.let_go):
        left = {k: v for k, v in state.abandoned.items() if k != task_id}
        controls = state.controls.waiting_for(task_id)
        draft.state = replace(state, abandoned=left, controls=controls)
        reservations.attempt_ended(draft, task_id, event.state)
        state = draft.state
    strays = dict(state.strays)
    if ended or event.state is TaskState.UNREACHABLE:
        if strays.pop(task_id, None) is None:
            return
    elif task_id in strays:
        return
    else:
        strays[task_id] = Stray(event.agent_id)
        draft.reasons.append(f"{task_id} runs but is not wanted")
    draft.state = replace(draft.state, strays=strays)


# -- what is told beside Mesos ---------------------------------------------------------------------


def _report(draft: Draft, event: events.RunnerReported) -> None:
    record = draft.state.task_by_id(event.task_id)
    gang = draft.gang_with(record.name) if record is not None else None
    if record is None or gang is None:
        return
    draft.note_report(event.task_id, event.report)
    if gang.spec.peer_network and not record.peer_address:
        record = _found_by_peers(gang, record, peer_address(event.report))
    _recognise(gang, record, cut(str(event.report.get("strategy") or ""), NAME_BYTES))
    at = taken_back_at(event.report)
    if at is not None:
        maintenance.notice(gang, record, at)
    elif may_be_taken_back(event.report):
        maintenance.advise(gang, record)
    start = _failed_start(record, event.report)
    if start is None:
        return
    end = event.report["exit"]
    code = end.get("code")
    texts = (str(end.get("summary") or ""), str(end.get("hint") or ""))
    summary = cut("; ".join(text for text in texts if text), TEXT_BYTES)
    gang.put(
        replace(
            record,
            failed_start=start,
            exit_class=cut(str(end.get("class") or ""), NAME_BYTES),
            exit_code=code if isinstance(code, int) and abs(code) < contract.MOST_STEPS else None,
            exit_summary=summary,
            error=own_error_of(end.get("error")),
            changed_at=draft.now,
        )
    )
    lines = end.get("last_lines")
    last = tuple(str(line) for line in lines) if isinstance(lines, list) else ()
    told = draft.state.told
    found = {**told.evidence, record.task_id: Evidence(summary, last)}
    draft.state = replace(draft.state, told=replace(told, evidence=found))
    gang.say(f"the process of {record.name} has failed: {texts[0]}")


def _failed_start(record: TaskRecord, report: Report) -> int | None:
    """Return which start has failed, where the report tells of one that was not known to have."""
    end = report.get("exit")
    start = end.get("start") if isinstance(end, Mapping) else None
    if not isinstance(start, int) or record.terminal or record.failed_start == start:
        return None
    failed = start == record.start and report.get("state") == contract.RUNNER_FAILED
    # It had failed before it was told to stop for another task's failure.
    had_failed = record.held and start == record.start - 1
    return start if failed or had_failed else None


def _recognise(gang: GangDraft, record: TaskRecord, seen: str) -> None:
    """Note which strategy the job's code uses, where the options leave it to us."""
    if not seen or gang.job.strategy_seen or gang.spec.strategy is not Strategy.AUTO:
        return
    gang.job = replace(gang.job, strategy_seen=seen)
    gang.say(f"strategy auto: the job's code uses {seen} ({record.name} has seen it)")


def _agents(draft: Draft, event: events.AgentsSeen) -> None:
    draft.state = replace(draft.state, told=replace(draft.state.told, silent=event.silent))


def _leave_machines(draft: Draft, event: events.CapacityNoted) -> None:
    """Have the tasks on machines that are to be left look for another place."""
    moving = {name for record in event.changes.values() if record for name in record.moving}
    for record in draft.state.live_tasks if moving else ():
        gang = draft.gang_with(record.name)
        if gang is not None and not moving.isdisjoint((record.hostname, record.address)):
            maintenance.notice(gang, record, draft.now + contract.NOTICE_SECONDS)


def _capacity(draft: Draft, event: events.CapacityNoted) -> None:
    """Keep what is noted of purchases; the sender hears of it once it is kept."""
    if event.changes:
        known = {**draft.state.capacity, **event.changes}
        kept = {key: record for key, record in known.items() if record is not None}
        draft.state = replace(draft.state, capacity=kept)
        _leave_machines(draft, event)
    told = draft.state.told
    if event.told != told.capacity:
        draft.reasons += [
            f"no machine is bought for {who}: {why}" for who, why in event.told.items()
        ]
        draft.state = replace(draft.state, told=replace(told, capacity=event.told))
    draft.actions.append(CapacityKept(event.number))


_MIRRORS: dict[type, Callable[[Draft, Any], None]] = {
    events.Registered: _registered,
    events.Disconnected: _disconnected,
    events.FrameworkRefused: _refused,
    events.FormerLifeKnown: _former_life,
    events.CallFailed: _call_failed,
    events.OffersReceived: _offers,
    events.OfferRescinded: lambda draft, event: draft.drop_offers((event.offer_id,)),
    events.InverseOffersReceived: _inverse_offers,
    events.InverseOfferRescinded: _inverse_offer_rescinded,
    events.AgentFailed: _agent_failed,
    events.TaskUpdate: _update,
    events.RunnerReported: _report,
    events.EvidenceFound: evidence.learn,
    events.QuotaSeen: lambda draft, event: shares.note_quota(draft, event.quota),
    events.AgentsSeen: _agents,
    events.UnitsGiven: units.given,
    events.UnitPruned: units.pruned,
    events.UnitsRefused: slots.refused,
    events.CapacityNoted: _capacity,
}
