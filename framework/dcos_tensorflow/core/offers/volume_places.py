"""Where tasks with volumes go: back to their volumes, or to where there is room for one.

Called by ``core.offers.use`` for what is wanted of offers, and by ``core.offers.launching``. Pure.
What is reserved, and what becomes of it, is told in ``core.offers.reservations``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dcos_tensorflow.core.cluster.launch_options import options_of
from dcos_tensorflow.core.model.offer import Offer, OfferedReservation
from dcos_tensorflow.core.model.resources import PortRanges, Resources
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import GANG_ROLES, Addressing
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.volume_spec import VolumeType
from dcos_tensorflow.core.offers.reservations import of_task, offered
from dcos_tensorflow.core.placement.place import TaskRequest
from dcos_tensorflow.core.recovery.causes import PORT_TAKEN


def bound(state: ServiceState, request: TaskRequest) -> TaskRequest:
    """Return what a task is asked for with its volume: where that is, or with room for a new one.

    What the task still has reserved need not be in the rest of the offers.
    """
    role = options_of(state, request.name).role(request.role)
    volume = role.volume if role is not None else None
    if volume is None:
        return request
    reservation = of_task(state, request.name)
    if reservation is None or not reservation.confirmed:
        if volume.kind is VolumeType.MOUNT:
            return replace(request, mount=volume.size)
        return replace(request, resources=request.resources + Resources(disk=volume.size))
    where = f"its volume is on agent {reservation.agent_id} ({reservation.hostname})"
    # Rules about places were kept when the volume was made (SDK: they apply again on a replace).
    there = replace(request, constraints=(), region="", bound_by=where)
    if not any(o.agent_id == reservation.agent_id for o in state.offers.values()):
        return replace(there, bound_by=f"{where}, which offers nothing")
    held = offered(state.offers.values(), reservation)
    if not any(reservation.persistence_id in each.volumes for each in held):
        return replace(there, bound_by=f"{where}, whose offers do not hold it")
    ports = kept_ports(state, request.name)
    if ports:
        there = replace(there, required_port=None, preferred_port=None)
    return replace(
        there,
        agent_id=reservation.agent_id,
        resources=_beyond(request.resources, held),
        port_count=max(request.port_count - len(ports), 0),
    )


def kept_ports(state: ServiceState, name: str) -> tuple[int, ...]:
    """Return the ports that a task has again because they are reserved for it, all or none."""
    reservation, record = of_task(state, name), state.tasks.get(name)
    if reservation is None or record is None or state.spec.has_own_addresses():
        return ()
    if _is_called_by_another_port(state, record):
        return ()
    if any(i.kind == PORT_TAKEN and i.task == name for i in state.job.incidents):
        return ()
    held = offered(state.offers.values(), reservation)
    ports = sum((each.ports for each in held), PortRanges())
    return record.ports if all(port in ports for port in record.ports) else ()


def _is_called_by_another_port(state: ServiceState, record: TaskRecord) -> bool:
    """Say whether peers name a port that the task did not have: with DNS, the configured one."""
    spec = options_of(state, record.name)
    role = spec.role(record.role)
    by_name = spec.addressing is Addressing.DNS and record.role in GANG_ROLES
    return by_name and role is not None and record.ports[0] != role.port


def placeable(state: ServiceState) -> Mapping[str, Offer]:
    """Return the offers without what cannot be reserved, where tasks are to have volumes."""
    if not any(role.volume is not None for role in state.spec.roles):
        return state.offers
    return {
        offer_id: replace(o, resources=o.resources - o.fixed, ports=o.ports.without(o.fixed_ports))
        if o.fixed != Resources() or o.fixed_ports.ranges
        else o
        for offer_id, o in state.offers.items()
    }


def _beyond(wanted: Resources, held: Iterable[OfferedReservation]) -> Resources:
    have = sum((each.resources for each in held), Resources())
    return Resources(
        round(max(wanted.cpus - have.cpus, 0.0), 3),
        round(max(wanted.mem - have.mem, 0.0), 3),
        round(max(wanted.disk - have.disk, 0.0), 3),
        max(wanted.gpus - have.gpus, 0),
    )
