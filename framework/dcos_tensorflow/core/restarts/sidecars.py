"""Tasks beside the gang: the evaluator and TensorBoard. They follow it and never hold it up.

Called by ``core.advance``. A sidecar that fails is started again by itself, in its container where
it still has one; after too many ends the job goes on without it. A failure of its own is charged,
as in the gang; an end from outside the job is not; the job gives up a sidecar that such ends
interrupt at once again and again.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.agents import avoidance
from dcos_tensorflow.core.agents.maintenance import is_leaving
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import DECOMMISSION, DEPLOY, UPDATE
from dcos_tensorflow.core.model.job import ENDED_PHASES, Update
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts import launch_options, update_order
from dcos_tensorflow.core.restarts.backoff import backoff_seconds
from dcos_tensorflow.core.restarts.gang_queries import has_container, stays
from dcos_tensorflow.core.spec.service_spec import split_task_name
from dcos_tensorflow.records import dataclass


def sidecars(view: GangView) -> tuple[TaskRecord, ...]:
    """Return the records of the tasks beside the gang."""
    return view.tasks.records_of(view.tasks.having(Fact.SIDECAR))


def look_after(gang: GangDraft) -> None:
    """Start failed sidecars again, stop paused ones, end those whose container must go."""
    found = sidecars(gang.view)
    due = update_order.due(gang.view) if found else ()
    for record in found:
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


def look_after_staying(gang: GangDraft) -> None:
    """Start again, of the sidecars that outlive the job, those that failed after its end."""
    for record in sidecars(gang.view):
        if has_container(record) and record.process_failed and stays(gang.view, record.name):
            _start_again(gang, record)


def stop_staying(gang: GangDraft, why: str) -> None:
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
        and not (r.terminal and is_given_up(view, r))
    )


def _start_again(gang: GangDraft, record: TaskRecord) -> None:
    view = gang.view
    known = ends(view, record)
    counted = replace(record, failures=known.failures, interruptions=known.interruptions)
    if is_given_up(view, record):
        why = f"{causes.describe(record)}; it is given up ({known})"
        gang.put(replace(counted, kill_reason=why))
        gang.say(why)
        return
    if gang.now < record.changed_at + wait_seconds(view, record):
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
    if record.role.is_in_gang or record.state is TaskState.FINISHED:
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
        if not role.role.is_in_gang
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
    if is_given_up(view, record):
        return False
    return gang.now >= record.changed_at + wait_seconds(view, record)


def is_pending(view: GangView) -> bool:
    """Say whether a sidecar waits to be launched again."""
    return any(
        r.terminal and r.state is not TaskState.FINISHED and not is_given_up(view, r)
        for r in sidecars(view)
        if r.name in view.roster.wanted
    )


#: What ran for so long before it was interrupted had got somewhere: it is no loop.
SETTLED_SECONDS = 10.0


@dataclass(frozen=True)
class Ends:
    """Charged failures in a row, and interruptions in a row that came soon after the start."""

    failures: int
    interruptions: int

    def __str__(self) -> str:
        """Say it in words: what counted last."""
        if self.interruptions:
            return f"interruptions in a row: {self.interruptions}"
        return f"failures in a row: {self.failures}"


#: Of what was never started.
NO_ENDS = Ends(0, 0)


def ends(view: GangView, record: TaskRecord) -> Ends:
    """Return the counts with the end that ``record`` tells of."""
    if record.terminal and launch_options.has_other_options_now(view, record):
        # What has failed is not what is launched next.
        return NO_ENDS
    before = Ends(record.failures, record.interruptions)
    if record.kill_reason or record.state is TaskState.UNREACHABLE:
        # We ended it ourselves: that says nothing about it.
        return before
    ran = record.changed_at - max(record.launched_at, record.ordered_at)
    if causes.cause_of(record).charged:
        earlier = 0 if ran >= view.spec.retry.window_seconds else before.failures
        return Ends(earlier + 1, 0)
    return Ends(before.failures, 1 if ran >= SETTLED_SECONDS else before.interruptions + 1)


def is_given_up(view: GangView, record: TaskRecord) -> bool:
    """Say whether a sidecar that has ended is not to be started again: also one that never can."""
    now, retry = ends(view, record), view.spec.retry
    if now.failures and not record.kill_reason and causes.cause_of(record).permanent:
        return True
    return now.failures > _limit(view, record) or now.interruptions > retry.fruitless_limit


def wait_seconds(view: GangView, record: TaskRecord) -> float:
    """Return how long after its end a sidecar is started again; 0 after a first interruption."""
    now = ends(view, record)
    in_a_row = now.interruptions - 1 if now.interruptions else now.failures
    return backoff_seconds(view.spec.retry, in_a_row, record.task_id)


def _limit(view: GangView, record: TaskRecord) -> int:
    role = view.spec.role(record.role)
    own = role.retry_limit if role is not None else None
    return view.spec.retry.limit if own is None else own
