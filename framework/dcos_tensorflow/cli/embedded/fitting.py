"""What a job needs, and whether an embedded cluster that is started for it alone has as much.

Used by ``run`` and, for the sum, by ``validate``. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcos_tensorflow.cli.errors import UsageError
from dcos_tensorflow.cli.wording import megabytes
from dcos_tensorflow.core.model.resources import Resources
from dcos_tensorflow.core.model.spec import ServiceSpec

if TYPE_CHECKING:
    from dcos_tensorflow.local.cluster import AgentConfig


def wanted(spec: ServiceSpec) -> Resources:
    """Return what all tasks of the service need together."""
    total = Resources()
    for role in spec.roles:
        for _ in range(role.count):
            total += role.resources
    return total


def check_fits(spec: ServiceSpec, cluster: tuple[AgentConfig, ...]) -> None:
    """Raise UsageError when the job is larger than a cluster that is started for it alone.

    Nobody else will ever add to that cluster: the job would wait for ever.
    """
    need = wanted(spec)
    there = Resources()
    for agent in cluster:
        there += Resources(agent.cpus, agent.mem, agent.disk, agent.gpus)
    if need.fits_in(there):
        return
    lacks = [
        (need.cpus > there.cpus, f"{need.cpus:g} cpus of {there.cpus:g}", "--cpus"),
        (
            need.mem > there.mem,
            f"{megabytes(need.mem)} of memory of {megabytes(there.mem)}",
            "--mem",
        ),
        (
            need.disk > there.disk,
            f"{megabytes(need.disk)} of disk of {megabytes(there.disk)}",
            "--disk",
        ),
        (need.gpus > there.gpus, f"{need.gpus} gpus of {there.gpus}", "--gpus"),
    ]
    short = ", ".join(text for lacking, text, _ in lacks if lacking)
    flags = " and ".join(flag for lacking, _, flag in lacks if lacking)
    raise UsageError(
        f"The job {spec.name} does not fit on this machine: its {len(spec.task_names())} tasks need"
        f" {short} that there are. Ask for less in the options, or say with {flags} how much the"
        " embedded cluster shall claim to have: it counts, it does not limit."
    )
