"""The plans that take things away: ``decommission``, and an uninstall in place of ``deploy``.

Names are the DC/OS SDK's: ``kill-tasks``, ``unreserve-resources-<host>``, ``deregister-service``
for an uninstall, one phase per task for what is not wanted any more.
"""

from __future__ import annotations

from collections.abc import Callable

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.volume_spec import Reservation
from dcos_tensorflow.core.plans.deploy import phase_of
from dcos_tensorflow.core.plans.elements import (
    DECOMMISSION,
    DEPLOY,
    Phase,
    Plan,
    PlanStrategy,
    Status,
    Step,
    aggregate,
    identify,
    step_key,
)
from dcos_tensorflow.core.plans.standing import Standing

KILL_TASKS = "kill-tasks"
UNRESERVE = "unreserve-resources"
DEREGISTER_SERVICE = "deregister-service"


def unwanted(state: ServiceState) -> tuple[TaskRecord, ...]:
    """Return the tasks that the options do not ask for any more, the highest index first."""
    wanted = frozenset(state.spec.task_names())
    found = [record for name, record in state.tasks.items() if name not in wanted]
    return tuple(sorted(found, key=lambda r: (str(r.role), -r.index)))


def decommission_plan(state: ServiceState) -> Plan:
    """Return the plan by which tasks go that are not wanted any more: a phase for each."""
    phases = tuple(_decommission(state, record) for record in unwanted(state))
    status = aggregate(phase.status for phase in phases)
    return Plan(DECOMMISSION, PlanStrategy.PARALLEL, status, phases)


def _decommission(state: ServiceState, record: TaskRecord) -> Phase:
    plan, phase = DECOMMISSION, record.name
    kill = _ended(state, record, step_key(plan, phase, f"kill-{record.name}"))
    if kill[0] is not Status.COMPLETE and state.controls.holds(DECOMMISSION, phase):
        kill = Status.WAITING, "it is paused; it goes on when it is resumed"
    done = kill[0] is Status.COMPLETE
    erase = (
        (Status.IN_PROGRESS, "its record is erased")
        if done
        else (Status.PENDING, "waits for the task's end")
    )
    steps = (
        _step(state, (plan, phase, f"kill-{record.name}"), record.name, kill),
        _step(state, (plan, phase, f"erase-{record.name}"), record.name, erase),
    )
    return phase_of(state, plan, phase, steps, PlanStrategy.SERIAL)


def uninstall_plan(state: ServiceState) -> Plan:
    """Return the plan of an uninstall. It is COMPLETE when nothing is left to be done.

    What was given up because its agent does not answer is complete too, and says so.
    """
    records = tuple(state.tasks.values())
    reserved = tuple(state.reservations.values())
    hosts = dict.fromkeys((*(r.hostname for r in records), *(r.hostname for r in reserved)))
    phases = [
        _removal(state, KILL_TASKS, records, lambda r: f"kill-task-{r.task_id}"),
        *(
            _given_back(
                state,
                f"{UNRESERVE}-{host}",
                tuple(r for r in records if r.hostname == host),
                tuple(r for r in reserved if r.hostname == host),
            )
            for host in hosts
        ),
    ]
    last = _step(state, (DEPLOY, DEREGISTER_SERVICE, "deregister"), "", _deregistered(state))
    phases.append(phase_of(state, DEPLOY, DEREGISTER_SERVICE, (last,), PlanStrategy.SERIAL))
    status = aggregate(phase.status for phase in phases)
    return Plan(DEPLOY, PlanStrategy.SERIAL, status, tuple(phases))


def _removal(
    state: ServiceState,
    phase: str,
    records: tuple[TaskRecord, ...],
    name_of: Callable[[TaskRecord], str],
) -> Phase:
    steps = _ended_steps(state, phase, records, name_of)
    return phase_of(state, DEPLOY, phase, steps, PlanStrategy.SERIAL)


def _ended_steps(
    state: ServiceState,
    phase: str,
    records: tuple[TaskRecord, ...],
    name_of: Callable[[TaskRecord], str],
) -> tuple[Step, ...]:
    steps = []
    for record in records:
        name = name_of(record)
        standing = _ended(state, record, step_key(DEPLOY, phase, name))
        steps.append(_step(state, (DEPLOY, phase, name), record.name, standing))
    return tuple(steps)


def _given_back(
    state: ServiceState,
    phase: str,
    records: tuple[TaskRecord, ...],
    reserved: tuple[Reservation, ...],
) -> Phase:
    """Return the phase of one agent: a step for each reservation, and for each task without."""
    with_volume = {r.resource_id for r in reserved}
    plain = tuple(r for r in records if r.resource_id not in with_volume)
    steps = [*_ended_steps(state, phase, plain, lambda r: f"unreserve-{r.name}")]
    for found in reserved:
        path = (DEPLOY, phase, _unreserve(found))
        steps.append(_step(state, path, found.task, _unreserved(state, found)))
    return phase_of(state, DEPLOY, phase, tuple(steps), PlanStrategy.SERIAL)


def _unreserve(reservation: Reservation) -> str:
    return f"unreserve-{reservation.resource_id}"


def unreserve_key(reservation: Reservation) -> str:
    """Return what stands in ``Controls.completed`` for a reservation that was given up."""
    return step_key(DEPLOY, f"{UNRESERVE}-{reservation.hostname}", _unreserve(reservation))


def _unreserved(state: ServiceState, found: Reservation) -> Standing:
    """Return how far giving back a reservation is; once it is, nothing is left of it here."""
    what = f"the volume of {found.task}"
    if _is_over(state):
        return Status.COMPLETE, f"given up: {found.hostname} has not offered {what}"
    if unreserve_key(found) in state.controls.completed:
        return Status.COMPLETE, f"given up: forced complete, while {what} may still be there"
    if found.released_at:
        return Status.STARTING, f"{what} is being destroyed on {found.hostname}"
    return Status.PENDING, f"waits until {found.hostname} offers {what}"


def _ended(state: ServiceState, record: TaskRecord, key: str) -> Standing:
    """Return how far the end of a task is; all it held is given back with it."""
    if record.terminal:
        return Status.COMPLETE, f"{record.name} has ended; {record.hostname} has everything back"
    if _is_over(state):
        return Status.COMPLETE, f"given up: {record.hostname} does not answer"
    if key in state.controls.completed:
        return Status.COMPLETE, f"given up: forced complete, while {record.name} may still run"
    if record.state is TaskState.UNREACHABLE:
        return Status.PENDING, f"{record.hostname} does not answer the master"
    if record.killed_at:
        return Status.STARTING, f"{record.name} is being ended on {record.hostname}"
    return Status.PENDING, f"{record.name} is {record.state} on {record.hostname}"


def _deregistered(state: ServiceState) -> Standing:
    given_up = state.job.given_up
    if _is_over(state) and state.erased:
        left = f"; given up: {', '.join(given_up)}" if given_up else ""
        return Status.COMPLETE, f"the framework is removed, the state is erased{left}"
    if _is_over(state):
        return Status.STARTING, "the framework is being removed"
    return Status.PENDING, "waits until every task has ended"


def _is_over(state: ServiceState) -> bool:
    return state.job.uninstalling and state.job.phase is JobPhase.DONE


def _step(state: ServiceState, path: tuple[str, str, str], task: str, standing: Standing) -> Step:
    plan, phase, name = path
    identifier = identify(state.spec.name, plan, phase, "step", name)
    return Step(identifier, name, task, standing[0], standing[1])
