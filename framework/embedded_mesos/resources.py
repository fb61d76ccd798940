"""Mesos resources with arithmetic: ``Resource`` JSON in and out, add, subtract, contain.

Used by the master's core. Scalars are counted in thousandths, as Mesos does
(``src/common/values.cpp``), ports as disjoint ranges. Two amounts can be added when they agree in
name, reservations, disk and allocation; that agreement is the ``Kind``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Ranges:
    """A set of whole numbers: disjoint ``(first, last)`` pairs, inclusive, in ascending order."""

    pairs: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(pairs: Iterable[tuple[int, int]]) -> Ranges:
        """Build from pairs in any order; those that overlap or touch become one."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(pairs):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return Ranges(tuple(merged))

    def __iter__(self) -> Iterator[int]:
        """Yield each number, the lowest first."""
        for first, last in self.pairs:
            yield from range(first, last + 1)

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.pairs)

    def __add__(self, other: Ranges) -> Ranges:
        return Ranges.of(self.pairs + other.pairs)

    def __sub__(self, other: Ranges) -> Ranges:
        left = list(self.pairs)
        for first, last in other.pairs:
            left = [
                piece
                for a, b in left
                for piece in ((a, min(b, first - 1)), (max(a, last + 1), b))
                if piece[0] <= piece[1]
            ]
        return Ranges.of(left)

    def within(self, other: Ranges) -> bool:
        """Say whether ``other`` has each of these numbers."""
        return all(
            any(first <= a and b <= last for first, last in other.pairs) for a, b in self.pairs
        )


#: Thousandths for a scalar, ranges for ports.
Amount = int | Ranges


class InvalidResource(ValueError):
    """A ``Resource`` that Mesos would refuse. The text is the reason."""


@dataclass(frozen=True)
class Kind:
    """What amounts have to agree in before they can be added.

    ``reservations`` and ``disk`` are canonical JSON, empty for none; ``allocated`` is the Mesos
    role that the resource is allocated to.
    """

    name: str
    reservations: str = ""
    disk: str = ""
    allocated: str | None = None

    @property
    def reservation_role(self) -> str:
        """Return the role that this is reserved for, ``*`` for none."""
        return str(json.loads(self.reservations)[-1]["role"]) if self.reservations else "*"

    def allows(self, part: Amount, whole: Amount) -> bool:
        """Say whether ``part`` can be taken of ``whole``: a MOUNT disk is used whole or not."""
        if '"MOUNT"' in self.disk and part != whole:
            return False
        return _within(part, whole)


def canonical(value: object) -> str:
    """Return JSON that is the same text for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def number(thousandths: int) -> str:
    """Render a scalar as Mesos' messages do: ``4``, ``0.1``."""
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")


def _amount(resource: Mapping[str, Any]) -> Amount:
    name = resource["name"]
    if resource["type"] == "SCALAR":
        if "scalar" not in resource:
            raise InvalidResource(f"Invalid scalar resource '{name}': no value")
        value = float(resource["scalar"]["value"])
        if value < 0:
            raise InvalidResource(f"Invalid scalar resource '{name}': value < 0")
        if name == "gpus" and value != int(value):
            raise InvalidResource(
                "Invalid 'gpus' resource: The 'gpus' resource must be an unsigned integer"
            )
        return round(value * 1000)
    if resource["type"] == "RANGES":
        ranges = resource.get("ranges", {}).get("range", [])
        pairs = [(int(one["begin"]), int(one["end"])) for one in ranges]
        if any(first > last for first, last in pairs):
            raise InvalidResource(f"Invalid ranges resource '{name}': begin > end")
        return Ranges.of(pairs)
    raise InvalidResource(f"Resource '{name}' of type {resource['type']} is not supported")


def _reservations(resource: Mapping[str, Any]) -> str:
    if resource.get("reservations"):
        return canonical(resource["reservations"])
    role = resource.get("role", "*")
    if role == "*":
        return ""
    # The format before reservation refinement: a role, and `reservation` when it is dynamic.
    old = resource.get("reservation")
    kind = "STATIC" if old is None else "DYNAMIC"
    return canonical([{"type": kind, "role": role, **(old or {})}])


def kind_of(resource: Mapping[str, Any]) -> Kind:
    """Return what ``resource`` has to agree in."""
    return Kind(
        name=resource["name"],
        reservations=_reservations(resource),
        disk=canonical(resource["disk"]) if "disk" in resource else "",
        allocated=resource.get("allocation_info", {}).get("role"),
    )


def _plus(one: Amount, other: Amount) -> Amount:
    if isinstance(one, Ranges):
        return one + other if isinstance(other, Ranges) else one
    return one + other if isinstance(other, int) else one


def _minus(one: Amount, other: Amount) -> Amount:
    if isinstance(one, Ranges):
        return one - other if isinstance(other, Ranges) else one
    return one - other if isinstance(other, int) else one


def _within(one: Amount, other: Amount) -> bool:
    if isinstance(one, Ranges):
        return one.within(other if isinstance(other, Ranges) else Ranges())
    return isinstance(other, int) and one <= other


def _empty(amount: Amount) -> bool:
    return not amount.pairs if isinstance(amount, Ranges) else amount <= 0


class Resources:
    """An immutable bag of amounts. Order is kept: it is the order of the JSON."""

    def __init__(self, amounts: Mapping[Kind, Amount] | None = None) -> None:
        self._amounts = {k: v for k, v in (amounts or {}).items() if not _empty(v)}

    @staticmethod
    def parse(resources: Iterable[Mapping[str, Any]]) -> Resources:
        """Build from ``Resource`` JSON. Raises InvalidResource."""
        parts = (Resources({kind_of(one): _amount(one)}) for one in resources)
        return sum(parts, Resources())

    def __iter__(self) -> Iterator[tuple[Kind, Amount]]:
        return iter(self._amounts.items())

    def __bool__(self) -> bool:
        return bool(self._amounts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resources) and self._amounts == other._amounts

    def __hash__(self) -> int:
        return hash(frozenset(self._amounts.items()))

    def __add__(self, other: Resources) -> Resources:
        amounts = dict(self._amounts)
        for kind, amount in other:
            amounts[kind] = _plus(amounts[kind], amount) if kind in amounts else amount
        return Resources(amounts)

    def __sub__(self, other: Resources) -> Resources:
        amounts = dict(self._amounts)
        for kind, amount in other:
            if kind in amounts:
                amounts[kind] = _minus(amounts[kind], amount)
        return Resources(amounts)

    def contains(self, other: Resources) -> bool:
        """Say whether ``other`` can be taken out of this."""
        return self.missing(other) is None

    def missing(self, other: Resources) -> Resources | None:
        """Return the first part of ``other`` that is not in here, None when all is."""
        for kind, amount in other:
            if kind not in self._amounts or not kind.allows(amount, self._amounts[kind]):
                return Resources({kind: amount})
        return None

    def allocated_to(self, role: str | None) -> Resources:
        """Return the same amounts allocated to ``role`` (None: to no role)."""
        return self.as_kinds(lambda kind: replace(kind, allocated=role))

    def as_kinds(self, change: Callable[[Kind], Kind]) -> Resources:
        """Return the same amounts with their kinds changed."""
        return sum((Resources({change(kind): amount}) for kind, amount in self), Resources())

    def filter(self, roles: Iterable[str]) -> Resources:
        """Return what is unreserved or reserved for one of ``roles``."""
        allowed = {"*", *roles}
        return Resources({k: v for k, v in self if k.reservation_role in allowed})

    def thousandths(self, name: str) -> int:
        """Return the sum of the scalar ``name``, whatever its kind."""
        return sum(v for k, v in self if k.name == name and isinstance(v, int))

    def scalar(self, name: str) -> float:
        """Return the sum of the scalar ``name`` in its unit."""
        return self.thousandths(name) / 1000

    def ports(self) -> Ranges:
        """Return all ports, whatever their kind."""
        found = (amount for kind, amount in self if kind.name == "ports")
        return sum((one for one in found if isinstance(one, Ranges)), Ranges())

    def roles(self) -> set[str | None]:
        """Return the roles that parts of this are allocated to."""
        return {kind.allocated for kind in self._amounts}

    def to_json(self, *, refined: bool = True) -> list[Json]:
        """Return ``Resource`` JSON.

        ``refined`` is the format of frameworks with RESERVATION_REFINEMENT; without it every
        resource carries ``role``.
        """
        return [_resource_json(kind, amount, refined) for kind, amount in self]

    def __str__(self) -> str:
        return "; ".join(_text(kind, amount) for kind, amount in self)

    __repr__ = __str__


def _resource_json(kind: Kind, amount: Amount, refined: bool) -> Json:
    found: Json = {"name": kind.name}
    if isinstance(amount, Ranges):
        found["type"] = "RANGES"
        found["ranges"] = {"range": [{"begin": a, "end": b} for a, b in amount.pairs]}
    else:
        found["type"] = "SCALAR"
        found["scalar"] = {"value": amount / 1000}
    if kind.reservations:
        stack = json.loads(kind.reservations)
        if refined:
            found["reservations"] = stack
        else:
            found["role"] = stack[-1]["role"]
            if stack[-1]["type"] == "DYNAMIC":
                found["reservation"] = {
                    k: v for k, v in stack[-1].items() if k not in ("type", "role")
                }
    elif not refined:
        found["role"] = "*"
    if kind.allocated is not None:
        found["allocation_info"] = {"role": kind.allocated}
    if kind.disk:
        found["disk"] = json.loads(kind.disk)
    return found


def _text(kind: Kind, amount: Amount) -> str:
    text = kind.name
    if kind.allocated is not None:
        text += f"(allocated: {kind.allocated})"
    if kind.reservations:
        text += f"(reservations: [{','.join(map(_reservation, json.loads(kind.reservations)))}])"
    if kind.disk:
        disk = json.loads(kind.disk)
        source = disk.get("source", {})
        parts = [f"{source['type']}:{source.get('mount', {}).get('root', '')}"] if source else []
        if "persistence" in disk:
            path = disk.get("volume", {}).get("container_path", "")
            parts.append(f"{disk['persistence']['id']}:{path}")
        text += f"[{','.join(parts)}]"
    if isinstance(amount, Ranges):
        return f"{text}:[{', '.join(f'{a}-{b}' for a, b in amount.pairs)}]"
    return f"{text}:{number(amount)}"


def _reservation(reservation: Mapping[str, Any]) -> str:
    parts = [reservation["type"], reservation["role"]]
    if "principal" in reservation:
        parts.append(reservation["principal"])
    labels = reservation.get("labels", {}).get("labels", [])
    if labels:
        pairs = ", ".join(f"{label['key']}: {label.get('value', '')}" for label in labels)
        parts.append("{" + pairs + "}")
    return f"({','.join(parts)})"
