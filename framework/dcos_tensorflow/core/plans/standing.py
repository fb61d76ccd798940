"""Where one task stands, as a status and a sentence: what the steps of every plan are made of.

Used by the plan views only. Each function is total: whatever the state, there is an answer.
"""

from __future__ import annotations

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.core.recovery import causes, sidecar_ends
from dcos_tensorflow.core.recovery.members import has_container, is_started

Standing = tuple[Status, str]

STARTING_STATES = frozenset({TaskState.LAUNCHING, TaskState.STAGING, TaskState.STARTING})


def where(record: TaskRecord) -> str:
    """Return where a task has its container."""
    if not record.address:
        return f"on {record.hostname}, whose container's address Mesos has not told yet"
    port = f":{record.ports[0]}" if record.ports else ""
    return f"on {record.hostname} at {record.address}{port}"


def misfit_of(state: ServiceState, name: str) -> str | None:
    """Return why a task fits nowhere; None when that is not known."""
    return next((misfit.reason for misfit in state.misfits if misfit.task == name), None)


def paused_message(state: ServiceState, name: str) -> str | None:
    """Return what is to be said of a task that an operator has paused; None when he has not."""
    if name not in state.controls.paused_tasks:
        return None
    return f"is paused; 'pod resume {name}' starts it again"


def on_its_way(state: ServiceState, name: str) -> Standing:
    """Return where a member of a gang stands that is being deployed, or started again."""
    job, record = state.job, state.tasks.get(name)
    if job.phase is JobPhase.BACKING_OFF:
        held = job.deployed and state.controls.holds("recovery")
        return Status.WAITING if held else Status.DELAYED, job.why
    if job.phase is JobPhase.STOPPING:
        return _stopping(state, record)
    if job.phase is JobPhase.PLACING and not has_container(record):
        return _unplaced(state, name)
    if record is None:
        return Status.PENDING, misfit_of(state, name) or job.why
    if job.phase in (JobPhase.PLACING, JobPhase.STAGING):
        return _placed(state, record)
    paused = paused_message(state, name)
    if paused is not None and has_container(record):
        return Status.WAITING, paused
    if record.ordered_at and has_container(record) and not is_started(state, record):
        return Status.STARTING, f"is being started {where(record)}"
    return launched(record, Status.STARTED)


def _stopping(state: ServiceState, record: TaskRecord | None) -> Standing:
    if record is not None and not record.terminal and record.kill_reason:
        return Status.PENDING, f"is being ended: {record.kill_reason}"
    return Status.PENDING, state.job.why


def _placed(state: ServiceState, record: TaskRecord) -> Standing:
    """Return where a member with a container stands while others have none, or are not ready."""
    if not has_container(record) or record.state in STARTING_STATES:
        return launched(record, Status.STARTED)
    others = f"{state.misfits[0].task} has a place" if state.misfits else "the others are ready"
    return Status.PREPARED, f"has its container {where(record)}; waits until {others}"


def _unplaced(state: ServiceState, name: str) -> Standing:
    if not state.registered:
        because = f" ({state.disconnected}); it goes on trying" if state.disconnected else ""
        return Status.PENDING, f"the service is not registered with a Mesos master{because}"
    misfit = misfit_of(state, name)
    if misfit is not None:
        return Status.PENDING, misfit
    if not state.misfits:
        return Status.PENDING, state.job.why
    first = state.misfits[0]
    more = f" and {len(state.misfits) - 1} more" if len(state.misfits) > 1 else ""
    return (
        Status.PREPARED,
        f"fits; the gang is placed as a whole and waits for {first.task}{more}",
    )


def launched(record: TaskRecord, running: Status) -> Standing:
    """Return where a launched task stands; ``running`` is the status of one that runs."""
    if record.process_failed:
        return Status.PENDING, causes.describe(record)
    if record.state in STARTING_STATES:
        return Status.STARTING, f"is {record.state} {where(record)}"
    if record.state is TaskState.RUNNING:
        rest = "" if running is Status.COMPLETE else ", waits for the rest of the gang"
        return running, f"runs {where(record)}{rest}"
    if record.state is TaskState.FINISHED:
        return Status.COMPLETE, f"finished {where(record)}"
    if record.state is TaskState.UNREACHABLE:
        return Status.PENDING, f"its agent {record.hostname} does not answer the master"
    return Status.PENDING, causes.describe(record)


def sidecar(state: ServiceState, name: str) -> Standing:
    """Return where an evaluator or a TensorBoard stands; it follows the gang."""
    job, record = state.job, state.tasks.get(name)
    over = job.phase in (JobPhase.FINISHING, JobPhase.ENDING, JobPhase.DONE)
    if record is None:
        return _unlaunched_sidecar(state, name, over)
    paused = paused_message(state, name)
    if paused is not None and not record.terminal and not over:
        return Status.WAITING, paused
    if record.state is TaskState.FINISHED:
        return launched(record, Status.COMPLETE)
    if not record.terminal and not record.process_failed:
        return launched(record, Status.COMPLETE)
    return _ended_sidecar(state, record, over)


def _unlaunched_sidecar(state: ServiceState, name: str, over: bool) -> Standing:
    misfit = misfit_of(state, name)
    if over:
        return Status.PENDING, "was never started: the job has ended"
    if state.job.phase is JobPhase.PLACING or misfit is not None:
        return Status.PENDING, misfit or "starts together with the gang or after it"
    return Status.PENDING, "waits for an offer that fits"


def _ended_sidecar(state: ServiceState, record: TaskRecord, over: bool) -> Standing:
    end = causes.describe(record)
    if record.kill_reason and over:
        return Status.COMPLETE, f"ended: {record.kill_reason}"
    counted = sidecar_ends.ends(state, record)
    if sidecar_ends.is_given_up(state, record):
        return Status.ERROR, f"{end}; given up ({counted})"
    if over:
        return Status.COMPLETE, f"{end}; not started again, the job has ended"
    return Status.DELAYED, f"{end}; it is started again ({counted})"
