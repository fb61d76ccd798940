"""RESERVE, UNRESERVE, CREATE and DESTROY: which resources become which. Pure.

Called by ``accept`` while an ACCEPT is played. Facts: ``src/common/resources_utils.cpp``
(getResourceConversions) and ``src/master/validation.cpp``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from embedded_mesos.resources import InvalidResource, Kind, Resources, canonical

Json = dict[str, Any]

#: The operations that ``convert`` knows.
CONVERSIONS = frozenset({"RESERVE", "UNRESERVE", "CREATE", "DESTROY"})


class InvalidOperation(ValueError):
    """An operation that Mesos would refuse. The text is the reason."""


@dataclass(frozen=True)
class Conversion:
    """``consumed`` becomes ``produced``; the volumes in ``destroyed`` lose their content."""

    consumed: Resources
    produced: Resources
    destroyed: tuple[Json, ...] = ()


def convert(
    operation: Mapping[str, Any], role: str, principal: str | None, available: Resources
) -> Conversion:
    """Return what ``operation`` does to the resources of an offer for ``role``.

    Raises InvalidOperation when it cannot be done with ``available``.
    """
    kind = operation["type"]
    field = "resources" if kind in ("RESERVE", "UNRESERVE") else "volumes"
    given = operation.get(kind.lower(), {}).get(field, [])
    if not given:
        raise InvalidOperation(f"Invalid {kind} operation: no {field}")
    with_role = with_allocation(given, role)
    try:
        wanted = Resources.parse(with_role)
    except InvalidResource as error:
        raise InvalidOperation(f"Invalid {kind} operation: {error}") from error
    if kind in ("RESERVE", "UNRESERVE"):
        _check_reservations(kind, with_role, role, principal)
        other = _without_last_reservation(wanted)
    else:
        _check_volumes(kind, with_role)
        other = _without_volume(wanted)
    making = kind in ("RESERVE", "CREATE")
    consumed, produced = (other, wanted) if making else (wanted, other)
    missing = available.missing(consumed)
    if missing is not None:
        raise InvalidOperation(f"{available} does not contain {missing}")
    destroyed = tuple(with_role) if kind == "DESTROY" else ()
    return Conversion(consumed, produced, destroyed)


def with_allocation(resources: list[Json], role: str) -> list[Json]:
    """Return ``resources`` with the offer's allocation where they name none."""
    return [
        one if "allocation_info" in one else {**one, "allocation_info": {"role": role}}
        for one in resources
    ]


def _check_reservations(kind: str, resources: list[Json], role: str, principal: str | None) -> None:
    for resource in resources:
        stack = resource.get("reservations", [])
        if not stack or stack[-1].get("type") != "DYNAMIC":
            raise InvalidOperation(
                f"Invalid {kind} operation: Resource '{resource['name']}' is not dynamically"
                " reserved"
            )
        last = stack[-1]
        if kind == "RESERVE" and last["role"] != role:
            raise InvalidOperation(
                f"Invalid RESERVE operation: The reserved resource's role '{last['role']}' does"
                f" not match the resource's allocation role '{role}'"
            )
        if kind == "RESERVE" and last.get("principal") != principal:
            raise InvalidOperation(
                "Invalid RESERVE operation: The reservation's principal is not the framework's"
            )
        if "persistence" in resource.get("disk", {}):
            raise InvalidOperation(f"Invalid {kind} operation: A persistent volume is in the way")


def _check_volumes(kind: str, volumes: list[Json]) -> None:
    for volume in volumes:
        disk = volume.get("disk", {})
        if volume["name"] != "disk" or "persistence" not in disk or "volume" not in disk:
            raise InvalidOperation(f"Invalid {kind} operation: Not a persistent volume")
        if not volume.get("reservations"):
            raise InvalidOperation(
                f"Invalid {kind} operation: A persistent volume needs reserved disk"
            )
        path = disk["volume"]["container_path"]
        if path.startswith("/") or ".." in path.split("/"):
            raise InvalidOperation(
                f"Invalid {kind} operation: 'container_path' must be below the sandbox: '{path}'"
            )
        if "/" in disk["persistence"]["id"] or disk["persistence"]["id"] in ("", ".", ".."):
            raise InvalidOperation(f"Invalid {kind} operation: Persistence ID is not valid")


def _without_last_reservation(resources: Resources) -> Resources:
    def without(kind: Kind) -> Kind:
        stack = json.loads(kind.reservations)[:-1]
        return replace(kind, reservations=canonical(stack) if stack else "")

    return resources.as_kinds(without)


def _without_volume(resources: Resources) -> Resources:
    def without(kind: Kind) -> Kind:
        disk = json.loads(kind.disk)
        kept = {k: v for k, v in disk.items() if k not in ("persistence", "volume")}
        return replace(kind, disk=canonical(kept) if kept else "")

    return resources.as_kinds(without)
