"""The passive half of a step: mirror what the outside says, decide nothing.

Called by ``core.step.step`` with the event, before ``core.advance`` and ``core.offers.use`` look
at the whole state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.cluster_spec import decider
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import AcceptInverse, Acknowledge, Exit, Resubscribe
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import Evidence, Reconciliation
from dcos_tensorflow.core.model.spec import Strategy
from dcos_tensorflow.core.model.task import TERMINAL_STATES, TaskRecord, TaskState
from dcos_tensorflow.core.offers import reconciliation, reservations
from dcos_tensorflow.core.operator import requests, uninstall
from dcos_tensorflow.core.recovery import sidecars

EXIT_REFUSED = 6
#: What Mesos says of a framework that was torn down or whose failover timeout has passed.
REMOVED = "has been removed"
EXIT_INTERRUPTED = 130


_Told = (
    events.RunnerReported
    | events.EvidenceFound
    | events.QuotaSeen
    | events.StopRequested
    | events.PlanCommand
    | events.PodCommand
    | events.ConfigurationChanged
    | events.UninstallRequested
)


def absorb(draft: Draft, event: events.Event) -> None:
    """Let the draft's state mirror ``event``."""
    match event:
        case events.Registered():
            _registered(draft, event)
        case events.Disconnected():
            _disconnected(draft, event)
        case events.FrameworkRefused():
            _refused(draft, event)
        case events.OffersReceived():
            _offers(draft, event)
        case events.OfferRescinded():
            _forget_offers(draft, (event.offer_id,))
        case events.TaskUpdate():
            _update(draft, event)
        case events.CallFailed():
            _call_failed(draft, event)
        case events.AgentFailed():
            _agent_failed(draft, event)
        case events.InverseOffersReceived():
            _inverse_offers(draft, event)
        case events.InverseOfferRescinded():
            _inverse_offer_rescinded(draft, event)
        case events.Tick():
            pass
        case _:
            _told(draft, event)


def _told(draft: Draft, event: _Told) -> None:
    """Take what runners, sandboxes, people and whoever was asked say: it is no event of Mesos'."""
    match event:
        case events.RunnerReported():
            _report(draft, event)
        case events.EvidenceFound():
            _evidence(draft, event)
        case events.QuotaSeen():
            draft.set(quota=event.quota)
        case events.StopRequested():
            _stop(draft, event)
        case events.PlanCommand() | events.PodCommand():
            requests.control(draft, event)
        case events.ConfigurationChanged():
            requests.change_configuration(draft, event)
        case events.UninstallRequested():
            uninstall.request(draft, event)


def _registered(draft: Draft, event: events.Registered) -> None:
    live = frozenset(record.task_id for record in draft.state.live_tasks)
    live |= draft.state.abandoned.keys()
    draft.set(
        registered=True,
        registered_at=draft.now,
        master=event.master,
        master_region=event.region,
        disconnected="",
        framework_id=event.framework_id,
        offers={},
        gang_since=0.0,
        suppressed=_still_suppressed(draft),
        reconciliation=Reconciliation(
            waiting=live, next_at=draft.now, round=0, implicit_at=draft.now
        ),
    )
    draft.reasons.append(f"registered with {event.master} as {event.framework_id}")


def _still_suppressed(draft: Draft) -> bool | None:
    """Return what to believe after a subscription: the driver repeats a suppression of before.

    To a first subscription of this process offers come by themselves.
    """
    first = not draft.state.registered_at
    return False if first or draft.state.suppressed is False else None


def _disconnected(draft: Draft, event: events.Disconnected) -> None:
    lost = draft.state.registered
    draft.set(registered=False, disconnected=event.why, offers={}, gang_since=0.0)
    what = "disconnected from the master" if lost else "not connected to a master"
    draft.reasons.append(f"{what}: {event.why}")


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
    for record in draft.state.live_tasks:
        draft.put(
            record.advance(
                TaskState.LOST, draft.now, reason="REASON_MASTER_DISCONNECTED", message=why
            )
        )
    draft.set(registered=False, framework_id="", offers={}, gang_since=0.0, suppressed=None)
    if draft.job.phase in (JobPhase.ENDING, JobPhase.DONE):
        draft.reasons.append(why)
    else:
        draft.act(Resubscribe(), f"{why}; subscribing as a new framework")


def _offers(draft: Draft, event: events.OffersReceived) -> None:
    # An agent that tells no region is none of another one (Mesos' allocator: isRemoteSlave).
    home = draft.state.master_region or None
    received = {
        o.offer_id: replace(o, received_at=draft.now, region=o.region or home) for o in event.offers
    }
    draft.set(
        offers={**draft.state.offers, **received},
        offers_version=draft.state.offers_version + 1,
    )
    leaving = dict(draft.job.leaving)
    for offer in event.offers:
        if offer.unavailable_from is not None:
            leaving[offer.agent_id] = offer.unavailable_from
        else:
            leaving.pop(offer.agent_id, None)
    told = [o.agent_id for o in event.offers if o.unavailable_from is not None]
    _note_leaving(draft, leaving, told)


def _note_leaving(draft: Draft, leaving: dict[str, float], told: Iterable[str]) -> None:
    known = {k: v for k, v in draft.job.leaving_told.items() if k in leaving}
    known.update(dict.fromkeys(told, draft.now))
    if leaving != draft.job.leaving or known != draft.job.leaving_told:
        draft.set_job(leaving=leaving, leaving_told=known)


def _inverse_offers(draft: Draft, event: events.InverseOffersReceived) -> None:
    """Note when agents are to be taken down, and agree: tasks leave in time.

    An inverse offer without an agent asks for all of them (mesos.proto, InverseOffer).
    """
    leaving = dict(draft.job.leaving)
    ours = {r.agent_id for r in draft.state.live_tasks}
    for offer in event.offers:
        for agent_id in (offer.agent_id,) if offer.agent_id else sorted(ours):
            leaving[agent_id] = offer.start
    known = {o.inverse_offer_id: o.agent_id for o in event.offers}
    draft.set(inverse_offers={**draft.state.inverse_offers, **known})
    _note_leaving(draft, leaving, [o.agent_id or agent for o in event.offers for agent in ours])
    draft.act(
        AcceptInverse(tuple(known)),
        f"agreed to leave {len(event.offers)} agents before their maintenance",
    )


def _inverse_offer_rescinded(draft: Draft, event: events.InverseOfferRescinded) -> None:
    left = dict(draft.state.inverse_offers)
    agent_id = left.pop(event.inverse_offer_id, None)
    draft.set(inverse_offers=left)
    if agent_id in draft.job.leaving:
        draft.set_job(leaving={k: v for k, v in draft.job.leaving.items() if k != agent_id})


def _forget_offers(draft: Draft, offer_ids: tuple[str, ...]) -> None:
    gone = set(offer_ids)
    left = {key: offer for key, offer in draft.state.offers.items() if key not in gone}
    draft.set(offers=left, offers_version=draft.state.offers_version + 1)


def _update(draft: Draft, event: events.TaskUpdate) -> None:
    if event.uuid:
        draft.acknowledgements.append(Acknowledge(event.agent_id, event.task_id, event.uuid))
    record = draft.state.task_by_id(event.task_id)
    if record is None or _was_given_up(draft, record):
        reconciliation.answered(draft, event.task_id)
        _stray(draft, event)
        return
    if reconciliation.wants_explanation(draft, record, event):
        return
    reconciliation.answered(draft, event.task_id)
    record = _reached(draft, record, event.container_address)
    after = record.advance(
        event.state,
        draft.now,
        source=event.source,
        reason=event.reason,
        message=event.message,
    )
    if after is record:
        return
    draft.put(after)
    draft.reasons.append(f"{record.name} is {after.state}" + _because(after))


def _reached(draft: Draft, record: TaskRecord, address: str) -> TaskRecord:
    """Return the record with the address of its container, where it has one of its own."""
    if record.address or not address:
        return record
    known = replace(record, address=address)
    draft.put(known)
    draft.reasons.append(f"{record.name} has the address {address}")
    return known


def _was_given_up(draft: Draft, record: TaskRecord) -> bool:
    """Say whether this attempt is over for us, whatever Mesos says of it."""
    return record.task_id in draft.state.abandoned or record.state is TaskState.LOST


def _because(record: TaskRecord) -> str:
    return f": {record.message or record.reason}" if record.terminal and record.message else ""


def _stray(draft: Draft, event: events.TaskUpdate) -> None:
    """Note a task that is not the current attempt of anything; ``core.advance`` kills it."""
    if event.state in TERMINAL_STATES and event.task_id in draft.state.abandoned:
        left = {k: v for k, v in draft.state.abandoned.items() if k != event.task_id}
        draft.set(abandoned=left)
    strays = dict(draft.state.strays)
    if event.state in TERMINAL_STATES or event.state is TaskState.UNREACHABLE:
        if strays.pop(event.task_id, None) is None:
            return
    elif event.task_id in strays:
        return
    else:
        strays[event.task_id] = (event.agent_id, 0.0)
        draft.reasons.append(f"{event.task_id} runs but is not wanted")
    draft.set(strays=strays)


def _call_failed(draft: Draft, event: events.CallFailed) -> None:
    draft.reasons.append(f"{event.call} failed: {event.message}")
    if event.call in ("SUPPRESS", "REVIVE"):
        draft.set(suppressed=None)
    if event.call == "TEARDOWN":
        uninstall.teardown_failed(draft)
    if event.call != "ACCEPT":
        return
    reservations.release_failed(draft, event.resource_ids)
    records = [r for r in map(draft.state.task_by_id, event.task_ids) if r is not None]
    if not event.ambiguous:
        for record in records:
            message = f"the launch did not reach the master: {event.message}"
            draft.put(
                record.advance(
                    TaskState.LOST, draft.now, reason="REASON_INVALID_OFFERS", message=message
                )
            )
        return
    # The master may have launched them: ask, and never send the ACCEPT again (rule 4).
    owed = draft.state.reconciliation
    waiting = owed.waiting | {r.task_id for r in records}
    draft.set(reconciliation=replace(owed, waiting=waiting, next_at=draft.now + 1.0, round=0))


def _report(draft: Draft, event: events.RunnerReported) -> None:
    record = draft.state.task_by_id(event.task_id)
    if record is None:
        return
    draft.set(reports={**draft.state.reports, event.task_id: event.report})
    _recognise(draft, record, str(event.report.get("strategy") or ""))
    end = event.report.get("exit")
    if not isinstance(end, dict) or record.terminal:
        return
    start = end.get("start")
    if not isinstance(start, int):
        return
    failed = start == record.start and event.report.get("state") == contract.RUNNER_FAILED
    # It had failed before it was told to stop for somebody else's failure.
    had_failed = record.held and start == record.start - 1
    if not (failed or had_failed) or record.failed_start == start:
        return
    code = end.get("code")
    texts = (str(end.get("summary") or ""), str(end.get("hint") or ""))
    draft.put(
        replace(
            record,
            failed_start=start,
            exit_class=str(end.get("class") or ""),
            exit_code=code if isinstance(code, int) else None,
            exit_summary="; ".join(text for text in texts if text),
            changed_at=draft.now,
        )
    )
    lines = end.get("last_lines")
    last = tuple(str(line) for line in lines) if isinstance(lines, list) else ()
    told = Evidence("; ".join(text for text in texts if text), last)
    draft.set(evidence={**draft.state.evidence, record.task_id: told})
    draft.reasons.append(f"the process of {record.name} has failed: {texts[0]}")


def _recognise(draft: Draft, record: TaskRecord, seen: str) -> None:
    """Note which strategy the job's code uses, where the options leave it to us."""
    if not seen or draft.job.strategy_seen or draft.state.spec.strategy is not Strategy.AUTO:
        return
    draft.set_job(strategy_seen=seen)
    draft.reasons.append(f"strategy auto: the job's code uses {seen} ({record.name} has seen it)")


def _evidence(draft: Draft, event: events.EvidenceFound) -> None:
    wanted = {k: v for k, v in draft.state.evidence_wanted.items() if k != event.task_id}
    found = {**draft.state.evidence, event.task_id: Evidence(event.summary, event.last_lines)}
    draft.set(evidence=found, evidence_wanted=wanted)
    job = draft.job
    record = draft.state.task_by_id(event.task_id)
    if event.result and record is not None and record.name == decider(draft.state.spec):
        draft.set_job(result=event.result)
        draft.reasons.append(f"{record.name} left a result")
        job = draft.job
    if not event.summary or not any(i.task_id == event.task_id for i in job.incidents):
        return
    incidents = tuple(
        replace(i, summary=f"{i.summary}: {event.summary}") if i.task_id == event.task_id else i
        for i in job.incidents
    )
    verdict = job.verdict
    if verdict is not None and job.incidents[-1].task_id == event.task_id:
        verdict = replace(verdict, summary=f"{verdict.summary}: {event.summary}")
    draft.set_job(incidents=incidents, verdict=verdict)
    draft.reasons.append(f"{incidents[-1].task} ended because: {event.summary}")


def _stop(draft: Draft, event: events.StopRequested) -> None:
    if draft.job.phase in (JobPhase.ENDING, JobPhase.DONE):
        sidecars.stop_who_stay(draft, event.why)
        return
    draft.enter(
        JobPhase.ENDING,
        f"stopped: {event.why}",
        verdict=Verdict(Outcome.STOPPED, EXIT_INTERRUPTED, event.why),
        finished_at=draft.now,
    )


def _agent_failed(draft: Draft, event: events.AgentFailed) -> None:
    gone = tuple(k for k, o in draft.state.offers.items() if o.agent_id == event.agent_id)
    if gone:
        _forget_offers(draft, gone)
    # The event itself proves nothing about tasks (Mesos: no order is guaranteed): ask about those
    # that the master has not spoken of yet. Nothing is placed while an answer is owed.
    owed = draft.state.reconciliation
    doubtful = {
        r.task_id
        for r in draft.state.live_tasks
        if r.agent_id == event.agent_id and r.state is not TaskState.UNREACHABLE
    }
    if doubtful:
        waiting = owed.waiting | doubtful
        draft.set(reconciliation=replace(owed, waiting=waiting, next_at=draft.now + 1.0, round=0))
