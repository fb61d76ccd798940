"""The cost of an incident: a retry, a wait, the unit of a slot, or the job.

Called by ``core.failures.incidents`` for each one that it opens. A failure from outside the job is
not charged; a job that such failures interrupt without any progress ends all the same.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.agents import avoidance
from dcos_tensorflow.core.counted import agreeing, counted
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures import causes, own_errors
from dcos_tensorflow.core.failures.failure import Failure
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.core.model.job import (
    ENDED_PHASES,
    Incident,
    JobPhase,
    JobState,
    Outcome,
    Verdict,
)
from dcos_tensorflow.core.model.units import UnitFailure
from dcos_tensorflow.core.restarts.backoff import backoff_seconds
from dcos_tensorflow.core.spec.service_spec import MAIN, RetrySpec, ServiceSpec, split_task_name
from dcos_tensorflow.core.work import assignment as units
from dcos_tensorflow.core.work import slots

#: A job whose steps are unknown has got somewhere when it ran for so long.
FRUITFUL_SECONDS = 60.0
#: A task that a signal ends so often, with no step between and nothing that tells whose it is, may
#: send it itself. Of machines that do it to whatever runs there, others are chosen before.
UNEXPLAINED_LIMIT = 5
#: So many incidents of a slot are kept at most: units have their own account of their failures.
INCIDENTS_OF_A_SLOT = 20
_REFUSED = "no other start fares better before that is changed"


def note(gang: GangDraft, incident: Incident, failure: Failure) -> bool:
    """Note an incident with all that it costs; say whether the job goes on."""
    if gang.roster.is_of_slot:
        return _note_in_slot(gang, incident, failure)
    spec, now = gang.spec, gang.now
    known = within_window(gang.job, spec.retry, now)
    if own_errors.unexplained_in_a_row((*known, incident)) >= UNEXPLAINED_LIMIT:
        incident = replace(incident, charged=True)
    _judge_progress(gang, incident)
    summary, times = incident.summary, own_errors.kills_in_a_row((*known, incident))
    if times > 1 and gang.job.fruitless:
        told = bounds.cut(f"{summary} ({times} times in a row, no further step)", bounds.TEXT_BYTES)
        incident = replace(incident, summary=told)
    gang.job = replace(gang.job, incidents=_bounded((*known, incident)))
    permanent, refused = failure.cause.permanent, _is_refused_from_the_start(gang, failure)
    end = "it can never run" if permanent else own_errors.why_not_again(gang.view)
    end = _REFUSED if refused else end
    end = end or _exhausted(spec, gang.job, incident, now)
    gang.restart = replace(gang.restart, count=gang.restart.count + 1)
    if not end:
        before = gang.job.fruitless - int(not incident.charged)
        failures = max(before, _charged_in_a_row(gang.job))
        state = gang.service.state
        seed = f"{state.instance}/{state.attempt}/{gang.restart.count - 1}"
        wait = backoff_seconds(spec.retry, failures, seed)
        gang.restart = replace(gang.restart, due_at=now + wait)
        return True
    code = failure.exit_code or (contract.EXIT_JOB_UNUSABLE if permanent else 1)
    fail(gang, f"{summary} ({end})", contract.EXIT_JOB_UNUSABLE if refused else code)
    return False


def _bounded(incidents: tuple[Incident, ...]) -> tuple[Incident, ...]:
    """Return the incidents of a window so that they fit into one value, whatever its length is.

    Older ones count, and say less. Where there are too many, those go first that cost nothing.
    """
    if len(incidents) <= bounds.INCIDENTS_IN_FULL:
        return incidents
    newest, known = incidents[-bounds.INCIDENTS_IN_FULL :], incidents[: -bounds.INCIDENTS_IN_FULL]
    too_many = max(len(incidents) - bounds.MOST_INCIDENTS, 0)
    free = [i for i in known if not i.charged][:too_many]
    gone = {id(i) for i in (*free, *[i for i in known if i.charged][: too_many - len(free)])}
    older = (_older(i) for i in known if id(i) not in gone)
    return (*older, *newest)


def _older(incident: Incident) -> Incident:
    summary = bounds.cut(incident.summary, bounds.OLD_INCIDENT_BYTES)
    if summary is incident.summary and not (incident.collateral or incident.evidence):
        return incident
    more = incident.more_collateral + len(incident.collateral)
    return replace(incident, summary=summary, evidence="", collateral=(), more_collateral=more)


def _is_refused_from_the_start(gang: GangDraft, failure: Failure) -> bool:
    """Say whether a job that has never run is refused what it needs, whatever machine asks.

    Once it has run it waits instead, for as long as ``fruitless_limit`` says: what was allowed
    before may be allowed again.
    """
    has_run = gang.service.state.units.has_decided if gang.roster.is_of_slot else gang.job.deployed
    return failure.cause.ends_a_first_start and not has_run


def _note_in_slot(gang: GangDraft, incident: Incident, failure: Failure) -> bool:
    """Note an incident of a slot: its unit has limits, and the slot goes on with another one.

    What can never run, or never comes up, ends the whole work: the next unit would fare the same.
    What is no one work goes on.
    """
    known = (*within_window(gang.job, gang.spec.retry, gang.now), incident)
    kept = min(gang.spec.retry.limit + 2, INCIDENTS_OF_A_SLOT)
    gang.job = replace(gang.job, incidents=known[-kept:])
    _judge_progress(gang, incident)
    main, refused = gang.service.gang(MAIN), _is_refused_from_the_start(gang, failure)
    never = failure.cause.permanent or refused
    had_unit = gang.unit is not None or gang.gang.former_unit is not None
    if incident.charged and had_unit:
        told = UnitFailure(
            agent_id=failure.record.agent_id,
            kind=incident.kind,
            summary=incident.summary,
            at=incident.at,
            exit_code=failure.exit_code,
            error=incident.error,
        )
        units.fail(gang, told, permanent=never)
    same = sum(1 for i in gang.job.incidents if i.charged and i.kind == incident.kind)
    tried = same > gang.spec.retry.limit and not had_unit
    fruitless = tried and not gang.service.state.units.has_decided
    ends = (never or fruitless) and gang.spec.units is not None and gang.spec.units.is_one_work
    if ends and main.job.phase not in ENDED_PHASES:
        why = "it can never run" if never else "it does not come up"
        code = failure.exit_code or (contract.EXIT_JOB_UNUSABLE if never else 1)
        why, code = (_REFUSED, contract.EXIT_JOB_UNUSABLE) if refused else (why, code)
        verdict = Verdict(Outcome.FAILED, code, f"{incident.summary} ({why})")
        slots.conclude(main, verdict)
    _leave_bad_agent(gang, failure.record.agent_id)
    in_a_row = max(gang.job.fruitless - int(not incident.charged), _charged_in_a_row(gang.job) - 1)
    seed = f"{gang.service.state.instance}/{gang.name}/{gang.restart.count}"
    wait = backoff_seconds(gang.spec.retry, in_a_row, seed)
    due_at, times = gang.now + wait, gang.restart.count + 1
    gang.restart = replace(gang.restart, count=times, due_at=due_at)
    return True


def _leave_bad_agent(gang: GangDraft, agent_id: str) -> None:
    """Give up a slot's containers on an agent that failed units which ran well elsewhere."""
    if agent_id in avoidance.agents(gang.service):
        there = [r.name for r in gang.tasks.values() if r.agent_id == agent_id and not r.terminal]
        replacing = tuple(dict.fromkeys((*gang.restart.replacing, *there)))
        gang.restart = replace(gang.restart, replacing=replacing)


def fail(gang: GangDraft, summary: str, exit_code: int) -> None:
    """End the job as failed."""
    # No task is started again for the newest failure, nor was for those alike in the same start.
    count = gang.restart.count - own_errors.in_newest_start(gang.job.incidents)
    gang.restart = replace(gang.restart, count=max(count, 0))
    verdict = Verdict(Outcome.FAILED, exit_code, summary)
    gang.job = replace(gang.job, verdict=verdict, finished_at=gang.now)
    gang.enter(JobPhase.ENDING, f"the job has failed: {summary}")


def within_window(job: JobState, retry: RetrySpec, now: float) -> tuple[Incident, ...]:
    """Return the incidents that still count, oldest first."""
    return tuple(i for i in job.incidents if i.at > now - retry.window_seconds)


def retries_used(job: JobState, retry: RetrySpec, now: float) -> int:
    """Return how many of the incidents in the window were charged."""
    return sum(1 for i in within_window(job, retry, now) if i.charged)


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
    return f"{counted(limit, 'retry')} {agreeing(limit, 'are')} used up"


def _charged_in_a_row(job: JobState) -> int:
    count = 0
    for incident in reversed(job.incidents):
        if not incident.charged:
            break
        count += 1
    return count


def _judge_progress(gang: GangDraft, incident: Incident) -> None:
    """Count the incidents in a row that the job got nowhere before; charged ones have a limit."""
    job = gang.job
    before = credible(job.best_step)
    if incident.step is not None:
        fruitful = before is None or incident.step > before
    else:
        fruitful = _ran_long(gang)
    best = max((s for s in (incident.step, before) if s is not None), default=None)
    more = job.fruitless + int(not incident.charged)
    gang.job = replace(job, fruitless=0 if fruitful else more, best_step=best)


def _ran_long(gang: GangDraft) -> bool:
    """Say whether a job whose steps are unknown has got somewhere."""
    running_for = gang.now - gang.job.phase_since
    return gang.job.phase is JobPhase.RUNNING and running_for >= FRUITFUL_SECONDS


def credible(step: int | None) -> int | None:
    """Return a step if it can be one: older task runners and schedulers believed any number."""
    return None if step is None or step > contract.MOST_STEPS else step
