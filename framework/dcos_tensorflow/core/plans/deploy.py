"""The plan ``deploy``: the first way of the gang to RUNNING, one phase per role.

Once the whole gang ran, the plan stays COMPLETE. Sidecars (the evaluator, TensorBoard) have their
steps in it and never hold it up, nor the gang.
"""

from __future__ import annotations

from collections.abc import Iterable

from dcos_tensorflow.core.model.controls import DEPLOY, UPDATE, step_name
from dcos_tensorflow.core.model.job import RESTARTING_PHASES, JobPhase, Outcome
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.plans.elements import (
    Phase,
    Plan,
    PlanStrategy,
    Status,
    Step,
    aggregate,
    identify,
)
from dcos_tensorflow.core.plans.standing import (
    Standing,
    misfit_of,
    on_its_way,
    paused_message,
    sidecar,
    where,
)
from dcos_tensorflow.core.restarts.gang_queries import is_started_again
from dcos_tensorflow.core.spec.service_spec import GANG_ROLES, MAIN, split_task_name

_GANG = frozenset(str(role) for role in GANG_ROLES)


#: The phase that has a step for each slot.
SLOTS = "slots"
#: What a slot's phase is in a plan; on its way to a start it is starting.
_SLOT = {
    JobPhase.PLACING: Status.PENDING,
    JobPhase.RUNNING: Status.COMPLETE,
    JobPhase.ENDING: Status.COMPLETE,
    JobPhase.DONE: Status.COMPLETE,
    # It waits for a unit.
    JobPhase.BACKING_OFF: Status.COMPLETE,
}

#: Phases that a paused deployment is not left from.
_HELD_PHASES = (JobPhase.PLACING, JobPhase.BACKING_OFF)


def deploy_plan(view: GangView) -> Plan:
    """Return the plan of the first deployment: one phase per role, one step per task."""
    phases = tuple(
        phase_of(view, DEPLOY, str(role.role), _steps(view, view.roster.names_of(role)))
        for role in view.spec.roles_in_start_order
    )
    if view.spec.units is not None:
        slots = (_slots(view),) if view.gang.name == MAIN else ()
        phases = (*(phase for phase in phases if phase.steps), *slots)
    job = view.job
    failed = job.verdict is not None and job.verdict.outcome is Outcome.FAILED
    if failed:
        status = Status.ERROR
    elif _gang_is_deployed(view):
        status = Status.COMPLETE
    else:
        status = aggregate(phase.status for phase in phases if phase.name in _GANG)
    errors = (job.verdict.summary,) if failed and job.verdict is not None else ()
    return Plan(DEPLOY, PlanStrategy.SERIAL, status, phases, errors)


def _slots(view: GangView) -> Phase:
    """Return the phase of a service whose slots take units of work: a step for each slot."""
    slots = (v for v in view.service.views() if v.roster.is_of_slot)
    steps = tuple(
        Step(
            id=identify(view.spec.name, DEPLOY, SLOTS, slot.gang.name),
            name=slot.gang.name,
            task=slot.roster.decider,
            status=_SLOT.get(slot.job.phase, Status.STARTING),
            message=slot.gang.why,
        )
        for slot in slots
    )
    return phase_of(view, DEPLOY, SLOTS, steps)


def phase_of(
    view: GangView,
    plan: str,
    name: str,
    steps: tuple[Step, ...],
    strategy: PlanStrategy = PlanStrategy.PARALLEL,
) -> Phase:
    """Return a phase with the status that its steps add up to."""
    return Phase(
        id=identify(view.spec.name, plan, name),
        name=name,
        strategy=strategy,
        status=aggregate(step.status for step in steps),
        steps=steps,
    )


def step_of(view: GangView, plan: str, task: str, standing: Standing) -> Step:
    """Return a task's step."""
    return Step(
        id=identify(view.spec.name, plan, "step", task),
        name=step_name(task),
        task=task,
        status=standing[0],
        message=standing[1],
    )


def _steps(view: GangView, names: Iterable[str]) -> tuple[Step, ...]:
    """Return the tasks' steps in the deployment.

    That of a member which was deployed follows from its record, the job and what an operator holds
    back: it is worked out once for these, as thousands are shown again and again.
    """
    job, controls, tasks = view.job, view.controls, view.tasks
    deployed = _gang_is_deployed(view)
    found = []
    for name in names:
        record = tasks.get(name)
        known = record.remembered.get(DEPLOY) if record is not None else None
        if known is not None and known[0] is job and known[1] is controls:
            found.append(known[2])
            continue
        step = step_of(view, DEPLOY, name, deployed_standing(view, name))
        lasts = deployed and step.status is Status.COMPLETE
        if record is not None and lasts and record.role.is_in_gang:
            record.remembered[DEPLOY] = (job, controls, step)
        found.append(step)
    return tuple(found)


def deployed_standing(view: GangView, name: str) -> Standing:
    """Return where a task stands in the deployment."""
    standing = _standing(view, name)
    if standing[0] is Status.COMPLETE or view.job.verdict is not None:
        return standing
    if view.controls.forced(name):
        return Status.COMPLETE, "was forced complete: the job goes on without it"
    held = _held_by(view, name)
    if held is not None and standing[0] in (Status.PENDING, Status.PREPARED, Status.DELAYED):
        return Status.WAITING, f"{held} is paused; it goes on when it is resumed"
    return standing


def _standing(view: GangView, name: str) -> Standing:
    if split_task_name(name)[0].is_in_gang:
        return _member(view, name)
    return sidecar(view, name)


def _held_by(view: GangView, name: str) -> str | None:
    """Return which pause keeps a task from being launched; None when none does."""
    controls, job = view.controls, view.job
    role = str(split_task_name(name)[0])
    waiting = job.phase in _HELD_PHASES or (role not in _GANG and name not in view.tasks)
    if not waiting and not (role not in _GANG and view.tasks[name].terminal):
        return None
    if controls.holds(DEPLOY):
        return f"the plan {DEPLOY}"
    if role not in _GANG and job.deployed and controls.holds(UPDATE, role):
        return "the update"
    roles = sorted(_GANG) if role in _GANG else [role]
    # A gang is placed as a whole: one paused phase holds all of it.
    paused = [other for other in roles if controls.holds(DEPLOY, other)]
    return f"the phase {', '.join(paused)}" if paused else None


def restarts_again(view: GangView) -> bool:
    """Say whether the plan was restarted by an operator, and the restart is under way."""
    job = view.job
    return job.restart.plan == DEPLOY and job.phase in RESTARTING_PHASES


def _gang_is_deployed(view: GangView) -> bool:
    """Say whether the whole gang ran, or was not needed any more for the job to succeed."""
    job = view.job
    if restarts_again(view):
        return False
    succeeded = job.verdict is not None and job.verdict.outcome is Outcome.SUCCEEDED
    return job.deployed or succeeded or job.phase is JobPhase.FINISHING


def _member(view: GangView, name: str) -> Standing:
    """Return where a member of the gang stands in its first deployment."""
    job, record = view.job, view.tasks.get(name)
    if _gang_is_deployed(view) or (job.deployed and not is_started_again(view, name)):
        return _deployed_member(view, name, record)
    if record is not None and record.state is TaskState.FINISHED:
        return Status.COMPLETE, _deployed_message(record)
    if job.verdict is None:
        if name in job.membership.absent:
            return _absent(view, name)
        return on_its_way(view, name)
    if job.verdict.outcome is Outcome.STOPPED:
        return Status.WAITING, f"stopped: {job.verdict.summary}"
    if job.incidents and job.incidents[-1].task == name:
        return Status.ERROR, job.incidents[-1].summary
    return Status.PENDING, f"the job has failed: {job.verdict.summary}"


def _deployed_member(view: GangView, name: str, record: TaskRecord | None) -> Standing:
    goes_on = not view.job.is_over
    absent = name in view.job.membership.absent
    role = str(split_task_name(name)[0])
    if goes_on and (absent or record is None) and view.controls.holds(UPDATE, role):
        return Status.WAITING, "the update is paused: it joins when that is resumed"
    if goes_on and absent:
        return _absent(view, name)
    if goes_on and record is None:
        # It was added to the options later.
        return Status.PENDING, misfit_of(view, name) or "joins with the next restart"
    paused = paused_message(view, name)
    if goes_on and paused is not None and record is not None and not record.terminal:
        return Status.COMPLETE, paused
    return Status.COMPLETE, _deployed_message(record)


def _absent(view: GangView, name: str) -> Standing:
    reason = misfit_of(view, name)
    because = f": {reason}" if reason else ""
    return Status.PENDING, f"the job goes on without it until there is room{because}"


def _deployed_message(record: TaskRecord | None) -> str:
    if record is None:
        return "was not needed: the job has succeeded without it"
    if record.state is TaskState.RUNNING and not record.process_failed:
        return f"runs {where(record)}"
    if record.state is TaskState.FINISHED:
        return f"finished {where(record)}"
    if record.terminal and record.kill_reason:
        return f"ended: {record.kill_reason}"
    return f"was deployed; now it is {record.state}"
