"""What offers hold, in the wire format, and cutting a task's share out of it.

Used by :mod:`~dcos_tensorflow.mesos.convert`. A task's resources have to be named exactly as they
were offered (reservations, allocation role), or the master rejects the launch. Resources reserved
to our role are used up first: what is left unreserved is of use to others too.

Not counted and never used: revocable and shared resources, persistent volumes, disks with a
source of their own, and what is reserved to a role that is not ours or an ancestor of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dcos_tensorflow.core.resources import EPSILON, PortRanges, Resources

Json = Mapping[str, Any]

_SCALARS = ("cpus", "mem", "disk", "gpus")


class ConversionError(ValueError):
    """Something that cannot be put into, or read from, the wire format; the message says what."""


@dataclass(frozen=True)
class OfferedResources:
    """The usable resources of one or more offers of one agent and role, reserved ones first."""

    entries: tuple[Json, ...]

    @staticmethod
    def of(offers: Iterable[Json]) -> OfferedResources:
        """Collect the usable resources of raw offers."""
        usable = []
        for offer in offers:
            role = allocation_role(offer)
            for resource in offer.get("resources", ()):
                if _usable(resource, role):
                    usable.append({**resource, "allocation_info": {"role": role}})
        return OfferedResources(tuple(sorted(usable, key=lambda r: reservation_role(r) is None)))

    def total(self) -> Resources:
        """Return the sum of the scalars."""
        sums = {name: round(sum(self._amounts(name)), 3) for name in _SCALARS}
        # A fraction of a GPU cannot be asked for, so it is not there.
        return Resources(sums["cpus"], sums["mem"], sums["disk"], int(sums["gpus"] + EPSILON))

    def ports(self) -> PortRanges:
        """Return all ports."""
        return PortRanges.of(
            pair for entry in self.entries if _is_ports(entry) for pair in _pairs(entry)
        )

    def take(
        self, wanted: Resources, ports: Sequence[int]
    ) -> tuple[list[dict[str, Any]], OfferedResources]:
        """Cut ``wanted`` and ``ports`` out; return them in the wire format, and what is left.

        Raises ConversionError when there is not as much.
        """
        left = self
        taken: list[dict[str, Any]] = []
        for name in _SCALARS:
            cut, left = left._take_scalar(name, float(getattr(wanted, name)))
            taken += cut
        cut, left = left._take_ports(ports)
        return taken + cut, left

    def _take_scalar(
        self, name: str, wanted: float
    ) -> tuple[list[dict[str, Any]], OfferedResources]:
        missing = round(wanted, 3)
        taken: list[dict[str, Any]] = []
        kept: list[Json] = []
        for entry in self.entries:
            available = _scalar(entry) if entry.get("name") == name else 0.0
            share = round(min(available, missing), 3)
            if share <= 0:
                kept.append(entry)
                continue
            missing = round(missing - share, 3)
            taken.append({**entry, "scalar": {"value": share}})
            rest = round(available - share, 3)
            if rest > 0:
                kept.append({**entry, "scalar": {"value": rest}})
        if missing > 0:
            have = round(sum(self._amounts(name)), 3)
            raise ConversionError(f"needs {wanted:g} {name}, the offers have {have:g} left")
        return taken, OfferedResources(tuple(kept))

    def _take_ports(self, ports: Sequence[int]) -> tuple[list[dict[str, Any]], OfferedResources]:
        missing = set(ports)
        if len(missing) != len(ports):
            raise ConversionError(f"the same port is wanted twice: {sorted(ports)}")
        taken: list[dict[str, Any]] = []
        kept: list[Json] = []
        for entry in self.entries:
            offered = PortRanges.of(_pairs(entry)) if _is_ports(entry) else PortRanges()
            share = sorted(port for port in missing if port in offered)
            if not share:
                kept.append(entry)
                continue
            missing.difference_update(share)
            taken.append({**entry, "ranges": _ranges(PortRanges.of((p, p) for p in share))})
            rest = offered.without(share)
            if rest.ranges:
                kept.append({**entry, "ranges": _ranges(rest)})
        if missing:
            raise ConversionError(f"needs ports {sorted(missing)}, which are not in the offers")
        return taken, OfferedResources(tuple(kept))

    def _amounts(self, name: str) -> list[float]:
        return [_scalar(entry) for entry in self.entries if entry.get("name") == name]


def allocation_role(offer: Json) -> str:
    """Return the Mesos role that an offer is made to; ``*`` when it names none."""
    role = (offer.get("allocation_info") or {}).get("role")
    if role:
        return str(role)
    for resource in offer.get("resources", ()):
        role = (resource.get("allocation_info") or {}).get("role")
        if role:
            return str(role)
    return "*"


def reservation_role(resource: Json) -> str | None:
    """Return the role that a resource is reserved to; None when it is not reserved.

    The stack of ``reservations`` (RESERVATION_REFINEMENT format) counts from its end; the older
    ``role`` is understood too.
    """
    reservations = resource.get("reservations") or ()
    if reservations:
        return str(reservations[-1].get("role", ""))
    role = resource.get("role", "*")
    return None if role == "*" else str(role)


def _usable(resource: Json, role: str) -> bool:
    reserved = reservation_role(resource)
    if reserved is not None and reserved != role and not role.startswith(reserved + "/"):
        return False
    if any(name in resource for name in ("revocable", "shared")):
        return False
    disk = resource.get("disk") or {}
    return not ("persistence" in disk or "source" in disk)


def _scalar(resource: Json) -> float:
    return float((resource.get("scalar") or {}).get("value", 0.0))


def _is_ports(resource: Json) -> bool:
    return resource.get("name") == "ports" and "ranges" in resource


def _pairs(resource: Json) -> list[tuple[int, int]]:
    ranges = (resource.get("ranges") or {}).get("range") or ()
    return [(int(each["begin"]), int(each["end"])) for each in ranges]


def _ranges(ports: PortRanges) -> dict[str, Any]:
    return {"range": [{"begin": first, "end": last} for first, last in ports.ranges]}
