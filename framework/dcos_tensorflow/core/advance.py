"""The active half of a step, part one: move the job, kill what should not run.

Called by ``core.service.step`` after ``core.absorb``. Level-triggered: it looks at the whole state
each time and does what is due, so a lost event is repaired by the next one.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core import outcome, recovery
from dcos_tensorflow.core.absorb import EVIDENCE_SECONDS
from dcos_tensorflow.core.actions import CollectEvidence, Kill
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.job import (
    LIVING_PHASES,
    WATCHED_PHASES,
    Incident,
    JobPhase,
    Outcome,
    Verdict,
)
from dcos_tensorflow.core.spec import GANG_ROLES
from dcos_tensorflow.core.task import TaskRecord, TaskState

#: A KILL is not reliable (Mesos scheduler API): it is repeated this long after the grace ended.
KILL_RETRY_SECONDS = 10.0

#: The step visits a phase at most once, except for the way from STOPPING back to PLACING.
_MAX_MOVES = 8


def advance(draft: Draft) -> None:
    """Move the job as far as it goes now, then kill what should not run in the phase reached."""
    for _ in range(_MAX_MOVES):
        before = draft.job.phase
        _MOVES[before](draft)
        if draft.job.phase is before:
            break
    _kill_unwanted(draft)
    _kill_strays(draft)


def gang_of(draft: Draft) -> tuple[TaskRecord, ...]:
    """Return the records of the gang's members."""
    return tuple(r for r in draft.state.tasks.values() if r.role in GANG_ROLES)


def _runs(record: TaskRecord) -> bool:
    return record.state in (TaskState.RUNNING, TaskState.FINISHED)


def _watch(draft: Draft) -> None:
    """STARTING and RUNNING: success first, then failures, then progress of the start."""
    spec, now = draft.state.spec, draft.now
    if outcome.has_succeeded(spec, draft.state.tasks):
        _succeed(draft)
        return
    gang = gang_of(draft)
    failed = sorted(
        (r for r in gang if r.terminal and r.state is not TaskState.FINISHED),
        key=lambda r: (r.changed_at, r.name),
    ) or [r for r in gang if r.state is TaskState.UNREACHABLE]
    if failed:
        incident, cause = recovery.incident_of(failed[0], now)
        _open_incident(draft, incident, cause.permanent, failed[0])
        return
    if draft.job.phase is JobPhase.STARTING:
        _watch_start(draft, gang)


def _succeed(draft: Draft) -> None:
    deciders = outcome.deciding_tasks(draft.state.spec)
    for name in deciders:
        _collect_evidence(draft, draft.state.tasks[name])
    draft.enter(
        JobPhase.FINISHING,
        f"{', '.join(deciders)} finished with 0: the job has succeeded",
        deadline=draft.now + draft.state.spec.outcome_grace_seconds,
    )


def _collect_evidence(draft: Draft, record: TaskRecord) -> None:
    if not record.agent_id:
        return
    until = draft.now + EVIDENCE_SECONDS
    draft.set(evidence_wanted={**draft.state.evidence_wanted, record.task_id: until})
    draft.act(
        CollectEvidence(record.task_id, record.agent_id),
        f"reading from its sandbox how {record.name} ended",
    )


def _watch_start(draft: Draft, gang: tuple[TaskRecord, ...]) -> None:
    late = [r for r in gang if not _runs(r)]
    if not late:
        draft.enter(JobPhase.RUNNING, f"all {len(gang)} tasks of the gang run", deployed=True)
        return
    limit = draft.state.spec.gang.start_seconds
    if draft.now - max(r.launched_at for r in gang) > limit:
        record = min(late, key=lambda r: r.name)
        summary = f"{record.name} is still {record.state} {limit:g} s after its launch"
        incident = Incident(
            record.name, record.task_id, draft.now, "start timed out", summary, True
        )
        _open_incident(draft, incident, False, record)


def _open_incident(draft: Draft, incident: Incident, permanent: bool, record: TaskRecord) -> None:
    """Note a failure; stop the gang to start it again, or end the job when that is no use."""
    spec, now = draft.state.spec, draft.now
    known = recovery.within_window(draft.job, spec.retry, now)
    draft.set_job(incidents=(*known, incident))
    used = recovery.retries_used(draft.job, spec.retry, now)
    if record.terminal:
        _collect_evidence(draft, record)
    if permanent or used > spec.retry.limit:
        _fail(draft, incident, permanent)
        return
    cost = f"retry {used} of {spec.retry.limit}" if incident.charged else "costs no retry"
    draft.enter(
        JobPhase.STOPPING,
        f"{incident.summary}; the gang is stopped and started again from its checkpoints ({cost})",
    )


def _fail(draft: Draft, incident: Incident, permanent: bool) -> None:
    tries = draft.state.spec.retry.limit
    used_up = "1 retry is used up" if tries == 1 else f"{tries} retries are used up"
    end = "it can never run" if permanent else used_up
    record = draft.state.tasks.get(incident.task)
    code = recovery.exit_code(record.message) if record is not None else None
    draft.enter(
        JobPhase.ENDING,
        f"the job has failed: {incident.summary} ({end})",
        verdict=Verdict(Outcome.FAILED, code or 1, f"{incident.summary} ({end})"),
        finished_at=draft.now,
    )


def _finished_meanwhile(draft: Draft) -> bool:
    """Say whether the deciders had finished before they could be stopped: then nobody restarts."""
    if not outcome.has_succeeded(draft.state.spec, draft.state.tasks):
        return False
    _succeed(draft)
    return True


def _stopping(draft: Draft) -> None:
    if _finished_meanwhile(draft):
        return
    # An UNREACHABLE member cannot be waited for; its old attempt is killed when it comes back.
    live = [r for r in gang_of(draft) if not r.terminal and r.state is not TaskState.UNREACHABLE]
    if live:
        return
    wait = recovery.backoff_seconds(
        draft.job, draft.state.spec.retry, draft.now, draft.state.instance
    )
    draft.enter(
        JobPhase.BACKING_OFF,
        f"the gang is stopped; it starts again in {wait:.1f} s",
        restart_at=draft.now + wait,
        restarts=draft.job.restarts + 1,
    )


def _backing_off(draft: Draft) -> None:
    if not _finished_meanwhile(draft) and draft.now >= draft.job.restart_at:
        draft.enter(JobPhase.PLACING, "the gang is placed again")
        # Long filters of earlier declines must not hide what is needed now.
        draft.set(suppressed=None, considered=(-1, ()))


def _finishing(draft: Draft) -> None:
    ending = outcome.still_ending(draft.state.tasks)
    if ending and draft.now < draft.job.deadline:
        return
    why = f"{', '.join(outcome.deciding_tasks(draft.state.spec))} finished with 0"
    draft.enter(
        JobPhase.ENDING,
        f"the job has succeeded ({why}); what still runs is ended",
        verdict=Verdict(Outcome.SUCCEEDED, 0, why),
        finished_at=draft.now,
    )


def _ending(draft: Draft) -> None:
    running = [r for r in draft.state.live_tasks if r.state is not TaskState.UNREACHABLE]
    awaited = [t for t, until in draft.state.evidence_wanted.items() if draft.now < until]
    if running or awaited:
        return
    verdict = draft.job.verdict
    end = f"{verdict.outcome}: {verdict.summary}" if verdict is not None else "ended"
    draft.enter(JobPhase.DONE, end)


def _placing(draft: Draft) -> None:
    """Left by ``core.offer_use``, unless an unreachable decider turns out to have finished."""
    _finished_meanwhile(draft)


def _done(draft: Draft) -> None:
    """Left by nobody."""


_MOVES = {
    JobPhase.PLACING: _placing,
    JobPhase.STARTING: _watch,
    JobPhase.RUNNING: _watch,
    JobPhase.STOPPING: _stopping,
    JobPhase.BACKING_OFF: _backing_off,
    JobPhase.FINISHING: _finishing,
    JobPhase.ENDING: _ending,
    JobPhase.DONE: _done,
}

assert set(_MOVES) == set(JobPhase)
assert WATCHED_PHASES < LIVING_PHASES


def _may_live(record: TaskRecord, phase: JobPhase) -> bool:
    if phase in (JobPhase.ENDING, JobPhase.DONE):
        return False
    return record.role not in GANG_ROLES or phase in LIVING_PHASES


def _kill_unwanted(draft: Draft) -> None:
    if not draft.state.registered:
        return
    grace = draft.state.spec.kill_grace_seconds
    for record in draft.state.live_tasks:
        if record.state is TaskState.UNREACHABLE or _may_live(record, draft.job.phase):
            continue
        if draft.now - record.killed_at < grace + KILL_RETRY_SECONDS:
            continue
        why = record.kill_reason or f"the job is {draft.job.phase}"
        draft.put(replace(record, kill_reason=why, killed_at=draft.now))
        draft.act(Kill(record.task_id, record.agent_id, grace), f"killing {record.name}: {why}")


def _kill_strays(draft: Draft) -> None:
    if not draft.state.registered:
        return
    strays = dict(draft.state.strays)
    for task_id, (agent_id, killed_at) in draft.state.strays.items():
        if draft.now - killed_at < KILL_RETRY_SECONDS:
            continue
        strays[task_id] = (agent_id, draft.now)
        draft.act(Kill(task_id, agent_id, 0.0), f"killing {task_id}, which is not wanted")
    if strays != draft.state.strays:
        draft.set(strays=strays)
