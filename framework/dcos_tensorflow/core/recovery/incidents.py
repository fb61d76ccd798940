"""Failures: one cause and all that died of it, what it costs, and who restarts because of it.

Called by ``core.advance``. The first failure classifies an incident; members that end within
seconds of it, with a start that had begun before it, are collateral and cost nothing (a peer's
UnavailableError is exit code 1 like any error of the user's). What is nobody's fault is not
charged; what never gets anywhere ends all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.actions import CollectEvidence
from dcos_tensorflow.core.model.job import Incident, JobPhase, JobState, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import (
    RetrySpec,
    ServiceSpec,
    Strategy,
    TaskRole,
    split_task_name,
)
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.recovery import causes, restarts
from dcos_tensorflow.core.recovery.backoff import backoff_seconds
from dcos_tensorflow.core.recovery.causes import INVALID_OFFERS_REASON, Cause
from dcos_tensorflow.core.recovery.members import (
    decider_of,
    known_step,
    members,
    strategy_of,
)
from dcos_tensorflow.core.recovery.restart_table import Loss, ends_with, restart_set

#: How long an ended task's sandbox may take to tell why (seconds); the verdict waits for it.
EVIDENCE_SECONDS = 10.0
#: Peers die of a failure within this time: MultiWorkerMirrored notices a silent loss after 6 to
#: 11 s, a process death after 0.7 to 10 s (measured).
COLLATERAL_SECONDS = 15.0
#: A job whose steps are unknown has got somewhere when it ran for so long.
FRUITFUL_SECONDS = 60.0
#: An agent's failures count against it for so long.
AGENT_WINDOW_SECONDS = 900.0
#: A parameter server keeps the variables of every chief it ever had (measured): with so much of
#: its memory in use it is restarted together with the chief.
PS_MEMORY_SHARE = 0.8


def handle(draft: Draft, down: Sequence[TaskRecord]) -> None:
    """Open an incident for members that are newly down, or add them to the one under way."""
    for record in down:
        if record.terminal:
            collect_evidence(draft, record)
    ordered = sorted(down, key=lambda r: (_is_effect(r), r.changed_at, r.name))
    for record in ordered:
        _count_against_agent(draft, record)
    rest = [r for r in ordered if not _joins(draft, r)]
    if rest:
        opened = _open(draft, rest[0])
        for record in rest[1:]:
            _joins(draft, record)
        if not opened:
            return
    _restart(draft, ordered)


def see_cause(draft: Draft) -> None:
    """Put an incident right whose effect was seen before its cause, in a member that is stopping.

    Its processes restart anyway; but what the cause costs, and what it says, must not be lost.
    """
    newest = draft.job.incidents[-1:]
    if not newest or newest[0].kind != causes.PEER_LOST:
        return
    effect = newest[0]
    if not _is_open(draft, effect):
        return
    for name in members(draft.state):
        record = draft.state.tasks.get(name)
        if record is None or record.changed_at < effect.at:
            continue
        if name in (effect.task, *effect.collateral):
            continue
        had_failed = record.held and 0 < record.failed_start == record.start - 1
        # Whom we kill ends as KILLED.
        died = record.state is TaskState.FAILED
        if not (had_failed or died) or (record.kill_reason and not died):
            continue
        seen = replace(record, start=record.failed_start) if had_failed and not died else record
        if not _is_effect(seen) and _concerns(draft, effect, replace(seen, ordered_at=0.0)):
            _count_against_agent(draft, seen)
            _open(draft, replace(seen, ordered_at=0.0))
            return


def time_out(draft: Draft, late: TaskRecord, seconds: float) -> None:
    """Open an incident for a member that does not come up."""
    summary = (
        f"{late.name} is still {late.state} {seconds:g} s after its launch"
        f"{_unheard(draft.state, late)}"
    )
    incident = Incident(
        late.name, late.task_id, draft.now, causes.START_TIMED_OUT, summary, charged=True
    )
    if not _note(draft, incident, Cause(causes.START_TIMED_OUT, charged=True), late):
        return
    draft.set_job(replacing=(*draft.job.replacing, late.name))
    losses = {late.name: Loss.STALLED}
    _begin_restart(draft, losses, incident.summary)


def _unheard(state: ServiceState, late: TaskRecord) -> str:
    """Return what keeps us from hearing of a held process, which its runner alone can start."""
    if not late.address:
        return ", and Mesos has told no address of its container"
    if late.held and late.task_id not in state.reports:
        return f", and its task runner was never heard at {late.address}:{late.ports[-1]}"
    return ""


def collect_evidence(draft: Draft, record: TaskRecord) -> None:
    """Ask for what an ended task's sandbox tells."""
    if not record.agent_id:
        return
    until = draft.now + EVIDENCE_SECONDS
    draft.set(evidence_wanted={**draft.state.evidence_wanted, record.task_id: until})
    draft.act(
        CollectEvidence(record.task_id, record.agent_id),
        f"reading from its sandbox how {record.name} ended",
    )


def within_window(job: JobState, retry: RetrySpec, now: float) -> tuple[Incident, ...]:
    """Return the incidents that still count, oldest first."""
    return tuple(i for i in job.incidents if i.at > now - retry.window_seconds)


def retries_used(job: JobState, retry: RetrySpec, now: float) -> int:
    """Return how many of the incidents in the window were charged."""
    return sum(1 for i in within_window(job, retry, now) if i.charged)


def loss_of(record: TaskRecord) -> Loss:
    """Return how a member was lost, as its peers see it."""
    if _never_ran(record):
        # Its peers know of nothing but of the end before.
        return Loss.PROCESS
    if record.state is TaskState.UNREACHABLE or record.state is TaskState.LOST:
        return Loss.SILENT
    if record.process_failed and record.exit_class == contract.EXIT_CLASS_STALLED:
        return Loss.STALLED
    return Loss.PROCESS


def _never_ran(record: TaskRecord) -> bool:
    """Say whether the user's process was never started in this container."""
    refused = record.state is TaskState.LOST and record.reason == INVALID_OFFERS_REASON
    return refused or (record.start == 1 and record.held)


def _is_effect(record: TaskRecord) -> bool:
    return causes.cause_of(record).kind == causes.PEER_LOST


def _joins(draft: Draft, record: TaskRecord) -> bool:
    """Say whether a failure belongs to the newest incident; note it there when it does."""
    if not draft.job.incidents:
        return False
    incident = draft.job.incidents[-1]
    began = max(record.launched_at, record.ordered_at)
    if draft.now > incident.at + COLLATERAL_SECONDS or began > incident.at:
        return False
    if incident.kind == causes.PEER_LOST and not _is_effect(record):
        return False
    if causes.cause_of(record).charged and not _may_be_effect(draft, incident, record):
        return False
    if record.name != incident.task and record.name not in incident.collateral:
        noted = replace(incident, collateral=(*incident.collateral, record.name))
        draft.set_job(incidents=(*draft.job.incidents[:-1], noted))
        draft.reasons.append(f"{causes.describe(record)}; it ended because {incident.task} had")
    return True


def _may_be_effect(draft: Draft, incident: Incident, record: TaskRecord) -> bool:
    """Say whether somebody in the incident takes this member along: else its error is its own."""
    strategy, decider = strategy_of(draft.state), decider_of(draft.state)
    return any(
        ends_with(strategy, decider, lost, record.name)
        for lost in (incident.task, *incident.collateral)
        if lost != record.name
    )


def _open(draft: Draft, record: TaskRecord) -> bool:
    """Note an incident; say whether the job goes on."""
    cause = causes.cause_of(record)
    known = draft.job.incidents
    collateral: tuple[str, ...] = ()
    if known and known[-1].kind == causes.PEER_LOST and _concerns(draft, known[-1], record):
        # The effect was seen before its cause: it is one incident.
        collateral = (known[-1].task, *known[-1].collateral)
        draft.set_job(incidents=known[:-1], fruitless=max(draft.job.fruitless - 1, 0))
    incident = Incident(
        task=record.name,
        task_id=record.task_id,
        at=draft.now,
        kind=cause.kind,
        summary=causes.describe(record),
        charged=cause.charged,
        collateral=collateral,
        step=_credible(known_step(draft.state)),
    )
    return _note(draft, incident, cause, record)


def _concerns(draft: Draft, incident: Incident, record: TaskRecord) -> bool:
    began = max(record.launched_at, record.ordered_at)
    return _is_open(draft, incident) and began <= incident.at


def _is_open(draft: Draft, incident: Incident) -> bool:
    """Say whether a failure that is seen now may be the incident's.

    The cause of an effect can come late, its update being lost: whoever ended of it has not been
    started again for as long.
    """
    if draft.now <= incident.at + COLLATERAL_SECONDS:
        return True
    record = draft.state.tasks.get(incident.task)
    if incident.kind != causes.PEER_LOST or record is None or record.task_id != incident.task_id:
        return False
    return record.terminal or (record.held and 0 < record.failed_start == record.start - 1)


def _note(draft: Draft, incident: Incident, cause: Cause, record: TaskRecord) -> bool:
    spec, now = draft.state.spec, draft.now
    known = within_window(draft.job, spec.retry, now)
    draft.set_job(incidents=(*known, incident))
    _judge_progress(draft, incident)
    end = "it can never run" if cause.permanent else _exhausted(spec, draft.job, incident, now)
    if not end:
        before = draft.job.fruitless - int(not incident.charged)
        failures = max(before, _charged_in_a_row(draft.job))
        seed = f"{draft.state.instance}/{draft.job.attempt}/{draft.job.restarts}"
        wait = backoff_seconds(spec.retry, failures, seed)
        draft.set_job(restarts=draft.job.restarts + 1, restart_at=now + wait)
        return True
    summary = f"{incident.summary} ({end})"
    code = record.exit_code if record.process_failed else causes.exit_code(record.message)
    draft.enter(
        JobPhase.ENDING,
        f"the job has failed: {summary}",
        verdict=Verdict(Outcome.FAILED, code or 1, summary),
        finished_at=now,
    )
    return False


def _judge_progress(draft: Draft, incident: Incident) -> None:
    """Count the incidents in a row that the job got nowhere before; charged ones have a limit."""
    job = draft.job
    before = _credible(job.best_step)
    if incident.step is not None:
        fruitful = before is None or incident.step > before
    else:
        ran = job.phase is JobPhase.RUNNING and draft.now - job.phase_since >= FRUITFUL_SECONDS
        fruitful = ran
    best = max((s for s in (incident.step, before) if s is not None), default=None)
    more = job.fruitless + int(not incident.charged)
    draft.set_job(fruitless=0 if fruitful else more, best_step=best)


def _credible(step: int | None) -> int | None:
    """Return a step if it can be one: older task runners and schedulers believed any number."""
    return None if step is None or step > contract.MOST_STEPS else step


def _exhausted(spec: ServiceSpec, job: JobState, incident: Incident, now: float) -> str:
    """Return which limit the incidents have used up; empty when none."""
    retry = spec.retry
    counted = within_window(job, retry, now)
    if incident.kind == causes.OUT_OF_MEMORY:
        tries = sum(1 for i in counted if i.kind == causes.OUT_OF_MEMORY)
        if tries > retry.out_of_memory_limit:
            role = split_task_name(incident.task)[0].replace("-", "_")
            return f"{_retries(retry.out_of_memory_limit)}; give it more memory: {role}.mem"
    if incident.charged:
        role_spec = spec.role(split_task_name(incident.task)[0])
        limit = role_spec.retry_limit if role_spec is not None else None
        if limit is not None and role_spec is not None:
            same = [i for i in counted if split_task_name(i.task)[0] is role_spec.role]
            if sum(1 for i in same if i.charged) > limit:
                return f"{_retries(limit)} for the role {role_spec.role}"
        if retries_used(job, retry, now) > retry.limit:
            return _retries(retry.limit)
    if job.fruitless > retry.fruitless_limit:
        return f"{job.fruitless} times in a row the job got no further"
    return ""


def _retries(limit: int) -> str:
    return "1 retry is used up" if limit == 1 else f"{limit} retries are used up"


def _count_against_agent(draft: Draft, record: TaskRecord) -> None:
    if not record.agent_id or not causes.cause_of(record).agents_fault:
        return
    count_against_agent(draft, record.agent_id, 1)


def count_against_agent(draft: Draft, agent_id: str, times: int) -> None:
    """Note failures on an agent; old ones are forgotten."""
    since = draft.now - AGENT_WINDOW_SECONDS
    known = {
        agent: kept
        for agent, at in draft.job.agent_failures.items()
        if (kept := tuple(t for t in at if t > since))
    }
    known[agent_id] = (*known.get(agent_id, ()), *(draft.now for _ in range(times)))
    draft.set_job(agent_failures=known)


def _restart(draft: Draft, down: Sequence[TaskRecord]) -> None:
    incident = draft.job.incidents[-1]
    used = retries_used(draft.job, draft.state.spec.retry, draft.now)
    cost = (
        f"retry {used} of {draft.state.spec.retry.limit}" if incident.charged else "costs no retry"
    )
    losses = {r.name: loss_of(r) for r in down}
    _begin_restart(draft, losses, f"{incident.summary}; {{who}} from the last checkpoint ({cost})")


def _begin_restart(draft: Draft, losses: dict[str, Loss], why: str) -> None:
    state = draft.state
    chosen = restart_set(strategy_of(state), decider_of(state), members(state), losses)
    chosen = (*chosen, *_full_parameter_servers(draft, chosen))
    names = ", ".join(name for name in members(state) if name in chosen)
    everybody = len(chosen) == len(members(state))
    who = "the gang starts again" if everybody else f"{names} start again"
    restarts.stop(draft, chosen, why.replace("{who}", who), planned=False)


def _charged_in_a_row(job: JobState) -> int:
    count = 0
    for incident in reversed(job.incidents):
        if not incident.charged:
            break
        count += 1
    return count


def _full_parameter_servers(draft: Draft, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the ps that restart with their chief because they near their memory limit."""
    state = draft.state
    if strategy_of(state) is not Strategy.PARAMETER_SERVER or decider_of(state) not in chosen:
        return ()
    role = state.spec.role(TaskRole.PS)
    if role is None:
        return ()
    limit = role.resources.mem * 2**20 * PS_MEMORY_SHARE
    servers = [n for n in members(state) if split_task_name(n)[0] is TaskRole.PS]
    used = [state.reports.get(r.task_id, {}) for n in servers if (r := state.tasks.get(n))]
    full = any(isinstance(m := u.get("memory_bytes"), int) and m > limit for u in used)
    return tuple(n for n in servers if n not in chosen) if full else ()
