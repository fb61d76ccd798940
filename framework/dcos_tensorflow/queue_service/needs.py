"""The need of a job as the queue counts it, from its ServiceSpec. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    ConstraintOperator,
    PlacementConstraint,
    RoleSpec,
    ServiceSpec,
    TaskRole,
)
from dcos_tensorflow.queue.model import Constraint, GangNeed, TaskNeed
from dcos_tensorflow.queue_service.teams_file import SchedulerTask

#: A sweep or a batch that names no number of slots takes as many as there is room for.
MOST_SLOTS = 10_000
#: The fields of rules that are no attribute, as the queue's hosts have them.
HOSTNAME = "hostname"


def gang_of(spec: ServiceSpec) -> GangNeed:
    """Return the tasks that run together: of a sweep or a batch those of one slot."""
    return tuple((_need(role), role.count) for role in spec.roles if role.count)


def with_scheduler(gang: GangNeed, spec: ServiceSpec, scheduler: SchedulerTask) -> GangNeed:
    """Return what a job takes with its scheduler; a sweep or a batch gives a slot for that."""
    return gang if spec.units is not None else (*gang, (scheduler.need, 1))


def demand_of(job: str, spec: ServiceSpec, scheduler: SchedulerTask, waited: float) -> GangDemand:
    """Return what a job that waits needs of machines that are bought; ``waited`` in seconds."""
    tasks = [
        TaskRequest(
            f"{role.role}-{number}", role.role, role.resources, 0, constraints=role.constraints
        )
        for role in spec.roles
        for number in range(role.count)
    ]
    own = Resources(cpus=scheduler.cpus, mem=scheduler.mem, disk=scheduler.disk)
    return GangDemand(job, (*tasks, TaskRequest("scheduler", TaskRole.WORKER, own, 0)), waited)


def slots_of(spec: ServiceSpec) -> int:
    """Return the most slots that a job can use; 1 of a training."""
    if spec.units is None:
        return 1
    return spec.units.parallelism or MOST_SLOTS


def need_of_task(spec: ServiceSpec, task: str) -> TaskNeed | None:
    """Return the need of a task by its name, ``worker-0`` or ``slot-3-worker-0``."""
    name = task.rpartition("-")[0]
    for role in spec.roles:
        if name == role.role or name.endswith(f"-{role.role}"):
            return _need(role)
    return None


def _need(role: RoleSpec) -> TaskNeed:
    wanted = role.resources
    return TaskNeed(
        cpu_milli=math.ceil(wanted.cpus * 1000),
        mem_mib=math.ceil(wanted.mem),
        gpu_milli=wanted.gpus * 1000,
        where=tuple(_allowed(role.constraints)),
    )


def _allowed(constraints: tuple[PlacementConstraint, ...]) -> Iterator[Constraint]:
    """Yield what rules say of a host by itself; those on tasks beside each other the job keeps."""
    for one in constraints:
        named = one.operator in (ConstraintOperator.IS, ConstraintOperator.CLUSTER)
        if named and one.value and not one.field.startswith("@"):
            yield one.field, (one.value,)
