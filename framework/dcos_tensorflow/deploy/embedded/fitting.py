"""The needs of a job, and whether an embedded cluster that is started for it alone meets them.

Such a cluster counts and does not limit, so it may claim more than there is: then the tasks share
the machine. Whether each task has a place there is asked of the core's own placement. Used by
``run`` and, for the sum, by ``validate``. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.wording import megabytes
from dcos_tensorflow.core.counted import agreeing, counted
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec
from dcos_tensorflow.core.spec.volume_spec import VolumeType
from embedded_mesos import AgentConfig

#: What tasks can share. A GPU that is not there cannot be shared.
_SHARED = ("cpus", "mem", "disk")


def needed_resources(spec: ServiceSpec) -> Resources:
    """Return what all tasks of the service need together."""
    total = Resources()
    for role in spec.roles:
        for _ in range(role.count):
            total += role.resources
    return total


def check_fits(spec: ServiceSpec, cluster: tuple[AgentConfig, ...]) -> None:
    """Raise UsageError when the job is larger than a cluster that is started for it alone.

    That cluster never grows: the job would wait for ever.
    """
    short = _shortfalls(spec, cluster)
    if short:
        flags = " and ".join(f"--{name}" for name in short)
        raise UsageError(
            f"The job {spec.name} does not fit on this machine: its {_tasks_need(spec)}"
            f" {', '.join(short.values())}. Ask for less in the options, or set with {flags} how"
            " much the embedded cluster offers: it counts resources, but does not limit them."
        )


def fits(spec: ServiceSpec, cluster: tuple[AgentConfig, ...]) -> bool:
    """Say whether agents have as much as all tasks of the job need together."""
    return not _shortfalls(spec, cluster)


def overcommitted(
    spec: ServiceSpec, cluster: tuple[AgentConfig, ...], fixed: Collection[str]
) -> tuple[tuple[AgentConfig, ...], str]:
    """Return the agents as large as the job needs them, and what to say of it; empty for nothing.

    ``fixed`` are the resources whose size a flag has said: these stay. What is short all the
    same is for ``check_fits``.
    """
    short = _shortfalls(spec, cluster)
    claimed = [name for name in _SHARED if name in short and name not in fixed]
    if not claimed:
        return cluster, ""
    need, count = needed_resources(spec), len(cluster)
    largest = {n: max(getattr(role.resources, n) for role in spec.roles) for n in claimed}
    # Whatever is left of an agent that has taken a share holds one more task.
    sizes = {n: getattr(need, n) / count + (largest[n] if count > 1 else 0) for n in claimed}
    told = (
        f"This machine is overcommitted: the {_tasks_need(spec)}"
        f" {', '.join(short[name] for name in claimed)}, and share the machine; --strict refuses"
        " such a job."
    )
    return tuple(replace(agent, **sizes) for agent in cluster), told


def _tasks_need(spec: ServiceSpec) -> str:
    number = len(spec.task_names())
    return f"{counted(number, 'task')} {agreeing(number, 'need')}"


def _shortfalls(spec: ServiceSpec, cluster: tuple[AgentConfig, ...]) -> dict[str, str]:
    """Return what a cluster has too little of, by name, with how much is needed of how much."""
    need, there = needed_resources(spec), Resources()
    for agent in cluster:
        there += Resources(agent.cpus, agent.mem, agent.disk, agent.gpus)
    if need.fits_in(there):
        return {}
    words = {
        "cpus": f"{counted(need.cpus, 'cpu')} ({there.cpus:g} available)",
        "mem": f"{megabytes(need.mem)} of memory ({megabytes(there.mem)} available)",
        "disk": f"{megabytes(need.disk)} of disk ({megabytes(there.disk)} available)",
        "gpus": f"{counted(need.gpus, 'gpu')} ({there.gpus} available)",
    }
    return {
        name: told for name, told in words.items() if getattr(need, name) > getattr(there, name)
    }


def check_places(spec: ServiceSpec, cluster: Sequence[AgentConfig]) -> None:
    """Raise UsageError when a task that the job cannot do without fits on no agent."""
    misfits = place(list(_requests(spec)), list(map(_offer, cluster))).misfits
    if misfits:
        raise UsageError(
            f"The job {spec.name} would wait for ever, its own cluster never grows:"
            f" {misfits[0].reason}. Change the options, or describe other agents with --agents,"
            " --cpus, --mem, --disk, --gpus and --attributes."
        )


def _requests(spec: ServiceSpec) -> Iterator[TaskRequest]:
    for role in spec.roles:
        needed = role.count if role.min_count is None else role.min_count
        for index in range(needed):
            yield TaskRequest(
                f"{role.role}-{index}",
                role.role,
                _resources(role),
                port_count=0,
                constraints=role.constraints,
                region=spec.region,
                mount=_volume_size(role, VolumeType.MOUNT),
            )


def _resources(role: RoleSpec) -> Resources:
    return role.resources + Resources(disk=_volume_size(role, VolumeType.ROOT))


def _volume_size(role: RoleSpec, kind: VolumeType) -> float:
    return role.volume.size if role.volume is not None and role.volume.kind is kind else 0.0


def _offer(agent: AgentConfig) -> Offer:
    return Offer(
        offer_id=agent.address,
        agent_id=agent.address,
        hostname=agent.hostname or agent.address,
        address=agent.address,
        mesos_role="*",
        resources=Resources(agent.cpus, agent.mem, agent.disk, agent.gpus),
        ports=PortRanges((agent.ports,)),
        attributes=agent.attributes,
        zone=agent.zone,
        region=agent.region,
        mounts=tuple(agent.mounts.values()),
    )
