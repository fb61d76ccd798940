"""Work in progress as plans, phases and steps: what the DC/OS SDK's users know how to read.

Called by the API and the command line, with the state of the moment. A plan is a view: it is
derived from the state alone, nothing of it is stored and nothing is decided here. The words, the
statuses and how they add up are the SDK's (its ``scheduler/plan``: ``Status``, ``PlanUtils``).

``deploy`` is the first way of the gang to RUNNING; once it was there, the plan stays COMPLETE.
``recovery`` has a phase while the gang is stopped and started again after that. Sidecars (the
evaluator, TensorBoard) have their steps in ``deploy`` and never hold it up, nor the gang.
"""

from __future__ import annotations

from collections.abc import Mapping

from dcos_tensorflow.core import causes
from dcos_tensorflow.core.job import JobPhase, Outcome
from dcos_tensorflow.core.plan_elements import (
    DECOMMISSION,
    DEPLOY,
    RECOVERY,
    START_ORDER,
    UPDATE,
    Phase,
    Plan,
    PlanStrategy,
    Status,
    Step,
    aggregate,
    identify,
    names_of,
    roles_in_start_order,
    step_name,
)
from dcos_tensorflow.core.service_state import ServiceState
from dcos_tensorflow.core.spec import GANG_ROLES, RoleSpec
from dcos_tensorflow.core.task import TaskRecord, TaskState

__all__ = [
    "DECOMMISSION",
    "DEPLOY",
    "RECOVERY",
    "START_ORDER",
    "UPDATE",
    "Phase",
    "Plan",
    "PlanStrategy",
    "Status",
    "Step",
    "aggregate",
    "deploy_plan",
    "names_of",
    "plans",
    "recovery_plan",
    "roles_in_start_order",
    "step_name",
]

#: Phases in which a gang that was deployed once is on its way back.
RECOVERING_PHASES = frozenset(
    {JobPhase.STOPPING, JobPhase.BACKING_OFF, JobPhase.PLACING, JobPhase.STARTING}
)

_STARTING_STATES = frozenset({TaskState.LAUNCHING, TaskState.STAGING, TaskState.STARTING})


def plans(state: ServiceState) -> Mapping[str, Plan]:
    """Return every plan of the service by name, in the order in which they are listed."""
    return {DEPLOY: deploy_plan(state), RECOVERY: recovery_plan(state)}


def deploy_plan(state: ServiceState) -> Plan:
    """Return the plan of the first deployment: one phase per role, one step per task."""
    reasons = {misfit.task: misfit.reason for misfit in state.misfits}
    phases = tuple(
        _phase(state, DEPLOY, str(role.role), _role_steps(state, role, reasons))
        for role in roles_in_start_order(state.spec)
    )
    job = state.job
    failed = job.verdict is not None and job.verdict.outcome is Outcome.FAILED
    if failed:
        status = Status.ERROR
    elif _gang_is_deployed(state):
        status = Status.COMPLETE
    else:
        gang = {str(role) for role in GANG_ROLES}
        status = aggregate(phase.status for phase in phases if phase.name in gang)
    errors = (job.verdict.summary,) if failed and job.verdict is not None else ()
    return Plan(DEPLOY, PlanStrategy.SERIAL, status, phases, errors)


def recovery_plan(state: ServiceState) -> Plan:
    """Return the plan of the restart under way; without phases when nothing recovers."""
    if not state.job.deployed or state.job.phase not in RECOVERING_PHASES:
        return Plan(RECOVERY, PlanStrategy.PARALLEL, Status.COMPLETE)
    reasons = {misfit.task: misfit.reason for misfit in state.misfits}
    steps = tuple(
        _step(state, RECOVERY, name, _on_its_way(state, state.tasks.get(name), reasons.get(name)))
        for role in roles_in_start_order(state.spec)
        if role.role in GANG_ROLES
        for name in names_of(role)
    )
    phase = _phase(state, RECOVERY, "gang", steps)
    return Plan(RECOVERY, PlanStrategy.PARALLEL, phase.status, (phase,))


def _phase(state: ServiceState, plan: str, name: str, steps: tuple[Step, ...]) -> Phase:
    return Phase(
        id=identify(state.spec.name, plan, name),
        name=name,
        strategy=PlanStrategy.PARALLEL,
        status=aggregate(step.status for step in steps),
        steps=steps,
    )


def _step(state: ServiceState, plan: str, task: str, standing: tuple[Status, str]) -> Step:
    return Step(
        id=identify(state.spec.name, plan, "step", task),
        name=step_name(task),
        task=task,
        status=standing[0],
        message=standing[1],
    )


def _role_steps(
    state: ServiceState, role: RoleSpec, reasons: Mapping[str, str]
) -> tuple[Step, ...]:
    standing = _member if role.role in GANG_ROLES else _sidecar
    return tuple(
        _step(state, DEPLOY, name, standing(state, name, state.tasks.get(name), reasons.get(name)))
        for name in names_of(role)
    )


def _gang_is_deployed(state: ServiceState) -> bool:
    """Say whether the whole gang ran, or was not needed any more for the job to succeed."""
    job = state.job
    succeeded = job.verdict is not None and job.verdict.outcome is Outcome.SUCCEEDED
    return job.deployed or succeeded or job.phase is JobPhase.FINISHING


def _member(
    state: ServiceState, name: str, record: TaskRecord | None, misfit: str | None
) -> tuple[Status, str]:
    """Return where a member of the gang stands in its first deployment."""
    job = state.job
    if _gang_is_deployed(state):
        return Status.COMPLETE, _deployed_message(record)
    if record is not None and record.state is TaskState.FINISHED:
        return Status.COMPLETE, _deployed_message(record)
    if job.verdict is None:
        return _on_its_way(state, record, misfit)
    if job.verdict.outcome is Outcome.STOPPED:
        return Status.WAITING, f"stopped: {job.verdict.summary}"
    if job.incidents and job.incidents[-1].task == name:
        return Status.ERROR, job.incidents[-1].summary
    return Status.PENDING, f"the job has failed: {job.verdict.summary}"


def _deployed_message(record: TaskRecord | None) -> str:
    if record is None:
        return "was not needed: the job has succeeded without it"
    if record.state is TaskState.RUNNING:
        return f"runs {_where(record)}"
    if record.state is TaskState.FINISHED:
        return f"finished {_where(record)}"
    if record.terminal and record.kill_reason:
        return f"ended: {record.kill_reason}"
    return f"was deployed; now it is {record.state}"


def _where(record: TaskRecord) -> str:
    port = f":{record.ports[0]}" if record.ports else ""
    return f"on {record.hostname} at {record.address}{port}"


def _on_its_way(
    state: ServiceState, record: TaskRecord | None, misfit: str | None
) -> tuple[Status, str]:
    """Return where a member of a gang stands that does not run as a whole yet."""
    job = state.job
    if job.phase is JobPhase.PLACING:
        return _unplaced(state, misfit)
    if job.phase is JobPhase.BACKING_OFF:
        return Status.DELAYED, job.why
    if job.phase is JobPhase.STOPPING:
        if record is not None and not record.terminal and record.kill_reason:
            return Status.PENDING, f"is being ended: {record.kill_reason}"
        return Status.PENDING, job.why
    if record is None:
        return Status.PENDING, job.why
    return _launched(record, Status.STARTED)


def _unplaced(state: ServiceState, misfit: str | None) -> tuple[Status, str]:
    if not state.registered:
        because = f" ({state.disconnected}); it goes on trying" if state.disconnected else ""
        return Status.PENDING, f"the service is not registered with a Mesos master{because}"
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


def _launched(record: TaskRecord, running: Status) -> tuple[Status, str]:
    """Return where a launched task stands; ``running`` is the status of one that runs."""
    if record.state in _STARTING_STATES:
        return Status.STARTING, f"is {record.state} {_where(record)}"
    if record.state is TaskState.RUNNING:
        rest = "" if running is Status.COMPLETE else ", waits for the rest of the gang"
        return running, f"runs {_where(record)}{rest}"
    if record.state is TaskState.FINISHED:
        return Status.COMPLETE, f"finished {_where(record)}"
    if record.state is TaskState.UNREACHABLE:
        return Status.PENDING, f"its agent {record.hostname} does not answer the master"
    return Status.PENDING, causes.describe(record)


def _sidecar(
    state: ServiceState, name: str, record: TaskRecord | None, misfit: str | None
) -> tuple[Status, str]:
    """Return where an evaluator or a TensorBoard stands; it follows the gang."""
    job = state.job
    over = job.phase in (JobPhase.FINISHING, JobPhase.ENDING, JobPhase.DONE)
    if record is None:
        if over:
            return Status.PENDING, "was never started: the job has ended"
        if job.phase is JobPhase.PLACING or misfit is not None:
            return Status.PENDING, misfit or "starts together with the gang or after it"
        return Status.PENDING, "waits for an offer that fits"
    if not record.terminal or record.state is TaskState.FINISHED:
        return _launched(record, Status.COMPLETE)
    end = causes.describe(record)
    limit = state.spec.retry.limit
    if record.kill_reason and over:
        return Status.COMPLETE, f"ended: {record.kill_reason}"
    if record.failures >= limit:
        return Status.ERROR, f"{end}; given up after {record.failures + 1} attempts"
    if over:
        return Status.COMPLETE, f"{end}; not started again, the job has ended"
    return Status.DELAYED, f"{end}; it is started again (attempt {record.failures + 2})"
