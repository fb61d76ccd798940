"""Tasks beside the gang: the evaluator and TensorBoard. They follow it and never hold it up.

Called by ``core.advance``. A sidecar that fails is started again by itself, in its container where
it still has one; after too many ends (``core.failures.sidecar_ends``) the job goes on without it.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.agents import avoidance
from dcos_tensorflow.core.agents.maintenance import is_leaving
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures import causes, sidecar_ends
from dcos_tensorflow.core.kept.configuration import configuration_id
from dcos_tensorflow.core.model.controls import DECOMMISSION, DEPLOY, UPDATE
from dcos_tensorflow.core.model.job import ENDED_PHASES, Update
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts import update_order
from dcos_tensorflow.core.restarts.gang_queries import has_container, stays
from dcos_tensorflow.core.spec.service_spec import GANG_ROLES, split_task_name


def sidecars(view: GangView) -> tuple[TaskRecord, ...]:
    """Return the records of the tasks beside the gang."""
    return view.tasks.records_of(view.tasks.having(Fact.SIDECAR))


def look_after(gang: GangDraft) -> None:
    """Start failed sidecars again, stop paused ones, end those whose container must go."""
    beside = sidecars(gang.view)
    due = update_order.due(gang.view) if beside else ()
    for record in beside:
        if not has_container(record) or record.kill_reason:
            continue
        if record.name not in gang.roster.wanted:
            if gang.view.controls.holds(DECOMMISSION, record.name):
                continue
            gang.put(replace(record, kill_reason="it is not wanted any more"))
        elif record.name in due:
            updating = (*gang.job.update.updating, record.name)
            update = Update(canary=configuration_id(gang.service.state.spec), updating=updating)
            gang.job = replace(gang.job, update=update)
            gang.put(replace(record, kill_reason="its configuration has changed"))
        elif _has_to_move(gang, record):
            why = f"{record.hostname} is to be taken down"
            gang.put(replace(record, kill_reason=why))
            gang.say(f"{why}: {record.name} moves")
        elif record.process_failed:
            _start_again(gang, record)
        else:
            _pause_or_resume(gang, record)


def _has_to_move(gang: GangDraft, record: TaskRecord) -> bool:
    """Say whether an agent is to be left; a task with a volume there could not take it along."""
    goes = is_leaving(gang.service, record.agent_id)
    return goes and gang.service.state.reservation_of(record.name) is None


def look_after_who_stay(gang: GangDraft) -> None:
    """Start again, of the sidecars that outlive the job, those that failed after its end."""
    for record in sidecars(gang.view):
        if has_container(record) and record.process_failed and stays(gang.view, record.name):
            _start_again(gang, record)


def stop_who_stay(gang: GangDraft, why: str) -> None:
    """End what has outlived the job."""
    for record in staying(gang.view):
        gang.put(replace(record, kill_reason=f"stopped: {why}"))


def staying(view: GangView) -> tuple[TaskRecord, ...]:
    """Return what runs on though the job has ended, or starts again; nothing while it has not."""
    if view.job.phase not in ENDED_PHASES:
        return ()
    return tuple(
        r
        for r in sidecars(view)
        if stays(view, r.name)
        and r.state is not TaskState.FINISHED
        and not (r.terminal and sidecar_ends.is_given_up(view, r))
    )


def _start_again(gang: GangDraft, record: TaskRecord) -> None:
    view = gang.view
    ends = sidecar_ends.ends(view, record)
    counted = replace(record, failures=ends.failures, interruptions=ends.interruptions)
    if sidecar_ends.is_given_up(view, record):
        why = f"{causes.describe(record)}; it is given up ({ends})"
        gang.put(replace(counted, kill_reason=why))
        gang.say(why)
        return
    if gang.now < record.changed_at + sidecar_ends.wait_seconds(view, record):
        return
    gang.put(replace(counted, start=record.start + 1, ordered_at=gang.now))
    gang.say(f"{causes.describe(record)}; it starts again")


def _pause_or_resume(gang: GangDraft, record: TaskRecord) -> None:
    paused = record.name in gang.view.controls.paused_tasks
    if paused != record.held:
        start = record.start + 1 if paused else record.start
        gang.put(replace(record, start=start, held=paused, ordered_at=gang.now))
        gang.say(f"{record.name} is {'paused' if paused else 'resumed'}")


def restart_on_request(gang: GangDraft, record: TaskRecord, *, in_new_container: bool) -> None:
    """Start a sidecar again, in its container or in a new one."""
    if in_new_container:
        gang.put(replace(record, kill_reason="it is placed anew on request"))
        avoidance.avoid(gang.service, record.agent_id)
    else:
        gang.put(replace(record, start=record.start + 1, ordered_at=gang.now))
    gang.say(f"{record.name} starts again on request")


def try_again_on_request(gang: GangDraft, record: TaskRecord) -> None:
    """Forget how a sidecar has ended, so that one that was given up is launched again."""
    if record.role in GANG_ROLES or record.state is TaskState.FINISHED:
        return
    why = record.kill_reason or "it is launched again on request"
    gang.put(replace(record, failures=0, interruptions=0, kill_reason=why))
    gang.look_again()
    gang.service.ask_anew()
    gang.say(f"{record.name} is launched again on request")


def due_names(gang: GangDraft) -> tuple[str, ...]:
    """Return the sidecars that are to be launched now, as far as their ends go."""
    return tuple(
        name
        for role in gang.spec.roles
        if role.role not in GANG_ROLES
        for name in gang.roster.names_of(role)
        if name in gang.roster.wanted and _is_due(gang, name)
    )


def _is_due(gang: GangDraft, name: str) -> bool:
    view, role = gang.view, str(split_task_name(name)[0])
    if view.controls.holds(DEPLOY, role) or view.controls.forced(name):
        return False
    record = view.tasks.get(name)
    if record is None:
        # Added to the options while the job runs, it is a part of the update.
        return not (view.job.deployed and view.controls.holds(UPDATE, role))
    if record.state is TaskState.UNREACHABLE:
        return gang.now >= record.changed_at + view.spec.replace_after_seconds
    if not record.terminal or record.state is TaskState.FINISHED:
        return False
    if sidecar_ends.is_given_up(view, record):
        return False
    return gang.now >= record.changed_at + sidecar_ends.wait_seconds(view, record)


def is_pending(view: GangView) -> bool:
    """Say whether a sidecar waits to be launched again."""
    return any(
        r.terminal and r.state is not TaskState.FINISHED and not sidecar_ends.is_given_up(view, r)
        for r in sidecars(view)
        if r.name in view.roster.wanted
    )
