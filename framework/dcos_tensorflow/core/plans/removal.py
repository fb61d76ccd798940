"""The plans that take things away: ``decommission``, and an uninstall in place of ``deploy``.

Names are the DC/OS SDK's: ``kill-tasks``, ``unreserve-resources-<host>``, ``deregister-service``
for an uninstall, one phase per task that is not wanted any more.
"""

from __future__ import annotations

from collections.abc import Callable

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.controls import (
    DECOMMISSION,
    DEPLOY,
    DEREGISTER_SERVICE,
    KILL_TASKS,
    UNRESERVE,
    step_key,
    unreserve_key,
    unreserve_step,
)
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.machine_records import machines_left
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.plans.deploy import phase_of
from dcos_tensorflow.core.plans.elements import (
    Phase,
    Plan,
    PlanStrategy,
    Status,
    Step,
    aggregate,
    identify,
)
from dcos_tensorflow.core.plans.standing import Standing
from dcos_tensorflow.core.restarts.gang_queries import still_running
from dcos_tensorflow.core.spec.volume_spec import Reservation


def unwanted(view: GangView) -> tuple[TaskRecord, ...]:
    """Return the tasks that the options do not ask for any more, the highest index first."""
    found = [record for name, record in view.tasks.items() if name not in view.roster.wanted]
    return tuple(sorted(found, key=lambda r: (str(r.role), -r.index)))


def decommission_plan(view: GangView) -> Plan:
    """Return the plan by which tasks go that are not wanted any more: a phase for each."""
    phases = tuple(_decommission(view, record) for record in unwanted(view))
    status = aggregate(phase.status for phase in phases)
    return Plan(DECOMMISSION, PlanStrategy.PARALLEL, status, phases)


def _decommission(view: GangView, record: TaskRecord) -> Phase:
    plan, phase = DECOMMISSION, record.name
    kill = _ended(view, record, step_key(plan, phase, f"kill-{record.name}"))
    if kill[0] is not Status.COMPLETE and view.controls.holds(DECOMMISSION, phase):
        kill = Status.WAITING, "it is paused; it goes on when it is resumed"
    done = kill[0] is Status.COMPLETE
    erase = (
        (Status.IN_PROGRESS, "its record is erased")
        if done
        else (Status.PENDING, "waits for the task's end")
    )
    steps = (
        _step(view, (plan, phase, f"kill-{record.name}"), record.name, kill),
        _step(view, (plan, phase, f"erase-{record.name}"), record.name, erase),
    )
    return phase_of(view, plan, phase, steps, PlanStrategy.SERIAL)


def uninstall_plan(view: GangView) -> Plan:
    """Return the plan of an uninstall. It is COMPLETE when nothing is left to be done.

    What was given up because its agent does not answer is complete too, and says so.
    """
    records = tuple(view.tasks.values())
    reserved = tuple(view.service.reservations.values())
    hosts = dict.fromkeys((*(r.hostname for r in records), *(r.hostname for r in reserved)))
    kills = _ended_steps(view, KILL_TASKS, records, lambda r: f"kill-task-{r.task_id}")
    phases = [
        phase_of(view, DEPLOY, KILL_TASKS, kills, PlanStrategy.SERIAL),
        *(
            _given_back(
                view,
                f"{UNRESERVE}-{host}",
                tuple(r for r in records if r.hostname == host),
                tuple(r for r in reserved if r.hostname == host),
            )
            for host in hosts
        ),
    ]
    last = _step(view, (DEPLOY, DEREGISTER_SERVICE, "deregister"), "", _deregistered(view))
    phases.append(phase_of(view, DEPLOY, DEREGISTER_SERVICE, (last,), PlanStrategy.SERIAL))
    status = aggregate(phase.status for phase in phases)
    return Plan(DEPLOY, PlanStrategy.SERIAL, status, tuple(phases))


def _ended_steps(
    view: GangView,
    phase: str,
    records: tuple[TaskRecord, ...],
    name_of: Callable[[TaskRecord], str],
) -> tuple[Step, ...]:
    steps = []
    for record in records:
        name = name_of(record)
        standing = _ended(view, record, step_key(DEPLOY, phase, name))
        steps.append(_step(view, (DEPLOY, phase, name), record.name, standing))
    return tuple(steps)


def _given_back(
    view: GangView, phase: str, records: tuple[TaskRecord, ...], reserved: tuple[Reservation, ...]
) -> Phase:
    """Return the phase of one agent: a step for each reservation, and for each task without."""
    with_volume = {r.resource_id for r in reserved}
    plain = tuple(r for r in records if r.resource_id not in with_volume)
    steps = [*_ended_steps(view, phase, plain, lambda r: f"unreserve-{r.name}")]
    for found in reserved:
        path = (DEPLOY, phase, unreserve_step(found.resource_id))
        steps.append(_step(view, path, found.task, _unreserved(view, found)))
    return phase_of(view, DEPLOY, phase, tuple(steps), PlanStrategy.SERIAL)


def _unreserved(view: GangView, found: Reservation) -> Standing:
    """Return how far giving back a reservation is; once it is, nothing is left of it here."""
    what = f"the volume of {found.task}"
    if _is_over(view):
        return Status.COMPLETE, f"given up: {found.hostname} has not offered {what}"
    if unreserve_key(found.hostname, found.resource_id) in view.controls.completed:
        return Status.COMPLETE, f"given up: forced complete, while {what} may still be there"
    if found.released_at:
        return Status.STARTING, f"{what} is being destroyed on {found.hostname}"
    return Status.PENDING, f"waits until {found.hostname} offers {what}"


def _ended(view: GangView, record: TaskRecord, key: str) -> Standing:
    """Return how far the end of a task is; all it held is given back with it."""
    if record.terminal:
        return Status.COMPLETE, f"{record.name} has ended; {record.hostname} has everything back"
    if _is_over(view):
        return Status.COMPLETE, f"given up: {record.hostname} does not answer"
    if key in view.controls.completed:
        return Status.COMPLETE, f"given up: forced complete, while {record.name} may still run"
    if record.state is TaskState.UNREACHABLE:
        return Status.PENDING, f"{record.hostname} does not answer the master"
    if record.killed_at:
        return Status.STARTING, f"{record.name} is being ended on {record.hostname}"
    return Status.PENDING, f"{record.name} is {record.state} on {record.hostname}"


def _deregistered(view: GangView) -> Standing:
    given_up = view.service.uninstall.given_up
    if _is_over(view) and view.service.removal.erased:
        left = f"; given up: {', '.join(given_up)}" if given_up else ""
        return Status.COMPLETE, f"the framework is removed, the state is erased{left}"
    if _is_over(view):
        return Status.STARTING, "the framework is being removed"
    machines = machines_left(view.service.capacity)
    if machines and not still_running(view):
        return Status.PENDING, f"waits for the end of {counted(machines, 'bought machine')}"
    return Status.PENDING, "waits until every task has ended"


def _is_over(view: GangView) -> bool:
    return view.service.uninstall.asked and view.job.phase is JobPhase.DONE


def _step(view: GangView, path: tuple[str, str, str], task: str, standing: Standing) -> Step:
    plan, phase, name = path
    identifier = identify(view.spec.name, plan, phase, "step", name)
    return Step(identifier, name, task, standing[0], standing[1])
