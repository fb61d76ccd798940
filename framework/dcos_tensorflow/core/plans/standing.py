"""Where one task stands, as a status and a sentence: the content of the steps of every plan.

Used by the plan views only. Each function is total: whatever the state, there is an answer.
"""

from __future__ import annotations

from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import COMING_UP, TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.core.restarts import sidecars
from dcos_tensorflow.core.restarts.gang_queries import has_container

Standing = tuple[Status, str]


def where(record: TaskRecord) -> str:
    """Return where a task has its container."""
    if not record.address:
        return f"on {record.hostname}; Mesos has not reported the container's address yet"
    port = f":{record.ports[0]}" if record.ports else ""
    return f"on {record.hostname} at {record.address}{port}"


def misfit_of(view: GangView, name: str) -> str | None:
    """Return why a task fits nowhere; None when that is not known."""
    return view.gang.placing.reasons.get(name)


def paused_message(view: GangView, name: str) -> str | None:
    """Return what is to be said of a task that an operator has paused; None when he has not."""
    if name not in view.controls.paused_tasks:
        return None
    return f"is paused; 'pod resume {name}' starts it again"


def on_its_way(view: GangView, name: str) -> Standing:
    """Return where a member of a gang stands that is being deployed, or started again."""
    job, record = view.job, view.tasks.get(name)
    if job.phase is JobPhase.BACKING_OFF:
        held = job.deployed and view.controls.holds("recovery")
        return Status.WAITING if held else Status.DELAYED, view.gang.why
    if job.phase is JobPhase.STOPPING:
        return _stopping(view, record)
    if job.phase is JobPhase.PLACING and not has_container(record):
        return _unplaced(view, name)
    if record is None:
        return Status.PENDING, misfit_of(view, name) or view.gang.why
    if job.phase in (JobPhase.PLACING, JobPhase.STAGING):
        return _placed(view, record)
    paused = paused_message(view, name)
    if paused is not None and has_container(record):
        return Status.WAITING, paused
    if record.ordered_at and has_container(record) and not view.tasks.has(name, Fact.STARTED):
        return Status.STARTING, f"is being started {where(record)}"
    return launched(record, Status.STARTED)


def _stopping(view: GangView, record: TaskRecord | None) -> Standing:
    if record is not None and not record.terminal and record.kill_reason:
        return Status.PENDING, f"is being ended: {record.kill_reason}"
    return Status.PENDING, view.gang.why


def _placed(view: GangView, record: TaskRecord) -> Standing:
    """Return where a member with a container stands while others have none, or are not ready."""
    if not has_container(record) or record.state in COMING_UP:
        return launched(record, Status.STARTED)
    others = (
        f"{view.gang.placing.misfits[0].task} has a place"
        if view.gang.placing.misfits
        else "the others are ready"
    )
    return Status.PREPARED, f"has its container {where(record)}; waits until {others}"


def _unplaced(view: GangView, name: str) -> Standing:
    if not view.service.registered:
        because = (
            f" ({view.service.subscription.disconnected}); it goes on trying"
            if view.service.subscription.disconnected
            else ""
        )
        return Status.PENDING, f"the service is not registered with a Mesos master{because}"
    misfit, misfits = misfit_of(view, name), view.gang.placing.misfits
    if misfit is not None and not view.gang.placing.blocked:
        return Status.PENDING, misfit
    if not misfits or view.gang.placing.blocked:
        return Status.PENDING, view.gang.why
    first, more = misfits[0], f" and {len(misfits) - 1} more" if len(misfits) > 1 else ""
    return (
        Status.PREPARED,
        f"fits; the gang is placed as a whole and waits for {first.task}{more}",
    )


def launched(record: TaskRecord, running: Status) -> Standing:
    """Return where a launched task stands; ``running`` is the status of one that runs."""
    if record.process_failed:
        return Status.PENDING, causes.describe(record)
    if record.state in COMING_UP:
        return Status.STARTING, f"is {record.state} {where(record)}"
    if record.state is TaskState.RUNNING:
        rest = "" if running is Status.COMPLETE else ", waits for the rest of the gang"
        return running, f"runs {where(record)}{rest}"
    if record.state is TaskState.FINISHED:
        return Status.COMPLETE, f"finished {where(record)}"
    if record.state is TaskState.UNREACHABLE:
        return Status.PENDING, f"its agent {record.hostname} does not answer the master"
    return Status.PENDING, causes.describe(record)


def sidecar(view: GangView, name: str) -> Standing:
    """Return where an evaluator or a TensorBoard stands; it follows the gang."""
    job, record = view.job, view.tasks.get(name)
    over = job.phase in (JobPhase.FINISHING, JobPhase.ENDING, JobPhase.DONE)
    if record is None:
        return _unlaunched_sidecar(view, name, over)
    paused = paused_message(view, name)
    if paused is not None and not record.terminal and not over:
        return Status.WAITING, paused
    if record.state is TaskState.FINISHED:
        return launched(record, Status.COMPLETE)
    if not record.terminal and not record.process_failed:
        return launched(record, Status.COMPLETE)
    return _ended_sidecar(view, record, over)


def _unlaunched_sidecar(view: GangView, name: str, over: bool) -> Standing:
    misfit = misfit_of(view, name)
    if over:
        return Status.PENDING, "was never started: the job has ended"
    if view.job.phase is JobPhase.PLACING or misfit is not None:
        return Status.PENDING, misfit or "starts together with the gang or after it"
    return Status.PENDING, view.gang.placing.blocked or "waits for an offer that fits"


def _ended_sidecar(view: GangView, record: TaskRecord, over: bool) -> Standing:
    end = causes.describe(record)
    if record.kill_reason and over:
        return Status.COMPLETE, f"ended: {record.kill_reason}"
    counted = sidecars.ends(view, record)
    if sidecars.is_given_up(view, record):
        return Status.ERROR, f"{end}; given up ({counted})"
    if over:
        return Status.COMPLETE, f"{end}; not started again, the job has ended"
    return Status.DELAYED, f"{end}; it is started again ({counted})"
