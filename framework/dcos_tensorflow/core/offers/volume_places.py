"""The places of tasks with volumes: at their volumes, or where there is room for one.

Called by ``core.offers.wants`` and ``core.offers.launching``. Pure. ``core.offers.reservations``
has the life of a reservation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from dcos_tensorflow.core.failures.causes import PORT_TAKEN
from dcos_tensorflow.core.model.offer import Offer, OfferedReservation
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.offers.reservations import offered
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.restarts.launch_options import options_of
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import Addressing, RoleSpec, ServiceSpec
from dcos_tensorflow.core.spec.volume_spec import VolumeType


def bound(view: GangView, request: TaskRequest, role: RoleSpec) -> TaskRequest:
    """Return what a task is asked for with its volume: where that is, or with room for a new one.

    ``role`` is what it is launched as. What the task still has reserved need not be in the rest of
    the offers.
    """
    volume = role.volume
    if volume is None:
        return request
    offers = view.service.desk.offers.values()
    reservation = view.service.reservation_of(request.name)
    if reservation is None or not reservation.confirmed:
        if volume.kind is VolumeType.MOUNT:
            return replace(request, mount=volume.size)
        return replace(request, resources=request.resources + Resources(disk=volume.size))
    where = f"its volume is on agent {reservation.agent_id} ({reservation.hostname})"
    # Rules about places were kept when the volume was made (SDK: they apply again on a replace).
    there = replace(request, constraints=(), region="", bound_by=where)
    if not any(o.agent_id == reservation.agent_id for o in offers):
        return replace(there, bound_by=f"{where}, which offers nothing")
    held = offered(offers, reservation)
    if not any(reservation.persistence_id in each.volumes for each in held):
        return replace(there, bound_by=f"{where}, whose offers do not hold it")
    ports = kept_ports(view, request.name)
    if ports:
        there = replace(there, required_port=None, preferred_port=None)
    return replace(
        there,
        agent_id=reservation.agent_id,
        resources=_beyond(request.resources, held),
        port_count=max(request.port_count - len(ports), 0),
    )


def kept_ports(view: GangView, name: str) -> tuple[int, ...]:
    """Return the ports that a task has again because they are reserved for it, all or none."""
    reservation, record = view.service.reservation_of(name), view.tasks.get(name)
    if reservation is None or record is None or view.spec.has_own_addresses():
        return ()
    if _is_called_by_another_port(view, record) or name in found_taken(view):
        return ()
    held = offered(view.service.desk.offers.values(), reservation)
    ports = sum((each.ports for each in held), PortRanges())
    return record.ports if all(port in ports for port in record.ports) else ()


def found_taken(view: GangView) -> Collection[str]:
    """Return the tasks whose ports turned out to be taken by another program."""
    return {i.task for i in view.job.incidents if i.kind == PORT_TAKEN}


def _is_called_by_another_port(view: GangView, record: TaskRecord) -> bool:
    """Say whether peers name a port that the task did not have: with DNS, the configured one."""
    spec = options_of(view, record.name)
    role = spec.role(record.role)
    by_name = spec.addressing is Addressing.DNS and record.role.is_in_gang
    return by_name and role is not None and record.ports[0] != role.port


def placeable(spec: ServiceSpec, offers: Mapping[str, Offer]) -> Mapping[str, Offer]:
    """Return the offers without what cannot be reserved, where tasks are to have volumes."""
    if not any(role.volume is not None for role in spec.roles):
        return offers
    return {
        offer_id: replace(o, resources=o.resources - o.fixed, ports=o.ports.without(o.fixed_ports))
        if o.fixed != Resources() or o.fixed_ports.ranges
        else o
        for offer_id, o in offers.items()
    }


def _beyond(wanted: Resources, held: Iterable[OfferedReservation]) -> Resources:
    have = sum((each.resources for each in held), Resources())
    return Resources(
        round(max(wanted.cpus - have.cpus, 0.0), 3),
        round(max(wanted.mem - have.mem, 0.0), 3),
        round(max(wanted.disk - have.disk, 0.0), 3),
        max(wanted.gpus - have.gpus, 0),
    )
