"""The active half of a step, part one: move the job, kill what should not run.

Called by ``core.step.step`` after ``core.absorb``. Level-triggered: it looks at the whole state
each time and does what is due, so a lost event is repaired by the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dcos_tensorflow.core.cluster.launch import KILL_MARGIN_SECONDS
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.actions import Kill
from dcos_tensorflow.core.model.job import WATCHED_PHASES, JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.spec import GANG_ROLES
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.operator import uninstall
from dcos_tensorflow.core.recovery import incidents, outcome, planned_changes, restarts, sidecars
from dcos_tensorflow.core.recovery.members import (
    has_container,
    is_down,
    is_held,
    is_quiet,
    is_wanted,
    members,
    stays,
)

#: A KILL is not reliable (Mesos scheduler API): it is repeated this long after the grace ended.
KILL_RETRY_SECONDS = 10.0

#: A step never moves further than once through all phases.
_MAX_MOVES = 12

#: Phases in which members of the restart set may be down: that is why it restarts.
_DOWN_IS_EXPECTED = frozenset({JobPhase.STOPPING, JobPhase.BACKING_OFF, JobPhase.PLACING})


def advance(draft: Draft) -> None:
    """Move the job as far as it goes now, then kill what should not run in the phase reached."""
    for _ in range(_MAX_MOVES):
        before = draft.job.phase
        if before in WATCHED_PHASES and not _finished_meanwhile(draft):
            _look_for_failures(draft)
            if draft.job.phase in WATCHED_PHASES:
                incidents.see_cause(draft)
        if draft.job.phase is before:
            _MOVES[before](draft)
        if draft.job.phase is before:
            break
    if draft.job.phase in WATCHED_PHASES:
        sidecars.look_after(draft)
        _forget_who_left(draft)
    elif draft.job.phase is JobPhase.DONE:
        sidecars.look_after_who_stay(draft)
    _kill_unwanted(draft)
    _kill_strays(draft)


def _look_for_failures(draft: Draft) -> None:
    state = draft.state
    expected = set(state.job.restarting) if state.job.phase in _DOWN_IS_EXPECTED else set()
    if state.job.phase is JobPhase.PLACING and not expected:
        # The first deployment, or that of a gang which has lost every container.
        return
    down = [
        r
        for n in members(state)
        if n not in expected and (r := state.tasks.get(n)) and is_down(state, r, draft.now)
    ]
    if down:
        incidents.handle(draft, down)


def _finished_meanwhile(draft: Draft) -> bool:
    """Go over to FINISHING when the deciders have finished: then nobody restarts."""
    absent = draft.job.absent
    if not outcome.has_succeeded(draft.state.spec, draft.state.tasks, absent):
        return False
    deciders = [n for n in outcome.deciding_tasks(draft.state.spec) if n not in absent]
    for name in deciders:
        incidents.collect_evidence(draft, draft.state.tasks[name])
    draft.enter(
        JobPhase.FINISHING,
        f"{', '.join(deciders)} finished with 0: the job has succeeded",
        deadline=draft.now + draft.state.spec.outcome_grace_seconds,
        restarting=(),
    )
    return True


def _staging(draft: Draft) -> None:
    late = [
        r for r in _concerned(draft) if r.state is not TaskState.RUNNING or _is_unready(draft, r)
    ]
    if not _timed_out(draft, late):
        restarts.watch_staging(draft)


def _is_unready(draft: Draft, record: TaskRecord) -> bool:
    """Say whether a new container's runner has not been heard of yet."""
    return record.held and not record.ordered_at and not is_held(draft.state, record)


def _starting(draft: Draft) -> None:
    late = restarts.late(draft)
    if late:
        _timed_out(draft, list(late))
        return
    if restarts.out_of_sight(draft):
        return
    count = sum(1 for n in members(draft.state) if n in draft.state.tasks)
    draft.enter(
        JobPhase.RUNNING,
        f"all {count} tasks of the gang run",
        deployed=True,
        restarting=(),
    )


def _concerned(draft: Draft) -> list[TaskRecord]:
    tasks = draft.state.tasks
    return [r for n in members(draft.state) if has_container(r := tasks.get(n)) and r]


def _timed_out(draft: Draft, late: list[TaskRecord]) -> bool:
    limit = draft.state.spec.gang.start_seconds
    overdue = [r for r in late if draft.waited(_late_since(draft, r)) > limit]
    if not overdue:
        return False
    incidents.time_out(draft, min(overdue, key=lambda r: r.name), limit)
    return True


def _late_since(draft: Draft, record: TaskRecord) -> float:
    """Return since when a member could have come up: not while its agent was away."""
    runs = record.state is TaskState.RUNNING
    return max(draft.job.phase_since, record.changed_at if runs else 0.0)


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
    running = [
        r
        for r in draft.state.live_tasks
        if r.state is not TaskState.UNREACHABLE and not stays(draft.state, r.name)
    ]
    awaited = [t for t, until in draft.state.evidence_wanted.items() if draft.now < until]
    if draft.job.uninstalling:
        uninstall.watch_ending(draft, running)
        return
    if running or awaited:
        return
    verdict = draft.job.verdict
    end = f"{verdict.outcome}: {verdict.summary}" if verdict is not None else "ended"
    draft.enter(JobPhase.DONE, end)


_MOVES: dict[JobPhase, Callable[[Draft], None]] = {
    JobPhase.PLACING: restarts.watch_placing,
    JobPhase.STAGING: _staging,
    JobPhase.STARTING: _starting,
    JobPhase.RUNNING: planned_changes.look,
    JobPhase.STOPPING: restarts.watch_stopping,
    JobPhase.BACKING_OFF: restarts.watch_backing_off,
    JobPhase.FINISHING: _finishing,
    JobPhase.ENDING: _ending,
    JobPhase.DONE: uninstall.watch_done,
}

assert set(_MOVES) == set(JobPhase)


def _forget_who_left(draft: Draft) -> None:
    """Drop the records of tasks that the options no longer ask for, once they have ended."""
    state = draft.state
    left = {n: r for n, r in state.tasks.items() if not (r.terminal and not is_wanted(state, n))}
    if len(left) != len(state.tasks):
        draft.set(tasks=left)


def _why_not(draft: Draft, record: TaskRecord) -> str:
    """Return why a task should not run; empty when it should."""
    state = draft.state
    if record.kill_reason:
        return record.kill_reason
    if state.job.phase in (JobPhase.ENDING, JobPhase.DONE) and not stays(state, record.name):
        return f"the job is {state.job.phase}"
    in_cluster = state.epoch is not None and record.name in state.epoch.addresses
    if not is_wanted(state, record.name) and state.controls.holds("decommission", record.name):
        return ""
    no_member = record.role in GANG_ROLES and record.name not in members(state)
    if no_member and (not in_cluster or is_quiet(state)):
        return "it is not wanted any more"
    return ""


def _kill_unwanted(draft: Draft) -> None:
    if not draft.state.registered:
        return
    grace = draft.state.spec.kill_grace_seconds
    for record in draft.state.live_tasks:
        why = _why_not(draft, record)
        if record.state is TaskState.UNREACHABLE or not why:
            continue
        limit = grace + KILL_MARGIN_SECONDS
        if draft.now - record.killed_at < limit + KILL_RETRY_SECONDS:
            continue
        draft.put(replace(record, kill_reason=why, killed_at=draft.now))
        draft.act(Kill(record.task_id, record.agent_id, limit), f"killing {record.name}: {why}")


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
