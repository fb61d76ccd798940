"""Restarts that somebody or something asks for while nothing has failed.

Called by ``core.advance`` while the job runs. In this order, one at a time: an agent that is to be
taken down, members that were added or are not wanted any more, a task that an operator pauses or
resumes, a changed configuration. Each is a planned restart: processes have their whole grace, the
decider first, so that the newest state is in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable

from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.job import STOPPED_PHASES, JobPhase
from dcos_tensorflow.core.model.service_state import configuration_id
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.offers import reservations
from dcos_tensorflow.core.recovery import incidents, restarts, update_order
from dcos_tensorflow.core.recovery.members import (
    decider_of,
    has_container,
    is_paused,
    members,
    strategy_of,
)
from dcos_tensorflow.core.recovery.membership import who_must_know
from dcos_tensorflow.core.recovery.restart_table import Loss, restart_set


def look(draft: Draft) -> None:
    """Begin the restart that is due, if any."""
    for due in (_leave_agents, _change_members, _pause_or_resume, _update):
        due(draft)
        if draft.job.phase is not JobPhase.RUNNING:
            return


def restart_on_request(draft: Draft, names: Iterable[str], *, replace: bool) -> None:
    """Start these members again, in their containers or in new ones on other agents."""
    state = draft.state
    wanted = [n for n in names if n in members(state)]
    records = [r for n in wanted if has_container(r := state.tasks.get(n)) and r]
    if not records or draft.job.phase not in _STEERABLE:
        return
    if replace:
        draft.set_job(replacing=_with(draft.job.replacing, (r.name for r in records)))
        for record in records:
            incidents.count_against_agent(draft, record.agent_id, AVOIDED_AFTER)
    what = "placed anew" if replace else "started again"
    _restart(draft, [r.name for r in records], f"{', '.join(wanted)} are {what} on request")


def take_along(draft: Draft) -> None:
    """Add to the restart under way who was to leave, is wanted again, and restarts with the others.

    It trains on as before: the options that it was to leave by have stopped everybody but it.
    """
    state, job = draft.state, draft.job
    if job.phase not in STOPPED_PHASES or not job.restarting:
        return
    everybody = members(state)
    losses = {name: Loss.PROCESS for name in job.restarting if name in everybody}
    due = restart_set(strategy_of(state), decider_of(state), everybody, losses)
    live = {record.name for record in state.live_tasks}
    draft.set_job(restarting=_with(job.restarting, (name for name in due if name in live)))


#: Failures of a job's tasks on one agent within ``incidents.AGENT_WINDOW_SECONDS`` after which the
#: agent is avoided while others have room.
AVOIDED_AFTER = 3

#: A maintenance that we have agreed to is spoken of again within this time: the driver has the
#: master ask again after ten minutes.
TOLD_AGAIN_SECONDS = 700.0

_STEERABLE = frozenset(
    {
        JobPhase.RUNNING,
        JobPhase.STARTING,
        JobPhase.STOPPING,
        JobPhase.BACKING_OFF,
        JobPhase.STAGING,
    }
)


def is_leaving(draft: Draft, agent_id: str) -> bool:
    """Say whether an agent's maintenance is so near that nothing of ours should be there.

    Nobody says that a maintenance was cancelled which we have agreed to: the master only stops
    asking for the agent again.
    """
    start = draft.job.leaving.get(agent_id)
    told = draft.job.leaving_told.get(agent_id, 0.0)
    if start is None or draft.now - told > TOLD_AGAIN_SECONDS:
        return False
    return draft.now >= start - draft.state.spec.maintenance_lead_seconds


def _restart(draft: Draft, names: Iterable[str], why: str) -> None:
    state = draft.state
    losses = dict.fromkeys(names, Loss.PROCESS)
    chosen = restart_set(strategy_of(state), decider_of(state), members(state), losses)
    restarts.stop(draft, chosen, why, planned=True)


def _with(known: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known, *more)))


def _gang(draft: Draft) -> list[TaskRecord]:
    tasks = draft.state.tasks
    return [r for n in members(draft.state) if has_container(r := tasks.get(n)) and r]


def _leave_agents(draft: Draft) -> None:
    # Who has a volume cannot go without it, and trains on until the agent is down.
    going = [
        r
        for r in _gang(draft)
        if is_leaving(draft, r.agent_id) and reservations.of_task(draft.state, r.name) is None
    ]
    if not going:
        return
    names = [r.name for r in going]
    hosts = ", ".join(sorted({r.hostname for r in going}))
    draft.set_job(replacing=_with(draft.job.replacing, names))
    _restart(draft, names, f"{hosts} is to be taken down: {', '.join(names)} move")


def _change_members(draft: Draft) -> None:
    state, job = draft.state, draft.job
    if state.epoch is None:
        return
    placed, wanted = state.epoch.addresses, members(state)
    added = tuple(n for n in wanted if n not in placed)
    removed = [n for n in placed if n not in wanted]
    if not added and not removed:
        return
    if state.controls.holds("update"):
        return
    if added:
        # Those who train go on until there is a place for whoever joins: there may never be one.
        draft.set_job(absent=_with(job.absent, added), joining=_with(job.joining, added))
        draft.reasons.append(f"{', '.join(added)} join when there is room")
    if not removed:
        return
    chosen = who_must_know(draft.state, placed, {n: placed[n] for n in wanted if n in placed})
    what = f"{', '.join(removed)} leave"
    if chosen:
        restarts.stop(draft, chosen, what, planned=True)
    else:
        restarts.renew_epoch(draft)
        draft.reasons.append(what)


def _pause_or_resume(draft: Draft) -> None:
    tasks = draft.state.tasks
    # Who cannot be reached may return, and must not train on with those who stopped together.
    gang = [r for n in members(draft.state) if (r := tasks.get(n)) and not r.terminal]
    pausing = [r for r in gang if not r.held and is_paused(draft.state, r.name)]
    resuming = [r for r in gang if r.held and not is_paused(draft.state, r.name)]
    for concerned, what in ((pausing, "paused"), (resuming, "resumed")):
        if any(has_container(r) for r in concerned):
            names = [r.name for r in concerned]
            restarts.stop(draft, names, f"{', '.join(names)} are {what}", planned=True)
            return


def _update(draft: Draft) -> None:
    due = update_order.due(draft.state)
    names = [r.name for r in _gang(draft) if r.name in due]
    if not names:
        return
    target = configuration_id(draft.state.spec)
    draft.set_job(
        replacing=_with(draft.job.replacing, names),
        updating=_with(draft.job.updating, names),
        canary=target,
    )
    _restart(draft, names, f"{', '.join(names)} go over to configuration {target}")
