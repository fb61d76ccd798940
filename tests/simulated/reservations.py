"""Reservations and persistent volumes of the simulated agents (``simulated.mesos``)."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dcos_tensorflow.core.model.actions import LaunchTask, Release
from dcos_tensorflow.core.model.offer import OfferedReservation
from dcos_tensorflow.core.spec.resources import PortRanges, Resources

Key = tuple[str, str]


@dataclass
class Held:
    """What one agent has reserved under one label, by (framework id, resource id)."""

    resources: Resources = Resources()
    ports: PortRanges = PortRanges()
    #: Persistence id and size; empty without a volume.
    volume: str = ""
    size: float = 0.0
    #: Who has written into the volume, oldest first.
    content: list[str] = field(default_factory=list)
    used_by: str = ""


class Reservations:
    """What is reserved on one agent."""

    def __init__(self) -> None:
        self.held: dict[Key, Held] = {}

    def offered(self) -> tuple[OfferedReservation, ...]:
        """Return what is not in use."""
        return tuple(
            OfferedReservation(
                *key,
                held.resources,
                held.ports,
                frozenset({held.volume} if held.volume else ()),
            )
            for key, held in self.held.items()
            if not held.used_by
        )

    def launch(self, launch: LaunchTask) -> tuple[Resources, tuple[int, ...]]:
        """RESERVE, CREATE, LAUNCH; return what it takes of the agent's unreserved resources."""
        order = launch.reservation
        if order is None:
            return launch.resources, launch.host_ports
        held = self.held.setdefault((order.framework_id, order.resource_id), Held())
        assert not held.used_by, f"{launch.name} shares its reservation with {held.used_by}"
        ports = tuple(p for p in launch.host_ports if p not in held.ports)
        more = _beyond(launch.resources, held.resources)
        if not held.volume:
            held.volume, held.size = order.persistence_id, order.volume.size
            more = more + Resources(disk=held.size)
        surplus = _beyond(held.resources, launch.resources)
        gone = tuple(p for p in held.ports if p not in launch.host_ports)
        assert not gone or ports, f"{launch.name} gives up its ports"
        held.resources, held.ports = launch.resources, _ranges(launch.host_ports)
        held.used_by = launch.task_id
        held.content.append(launch.task_id)
        return more - surplus, ports

    def end(self, launch: LaunchTask) -> tuple[Resources, tuple[int, ...]]:
        """Return what is free again after a task's end: nothing of what is reserved."""
        order = launch.reservation
        if order is None:
            return launch.resources, launch.host_ports
        held = self.held.get((order.framework_id, order.resource_id))
        if held is not None and held.used_by == launch.task_id:
            held.used_by = ""
        return Resources(), ()

    def release(self, action: Release) -> tuple[Resources, tuple[int, ...]]:
        """DESTROY and UNRESERVE what is not in use; return what is free again."""
        free, ports = Resources(), []
        for key in (*action.everything, *action.but_volumes):
            held = self.held.get(key)
            if held is None or held.used_by:
                continue
            free = free + held.resources
            ports += held.ports
            held.resources, held.ports = Resources(), PortRanges()
            if key in action.everything:
                free = free + Resources(disk=held.size)
                del self.held[key]
        return free, tuple(ports)

    def add(self, key: Key, held: Held) -> None:
        """Reserve something for another framework."""
        self.held[key] = replace(held)


def _beyond(one: Resources, other: Resources) -> Resources:
    return Resources(
        max(one.cpus - other.cpus, 0.0),
        max(one.mem - other.mem, 0.0),
        max(one.disk - other.disk, 0.0),
        max(one.gpus - other.gpus, 0),
    )


def _ranges(ports: Iterable[int]) -> PortRanges:
    return PortRanges.of((p, p) for p in ports)
