"""Reservations and persistent volumes in the wire format: RESERVE, CREATE, DESTROY, UNRESERVE.

Used by :mod:`~dcos_tensorflow.mesos.wire.convert` and the gateway. The offers
themselves show the missing part of a reservation: a part that is there is not made again. Only
resources with both of our labels are ever taken or given back. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.actions import Release, ReservationOrder
from dcos_tensorflow.core.model.offer import OfferedReservation
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.volume_spec import VolumeType
from dcos_tensorflow.mesos.wire.offered_resources import (
    SCALARS,
    ConversionError,
    OfferedResources,
    allocation_role,
    is_ours_to_use,
    owner,
    reservation_role,
    scalar,
)
from dcos_tensorflow.records import dataclass

Json = Mapping[str, Any]
Resource = dict[str, Any]


@dataclass
class Operations:
    """What comes before the LAUNCH of one ACCEPT."""

    reserve: list[Resource] = field(default_factory=list)
    create: list[Resource] = field(default_factory=list)
    unreserve: list[Resource] = field(default_factory=list)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the operations in the order in which they can be done."""
        return [
            *_operation("RESERVE", "resources", self.reserve),
            *_operation("CREATE", "volumes", self.create),
            *_operation("UNRESERVE", "resources", self.unreserve),
        ]


@dataclass(frozen=True)
class ResourcePool:
    """What one ACCEPT can be made of, and what is left of it: resources for all, free disks."""

    free: OfferedResources
    mounts: tuple[Json, ...]
    raw_offers: tuple[Json, ...]

    @staticmethod
    def of(raw_offers: Sequence[Json]) -> ResourcePool:
        """Collect what raw offers hold."""
        return ResourcePool(
            OfferedResources.of(raw_offers), tuple(_mounts(raw_offers)), tuple(raw_offers)
        )


def offered_reservations(offer: Json) -> tuple[OfferedReservation, ...]:
    """Return what an offer holds of labelled reservations, by any framework."""
    found: dict[tuple[str, str], list[Json]] = {}
    for resource in offer.get("resources", ()):
        key = owner(resource)
        if key is not None:
            found.setdefault(key, []).append(resource)
    return tuple(_summed(*key, resources) for key, resources in found.items())


def mount_sizes(offer: Json) -> tuple[float, ...]:
    """Return the sizes (MB) of the whole disks that can be reserved, smallest first."""
    return tuple(scalar(mount) for mount in _mounts([offer]))


def take_reserved(
    pool: ResourcePool,
    order: ReservationOrder,
    wanted: Resources,
    ports: Sequence[int],
    operations: Operations,
) -> tuple[list[Resource], ResourcePool]:
    """Return the resources of a task on its reservation, and what is left of the pool.

    What is missing of the reservation goes to ``operations``, and what it has too much. Raises
    ConversionError when the offers do not hold what is missing.
    """
    own = [r for r in _resources(pool.raw_offers) if _is_of(r, order)]
    plain = OfferedResources(tuple(r for r in own if not _volume_of(r)))
    volumes = [r for r in own if _volume_of(r) == order.persistence_id]
    free, fixed = pool.free.without_fixed(), pool.free.fixed()
    taken: list[Resource] = []
    for name in SCALARS:
        amount = float(getattr(wanted, name))
        have = min(amount, round(sum(scalar(r) for r in plain.entries if r["name"] == name), 3))
        cut, plain = plain.take_scalar(name, have)
        more, free = free.take_scalar(name, round(amount - have, 3))
        taken += cut + _reserved(more, order, operations)
    there = [port for port in ports if any(port in _ports([r]) for r in plain.entries)]
    cut, plain = plain.take_ports(there)
    more, free = free.take_ports([port for port in ports if port not in there])
    taken += cut + _reserved(more, order, operations)
    mounts = pool.mounts
    if volumes:
        taken += [dict(volume) for volume in volumes]
    else:
        disk, plain, free, mounts = _disk_for(order, plain, free, mounts, operations)
        volume = _with_volume(disk, order)
        operations.create.append(volume)
        taken.append(volume)
    operations.unreserve += [dict(entry) for entry in plain.entries]
    left = OfferedResources((*fixed.entries, *free.entries))
    return taken, ResourcePool(left, mounts, pool.raw_offers)


def release_operations(action: Release, raw_offers: Sequence[Json]) -> list[dict[str, Any]]:
    """Return the operations that give reservations back, of what the offers hold of them."""
    destroy: list[Resource] = []
    unreserve: list[Resource] = []
    for resource in _resources(raw_offers):
        key = owner(resource)
        if key is None or not all(key):
            continue
        if key in action.everything:
            if _volume_of(resource):
                destroy.append(dict(resource))
            unreserve.append(_without_volume(resource))
        elif key in action.but_volumes and not _volume_of(resource):
            unreserve.append(dict(resource))
    return [
        *_operation("DESTROY", "volumes", destroy),
        *_operation("UNRESERVE", "resources", unreserve),
    ]


def _operation(kind: str, name: str, resources: list[Resource]) -> list[dict[str, Any]]:
    return [{"type": kind, kind.lower(): {name: resources}}] if resources else []


def _resources(raw_offers: Iterable[Json]) -> list[Resource]:
    return [
        {**resource, "allocation_info": {"role": allocation_role(offer)}}
        for offer in raw_offers
        for resource in offer.get("resources", ())
    ]


def _mounts(raw_offers: Sequence[Json]) -> list[Resource]:
    return sorted(filter(_is_free_mount, _resources(raw_offers)), key=scalar)


def _is_free_mount(resource: Json) -> bool:
    disk = resource.get("disk") or {}
    role = resource["allocation_info"]["role"]
    return (
        (disk.get("source") or {}).get("type") == "MOUNT"
        and "persistence" not in disk
        and owner(resource) is None
        and is_ours_to_use(resource, role)
        and reservation_role(resource) != role
    )


def _is_of(resource: Json, order: ReservationOrder) -> bool:
    return owner(resource) == (order.framework_id, order.resource_id)


def _volume_of(resource: Json) -> str:
    persistence = (resource.get("disk") or {}).get("persistence") or {}
    return str(persistence.get("id", ""))


def _reserved(
    pieces: Iterable[Resource], order: ReservationOrder, operations: Operations
) -> list[Resource]:
    """Return unreserved pieces as reserved ones, and note that they are to be."""
    made = [_with_reservation(piece, order) for piece in pieces]
    operations.reserve += made
    return made


def _with_reservation(piece: Json, order: ReservationOrder) -> Resource:
    labels = {
        contract.LABEL_RESOURCE_ID: order.resource_id,
        contract.LABEL_FRAMEWORK_ID: order.framework_id,
    }
    reservation: dict[str, Any] = {
        "type": "DYNAMIC",
        "role": order.mesos_role,
        "labels": {"labels": [{"key": key, "value": value} for key, value in labels.items()]},
    }
    if order.principal:
        reservation["principal"] = order.principal
    # With a stack of reservations there is no ``role`` (RESERVATION_REFINEMENT).
    stack = [*(piece.get("reservations") or ()), reservation]
    return {**{k: v for k, v in piece.items() if k != "role"}, "reservations": stack}


def _disk_for(
    order: ReservationOrder,
    plain: OfferedResources,
    free: OfferedResources,
    mounts: tuple[Json, ...],
    operations: Operations,
) -> tuple[Resource, OfferedResources, OfferedResources, tuple[Json, ...]]:
    """Return the reserved disk that the volume is made on, and what is left of everything."""
    wanted = order.volume
    if wanted.kind is VolumeType.MOUNT:
        disk, left = _whole(plain.entries, lambda r: _fits_mount(r, wanted.size))
        if disk is not None:
            return disk, OfferedResources(left), free, mounts
        disk, left = _whole(mounts, lambda r: _fits_mount(r, wanted.size))
        if disk is None:
            raise ConversionError(f"needs a MOUNT disk of {wanted.size:g} MB, no offer has one")
        return _reserved([disk], order, operations)[0], plain, free, left
    for entry in plain.entries:
        if entry["name"] == "disk" and "disk" not in entry and scalar(entry) >= wanted.size:
            cut, rest = OfferedResources((entry,)).take_scalar("disk", wanted.size)
            others = tuple(e for e in plain.entries if e is not entry)
            return cut[0], OfferedResources((*others, *rest.entries)), free, mounts
    for entry in free.entries:
        if entry["name"] == "disk" and scalar(entry) >= wanted.size:
            cut, rest = OfferedResources((entry,)).take_scalar("disk", wanted.size)
            others = tuple(e for e in free.entries if e is not entry)
            made = _reserved(cut, order, operations)[0]
            return made, plain, OfferedResources((*others, *rest.entries)), mounts
    raise ConversionError(f"needs {wanted.size:g} MB of disk in one piece for its volume")


def _whole(
    entries: tuple[Json, ...], fits: Callable[[Json], bool]
) -> tuple[Resource | None, tuple[Json, ...]]:
    """Return the smallest entry that fits, and the others."""
    fitting = sorted((e for e in entries if fits(e)), key=scalar)
    if not fitting:
        return None, entries
    return dict(fitting[0]), tuple(e for e in entries if e is not fitting[0])


def _fits_mount(resource: Json, size: float) -> bool:
    source = (resource.get("disk") or {}).get("source") or {}
    return source.get("type") == "MOUNT" and scalar(resource) >= size


def _with_volume(disk: Resource, order: ReservationOrder) -> Resource:
    persistence = {"id": order.persistence_id}
    if order.principal:
        persistence["principal"] = order.principal
    volume = {"container_path": order.volume.path, "mode": "RW"}
    info = {**(disk.get("disk") or {}), "persistence": persistence, "volume": volume}
    return {**disk, "disk": info}


def _without_volume(resource: Json) -> Resource:
    plain = {key: value for key, value in resource.items() if key != "disk"}
    disk = resource.get("disk") or {}
    kept = {key: value for key, value in disk.items() if key not in ("persistence", "volume")}
    return {**plain, "disk": kept} if kept else plain


def _summed(framework_id: str, resource_id: str, resources: Sequence[Json]) -> OfferedReservation:
    plain = [r for r in resources if not _volume_of(r)]
    sums = {n: round(sum(scalar(r) for r in plain if r["name"] == n), 3) for n in SCALARS}
    return OfferedReservation(
        framework_id,
        resource_id,
        Resources(sums["cpus"], sums["mem"], sums["disk"], int(sums["gpus"])),
        _ports(plain),
        frozenset(volume for r in resources if (volume := _volume_of(r))),
    )


def _ports(resources: Iterable[Json]) -> PortRanges:
    return OfferedResources(tuple(resources)).ports()
