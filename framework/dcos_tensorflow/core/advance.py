"""Moves each gang's job, and kills tasks that should not run: three passes of a step.

Called by ``core.step``. Level-triggered: each pass looks at the present state, whatever event led
to it, and does everything that is due; the next event repairs the loss of one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from dcos_tensorflow.core.agents import maintenance
from dcos_tensorflow.core.cluster.launch import KILL_MARGIN_SECONDS
from dcos_tensorflow.core.cluster.serving import serves
from dcos_tensorflow.core.counted import listed
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.failures import evidence, incidents, waits
from dcos_tensorflow.core.model.actions import Kill
from dcos_tensorflow.core.model.controls import DECOMMISSION
from dcos_tensorflow.core.model.gang import Placing
from dcos_tensorflow.core.model.job import (
    BEGUN_PHASES,
    ENDED_PHASES,
    RESTARTING_PHASES,
    WATCHED_PHASES,
    JobPhase,
    Outcome,
    Verdict,
)
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts import (
    data_service,
    evaluations,
    outcome,
    planned_changes,
    restarts,
    sidecars,
    update_order,
)
from dcos_tensorflow.core.restarts.gang_queries import down, is_quiet, stays, still_running
from dcos_tensorflow.core.spec.service_spec import MAIN, split_task_name
from dcos_tensorflow.core.work import slots

#: A KILL is not reliable (Mesos scheduler API): it is repeated this long after the grace ended.
KILL_RETRY_SECONDS = 10.0

#: Gangs of which nothing moves are looked at so often all the same.
LOOK_SECONDS = 10.0

#: A step never moves further than once through all phases.
_MAX_MOVES = 12

#: Phases in which members of the restart set may be down: that is why it restarts.
_DOWN_IS_EXPECTED = frozenset({JobPhase.STOPPING, JobPhase.BACKING_OFF, JobPhase.PLACING})

#: What of a task may move its gang by time alone.
_MOVING = (
    Fact.UNWELL,
    Fact.FINISHED,
    Fact.COMING_UP,
    Fact.HELD,
    Fact.IDLE,
    Fact.BEHIND,
    Fact.BEING_KILLED,
    Fact.SIDECAR,
    Fact.STRANGER,
    Fact.LEFT,
)


def move_jobs(draft: Draft) -> None:
    """Move every job as far as it goes now."""
    for gang in _to_look_at(draft):
        _advance(gang)


def kill_unwanted(draft: Draft) -> None:
    """Kill what should not run in the phase that its job has reached."""
    if draft.state.registered:
        for gang in draft.awake():
            _kill_unwanted(gang)
        _kill_strays(draft)


def let_rest(draft: Draft) -> None:
    """Note the gangs in which time alone changes nothing: no step looks at them meanwhile."""
    for gang in tuple(draft.awake()):
        if _is_at_rest(gang):
            draft.let_rest(gang.name)


def _to_look_at(draft: Draft) -> tuple[GangDraft, ...]:
    """Return the gangs of which something may move, or has changed."""
    before, state = draft.before, draft.state
    same = (
        before.spec is state.spec
        and before.controls is state.controls
        and before.uninstall is state.uninstall
        and before.maintenance is state.maintenance
        and before.subscription.registered == state.subscription.registered
    )
    due = draft.now // LOOK_SECONDS != before.subscription.stepped_at // LOOK_SECONDS
    if not same or due:
        draft.wake_all()
    return tuple(draft.awake())


def _is_at_rest(gang: GangDraft) -> bool:
    """Say whether nothing moves a gang by time alone."""
    job, tasks = gang.job, gang.tasks
    # A slot whose next start was not seen to run has its limit in minutes.
    goes = job.phase is JobPhase.RUNNING or (job.phase is JobPhase.STARTING and gang.unit)
    if not goes or job.membership.absent or gang.placing != Placing():
        return False
    if any(tasks.having(fact) for fact in _MOVING) or maintenance.agents(gang.service):
        return False
    if len(tasks) < len(gang.roster.wanted):
        # A task beside the gang is still to be launched.
        return False
    known = gang.epoch.names if gang.epoch is not None else None
    return known == gang.roster.members and not update_order.outdated(gang.view)


def _advance(gang: GangDraft) -> None:
    if gang.placing.blocked:
        gang.placing = replace(gang.placing, blocked="")
    for move in range(_MAX_MOVES):
        before = gang.job.phase
        if before in WATCHED_PHASES and gang.roster.is_of_slot:
            slots.take_next(gang)
        if gang.job.phase in WATCHED_PHASES and not _finished_meanwhile(gang):
            _look_for_failures(gang)
            if gang.job.phase in WATCHED_PHASES:
                incidents.see_cause(gang)
            if gang.job.phase in RESTARTING_PHASES:
                incidents.see_own_error(gang)
            if gang.job.phase in BEGUN_PHASES and not move:
                # Not in the step that lets members start: it would stop others in the same step.
                waits.check(gang)
        if gang.job.phase is before:
            _MOVES[before](gang)
        if gang.job.phase is before:
            break
    if gang.job.phase in WATCHED_PHASES:
        sidecars.look_after(gang)
        data_service.look_after(gang)
        gang.drop(tuple(gang.tasks.having(Fact.LEFT)))
    elif gang.job.phase is JobPhase.DONE and gang.roster.is_of_slot:
        slots.forget(gang)
    elif gang.job.phase is JobPhase.DONE:
        sidecars.look_after_staying(gang)


def _look_for_failures(gang: GangDraft) -> None:
    job = gang.job
    expected = frozenset(job.restart.members) if job.phase in _DOWN_IS_EXPECTED else frozenset()
    if job.phase is JobPhase.PLACING and not expected:
        # The first deployment, or that of a gang which has lost every container.
        return
    failed = [r for r in down(gang.view, gang.now) if r.name not in expected]
    if failed:
        incidents.handle(gang, failed)


def _finished_meanwhile(gang: GangDraft) -> bool:
    """Go over to FINISHING when the deciders have finished: then no task restarts."""
    if not outcome.has_succeeded(gang.view):
        return False
    deciders = outcome.deciders_of(gang.view)
    for name in deciders:
        evidence.collect(gang.service, gang.tasks[name])
    grace = gang.spec.outcome_grace_seconds
    gang.job = replace(
        gang.job, deadline=gang.now + grace, restart=replace(gang.restart, members=(), plan="")
    )
    why = f"{listed(deciders)} finished with 0: the job has succeeded"
    gang.enter(JobPhase.FINISHING, why)
    return True


def _staging(gang: GangDraft) -> None:
    tasks = gang.tasks
    members = tasks.having(Fact.CONTAINED) & gang.roster.members
    # A new container whose runner has not been heard of yet is late too.
    unheard = tasks.having(Fact.HELD) - tasks.having(Fact.STOPPED)
    late = [
        r
        for r in tasks.records_of((tasks.having(Fact.COMING_UP) | unheard) & members)
        if r.state is not TaskState.RUNNING or not r.ordered_at
    ]
    if not _timed_out(gang, late):
        restarts.watch_staging(gang)


def _starting(gang: GangDraft) -> None:
    late = restarts.late(gang)
    if late:
        _timed_out(gang, late)
        return
    if restarts.out_of_sight(gang):
        return
    count = len(gang.roster.members.intersection(gang.tasks))
    gang.job = replace(gang.job, deployed=True, restart=replace(gang.restart, members=(), plan=""))
    gang.enter(JobPhase.RUNNING, restarts.all_run(count))


def _running(gang: GangDraft) -> None:
    # A slot does not leave RUNNING for its next unit: only there a start may be late.
    if not (gang.unit is not None and _timed_out(gang, restarts.late(gang))):
        planned_changes.begin_due(gang)


def _timed_out(gang: GangDraft, late: tuple[TaskRecord, ...] | list[TaskRecord]) -> bool:
    limit = gang.spec.gang.start_seconds
    if gang.service.waited(gang.job.phase_since) <= limit:
        # No task is late before the phase has lasted so long.
        return False
    overdue = [r for r in late if gang.service.waited(_late_since(gang, r)) > limit]
    if not overdue:
        return False
    incidents.time_out(gang, min(overdue, key=lambda r: r.name), limit)
    return True


def _late_since(gang: GangDraft, record: TaskRecord) -> float:
    """Return since when a member could have come up: not while its agent was away."""
    runs = record.state is TaskState.RUNNING
    return max(gang.job.phase_since, record.changed_at if runs else 0.0)


def _finishing(gang: GangDraft) -> None:
    why = f"{listed(outcome.deciders_of(gang.view))} finished with 0"
    if outcome.still_ending(gang.view):
        if gang.now < gang.job.deadline:
            return
        evaluating = evaluations.waited_for(gang.view, gang.now)
        if evaluating:
            step = evaluations.last_checkpoint(gang.view)
            waits = f"{why}; {listed(evaluating)} has time for the last checkpoint (step {step})"
            gang.job = replace(gang.job, why=waits)
            return
    missing = evaluations.missing(gang.view)
    why = f"{why}; {missing}" if missing else why
    verdict = Verdict(Outcome.SUCCEEDED, 0, why)
    gang.job = replace(gang.job, verdict=verdict, finished_at=gang.now)
    gang.enter(JobPhase.ENDING, f"the job has succeeded ({why}); its other tasks are ended")


def _ending(gang: GangDraft) -> None:
    if gang.service.state.uninstall.asked:
        # ``core.operator.uninstall`` ends it, for all gangs together.
        return
    if still_running(gang.view) or evidence.is_awaited(gang):
        return
    if gang.name == MAIN and gang.spec.units is not None and len(gang.service.state.gangs) > 1:
        # Its slots end first.
        return
    verdict = gang.job.verdict
    end = f"{verdict.outcome}: {verdict.summary}" if verdict is not None else "ended"
    gang.enter(JobPhase.DONE, end)


def _nothing(gang: GangDraft) -> None:
    """DONE: nothing moves the job any more."""


_MOVES: dict[JobPhase, Callable[[GangDraft], None]] = {
    JobPhase.PLACING: restarts.watch_placing,
    JobPhase.STAGING: _staging,
    JobPhase.STARTING: _starting,
    JobPhase.RUNNING: _running,
    JobPhase.STOPPING: restarts.watch_stopping,
    JobPhase.BACKING_OFF: restarts.watch_backing_off,
    JobPhase.FINISHING: _finishing,
    JobPhase.ENDING: _ending,
    JobPhase.DONE: _nothing,
}

assert set(_MOVES) == set(JobPhase)


def _kill_unwanted(gang: GangDraft) -> None:
    tasks = gang.tasks
    suspects = set(tasks.having(Fact.BEING_KILLED))
    if gang.job.phase in ENDED_PHASES:
        suspects |= tasks.having(Fact.LIVE)
    else:
        suspects |= tasks.having(Fact.STRANGER)
    limit = gang.spec.kill_grace_seconds + KILL_MARGIN_SECONDS
    suspects &= tasks.having(Fact.CONTAINED)
    for record in tasks.records_of(suspects - _servers_that_end_later(gang, suspects)):
        if gang.now - record.killed_at < limit + KILL_RETRY_SECONDS:
            continue
        why = _why_not(gang, record)
        if why:
            gang.put(replace(record, kill_reason=why, killed_at=gang.now))
            gang.service.act(
                Kill(record.task_id, record.agent_id, limit), f"killing {record.name}: {why}"
            )


def _servers_that_end_later(gang: GangDraft, suspects: Collection[str]) -> frozenset[str]:
    """Return the servers of a stopped job, as long as others save or read through them."""
    verdict = gang.job.verdict
    if verdict is None or verdict.outcome is not Outcome.STOPPED:
        return frozenset()
    spec, seen = gang.spec, gang.job.strategy_seen
    serving = frozenset(name for name in suspects if serves(spec, seen, name))
    members = (name for name in suspects if split_task_name(name)[0].is_in_gang)
    return serving if not serving.issuperset(members) else frozenset()


def _why_not(gang: GangDraft, record: TaskRecord) -> str:
    """Return why a task should not run; empty when it should."""
    if record.kill_reason:
        return record.kill_reason
    view = gang.view
    if view.job.phase in ENDED_PHASES:
        if not stays(view, record.name):
            return f"the job is {view.job.phase}"
        return ""
    if not gang.tasks.has(record.name, Fact.STRANGER):
        return ""
    in_cluster = view.epoch is not None and record.name in view.epoch.addresses
    if record.name not in view.roster.wanted and view.controls.holds(DECOMMISSION, record.name):
        return ""
    # A worker that leaves while the others train does its last step first.
    in_use = in_cluster or gang.tasks.has(view.roster.decider, Fact.BEHIND)
    return "it is not wanted any more" if not in_use or is_quiet(view) else ""


def _kill_strays(draft: Draft) -> None:
    strays = dict(draft.state.strays)
    for task_id, stray in draft.state.strays.items():
        if draft.now - stray.killed_at < KILL_RETRY_SECONDS:
            continue
        strays[task_id] = replace(stray, killed_at=draft.now)
        draft.act(Kill(task_id, stray.agent_id, 0.0), f"killing {task_id}, which is not wanted")
    if strays != draft.state.strays:
        draft.state = replace(draft.state, strays=strays)
