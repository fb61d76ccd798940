"""Tasks beside the gang: the evaluator and TensorBoard. They follow it and never hold it up.

Called by ``core.advance``. A sidecar that fails is started again by itself, in its container where
it still has one; after too many ends (``core.recovery.sidecar_ends``) the job goes on without it.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState, configuration_id
from dcos_tensorflow.core.model.spec import GANG_ROLES
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.offers import reservations
from dcos_tensorflow.core.recovery import causes, incidents, sidecar_ends, update_order
from dcos_tensorflow.core.recovery.members import has_container, is_wanted, stays
from dcos_tensorflow.core.recovery.planned_changes import AVOIDED_AFTER, is_leaving


def sidecars(state: ServiceState) -> tuple[TaskRecord, ...]:
    """Return the records of the tasks beside the gang."""
    return tuple(r for r in state.tasks.values() if r.role not in GANG_ROLES)


def look_after(draft: Draft) -> None:
    """Start again whose process failed, stop whose is paused, end whose container must go."""
    beside = sidecars(draft.state)
    due = update_order.due(draft.state) if beside else ()
    for record in beside:
        if not has_container(record) or record.kill_reason:
            continue
        if not is_wanted(draft.state, record.name):
            if draft.state.controls.holds("decommission", record.name):
                continue
            draft.put(replace(record, kill_reason="it is not wanted any more"))
        elif record.name in due:
            updating = (*draft.job.updating, record.name)
            draft.set_job(canary=configuration_id(draft.state.spec), updating=updating)
            draft.put(replace(record, kill_reason="its configuration has changed"))
        elif _has_to_move(draft, record):
            why = f"{record.hostname} is to be taken down"
            draft.put(replace(record, kill_reason=why))
            draft.reasons.append(f"{why}: {record.name} moves")
        elif record.process_failed:
            _start_again(draft, record)
        else:
            _pause_or_resume(draft, record)


def _has_to_move(draft: Draft, record: TaskRecord) -> bool:
    """Say whether an agent is to be left; whoever has a volume there could not take it along."""
    goes = is_leaving(draft, record.agent_id)
    return goes and reservations.of_task(draft.state, record.name) is None


def look_after_who_stay(draft: Draft) -> None:
    """Start again whose process failed after the job had ended, of those that outlive it."""
    for record in sidecars(draft.state):
        if has_container(record) and record.process_failed and stays(draft.state, record.name):
            _start_again(draft, record)


def stop_who_stay(draft: Draft, why: str) -> None:
    """End what has outlived the job."""
    for record in staying(draft.state):
        draft.put(replace(record, kill_reason=f"stopped: {why}"))


def staying(state: ServiceState) -> tuple[TaskRecord, ...]:
    """Return what runs on though the job has ended, or starts again; nothing while it has not."""
    if state.job.phase not in (JobPhase.ENDING, JobPhase.DONE):
        return ()
    return tuple(
        r
        for r in sidecars(state)
        if stays(state, r.name)
        and r.state is not TaskState.FINISHED
        and not (r.terminal and sidecar_ends.is_given_up(state, r))
    )


def _start_again(draft: Draft, record: TaskRecord) -> None:
    state = draft.state
    ends = sidecar_ends.ends(state, record)
    counted = replace(record, failures=ends.failures, interruptions=ends.interruptions)
    if sidecar_ends.is_given_up(state, record):
        why = f"{causes.describe(record)}; it is given up ({ends})"
        draft.put(replace(counted, kill_reason=why))
        draft.reasons.append(why)
        return
    if draft.now < record.changed_at + sidecar_ends.wait_seconds(state, record):
        return
    draft.put(replace(counted, start=record.start + 1, ordered_at=draft.now))
    draft.reasons.append(f"{causes.describe(record)}; it starts again")


def _pause_or_resume(draft: Draft, record: TaskRecord) -> None:
    paused = record.name in draft.state.controls.paused_tasks
    if paused != record.held:
        start = record.start + 1 if paused else record.start
        draft.put(replace(record, start=start, held=paused, ordered_at=draft.now))
        draft.reasons.append(f"{record.name} is {'paused' if paused else 'resumed'}")


def restart_on_request(draft: Draft, record: TaskRecord, *, replace_container: bool) -> None:
    """Start a sidecar again, in its container or in a new one."""
    if replace_container:
        draft.put(replace(record, kill_reason="it is placed anew on request"))
        incidents.count_against_agent(draft, record.agent_id, AVOIDED_AFTER)
    else:
        draft.put(replace(record, start=record.start + 1, ordered_at=draft.now))
    draft.reasons.append(f"{record.name} starts again on request")


def try_again_on_request(draft: Draft, record: TaskRecord) -> None:
    """Forget how a sidecar has ended, so that one that was given up is launched again."""
    if record.role in GANG_ROLES or record.state is TaskState.FINISHED:
        return
    why = record.kill_reason or "it is launched again on request"
    draft.put(replace(record, failures=0, interruptions=0, kill_reason=why))
    draft.set(considered=(-1, ()), suppressed=None)
    draft.reasons.append(f"{record.name} is launched again on request")


def is_due(draft: Draft, name: str) -> bool:
    """Say whether a sidecar of this name is to be launched now."""
    state = draft.state
    if state.controls.holds("deploy", name.rpartition("-")[0]):
        return False
    if state.controls.forced(name):
        return False
    record = state.tasks.get(name)
    if record is None:
        return True
    if record.state is TaskState.UNREACHABLE:
        return draft.now >= record.changed_at + state.spec.replace_after_seconds
    if not record.terminal or record.state is TaskState.FINISHED:
        return False
    if sidecar_ends.is_given_up(state, record):
        return False
    return draft.now >= record.changed_at + sidecar_ends.wait_seconds(state, record)


def is_pending(state: ServiceState) -> bool:
    """Say whether a sidecar waits to be launched again."""
    return any(
        r.terminal and r.state is not TaskState.FINISHED and not sidecar_ends.is_given_up(state, r)
        for r in sidecars(state)
        if is_wanted(state, r.name)
    )
