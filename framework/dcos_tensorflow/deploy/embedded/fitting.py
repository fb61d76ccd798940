"""What a job needs, and whether an embedded cluster that is started for it alone has as much.

Such a cluster counts and does not limit, so it may claim more than there is: then the tasks share
the machine. Used by ``run`` and, for the sum, by ``validate``. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.wording import megabytes
from dcos_tensorflow.core.counted import agreeing, counted
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import ServiceSpec

if TYPE_CHECKING:
    from embedded_mesos import AgentConfig

#: What tasks can share. A GPU that is not there cannot be shared.
_SHARED = ("cpus", "mem", "disk")


def wanted(spec: ServiceSpec) -> Resources:
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
    need, count = wanted(spec), len(cluster)
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
    need, there = wanted(spec), Resources()
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
