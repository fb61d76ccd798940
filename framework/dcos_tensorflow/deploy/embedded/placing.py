"""Whether the tasks of a job have a place on an embedded cluster that is started for it alone.

Asked by ``embedded.cluster``, of the core's own placement: the agents are all empty, and that
cluster never grows, so what has no place now never has. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.place import TaskRequest, place
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec
from dcos_tensorflow.core.spec.volume_spec import VolumeType
from embedded_mesos import AgentConfig


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
