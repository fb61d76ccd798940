"""The resources of offers, in the wire format, and cutting a task's share out of them.

Used by :mod:`~dcos_tensorflow.mesos.wire.convert`. A task's resources have to be named exactly as
they were offered (reservations, allocation role), or the master rejects the launch. Resources
reserved to our role are used up first: the unreserved rest is of use to others, too.

Not counted and never used: revocable and shared resources, persistent volumes, disks with a source
of their own, resources reserved to a role that is not ours or an ancestor of it, and resources with
the labels of a service, be it ours (:mod:`~dcos_tensorflow.mesos.wire.reservation_calls`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.spec.resources import EPSILON, PortRanges, Resources
from dcos_tensorflow.records import dataclass

Json = Mapping[str, Any]

SCALARS = ("cpus", "mem", "disk", "gpus")


#: What a resource has that is more than an amount for all.
_SAID_MORE = frozenset({"disk", "reservations", "revocable", "role", "shared"})
#: The largest amount of a resource (MB of an exabyte); sums of some are exact to a thousandth.
MOST_AMOUNT = 1e12


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
            allocated = {"role": role}
            for resource in offer.get("resources", ()):
                if _usable(resource, role):
                    told = resource.get("allocation_info") == allocated
                    usable.append(resource if told else {**resource, "allocation_info": allocated})
        return OfferedResources(tuple(sorted(usable, key=is_unreserved)))

    def fixed(self) -> OfferedResources:
        """Return what is reserved to the very role it is offered to: it cannot be reserved more."""
        return OfferedResources(tuple(e for e in self.entries if _is_fixed(e)))

    def without_fixed(self) -> OfferedResources:
        """Return what can be reserved."""
        return OfferedResources(tuple(e for e in self.entries if not _is_fixed(e)))

    def total(self) -> Resources:
        """Return the sum of the scalars."""
        sums = dict.fromkeys(SCALARS, 0.0)
        for entry in self.entries:
            if (name := entry.get("name")) in sums:
                sums[name] += scalar(entry)
        cpus, mem, disk, gpus = (round(amount, 3) for amount in sums.values())
        # A fraction of a GPU cannot be asked for, so it is not there.
        return Resources(cpus, mem, disk, int(gpus + EPSILON))

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
        for name in SCALARS:
            cut, left = left.take_scalar(name, float(getattr(wanted, name)))
            taken += cut
        cut, left = left.take_ports(ports)
        return taken + cut, left

    def take_scalar(
        self, name: str, wanted: float
    ) -> tuple[list[dict[str, Any]], OfferedResources]:
        """Cut an amount of one scalar out. Raises ConversionError when there is not as much."""
        missing = round(wanted, 3)
        taken: list[dict[str, Any]] = []
        kept: list[Json] = []
        for entry in self.entries:
            available = scalar(entry) if entry.get("name") == name else 0.0
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
            have = round(sum(scalar(e) for e in self.entries if e.get("name") == name), 3)
            raise ConversionError(f"needs {wanted:g} {name}, the offers have {have:g} left")
        return taken, OfferedResources(tuple(kept))

    def take_ports(self, ports: Sequence[int]) -> tuple[list[dict[str, Any]], OfferedResources]:
        """Cut ports out. Raises ConversionError when one is not there."""
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


def is_plain(resource: Json) -> bool:
    """Say whether a resource is an amount for all, and no more: nearly all of thousands are."""
    return _SAID_MORE.isdisjoint(resource)


def is_unreserved(resource: Json) -> bool:
    """Say whether no role has reserved a resource."""
    return is_plain(resource) or reservation_role(resource) is None


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


def owner(resource: Json) -> tuple[str, str] | None:
    """Return framework id and resource id of a labelled reservation; None when there are none."""
    reservations = resource.get("reservations") or ()
    if not reservations:
        return None
    labels = {
        str(label.get("key")): str(label.get("value", ""))
        for label in (reservations[-1].get("labels") or {}).get("labels", ())
    }
    if contract.LABEL_RESOURCE_ID not in labels and contract.LABEL_FRAMEWORK_ID not in labels:
        return None
    return labels.get(contract.LABEL_FRAMEWORK_ID, ""), labels.get(contract.LABEL_RESOURCE_ID, "")


def is_ours_to_use(resource: Json, role: str) -> bool:
    """Say whether a framework of ``role`` may use a resource, as far as reservations tell."""
    reserved = reservation_role(resource)
    if reserved is not None and reserved != role and not role.startswith(reserved + "/"):
        return False
    return "revocable" not in resource and "shared" not in resource


def _usable(resource: Json, role: str) -> bool:
    if is_plain(resource):
        return True
    disk = resource.get("disk") or {}
    if "persistence" in disk or "source" in disk or owner(resource) is not None:
        return False
    return is_ours_to_use(resource, role)


def _is_fixed(resource: Json) -> bool:
    reserved = None if is_plain(resource) else reservation_role(resource)
    return bool(reserved == resource["allocation_info"]["role"])


def scalar(resource: Json) -> float:
    """Return the amount of a scalar resource, 0 for another kind.

    Raises ConversionError for one that cannot be counted with: no machine has so much.
    """
    amount = float((resource.get("scalar") or {}).get("value", 0.0))
    if not 0.0 <= amount <= MOST_AMOUNT:
        raise ConversionError(f"a resource cannot have the amount {amount}")
    return amount


def _is_ports(resource: Json) -> bool:
    return resource.get("name") == "ports" and "ranges" in resource


def _pairs(resource: Json) -> list[tuple[int, int]]:
    ranges = (resource.get("ranges") or {}).get("range") or ()
    return [(int(each["begin"]), int(each["end"])) for each in ranges]


def _ranges(ports: PortRanges) -> dict[str, Any]:
    return {"range": [{"begin": first, "end": last} for first, last in ports.ranges]}
