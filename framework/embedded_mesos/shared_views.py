"""Views that master and agents share: pieces of JSON, version, capabilities. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from embedded_mesos.resources import Resources

Json = dict[str, Any]

#: The version that the recordings behind the conformance tests come from.
MESOS_VERSION = "1.12.0"

AGENT_CAPABILITIES = [
    "MULTI_ROLE",
    "HIERARCHICAL_ROLE",
    "RESERVATION_REFINEMENT",
    "RESOURCE_PROVIDER",
    "RESIZE_VOLUME",
    "AGENT_OPERATION_FEEDBACK",
    "AGENT_DRAINING",
    "TASK_RESOURCE_LIMITS",
]


def version() -> Json:
    """Return the body of ``/version``. The dates are the recorded build's: there is no build."""
    return {
        "build_date": "2026-11-21 03:49:14 UTC",
        "build_time": 1795232954.0,
        "git_sha": "embedded",
        "version": MESOS_VERSION,
    }


def scalars(resources: Resources) -> Json:
    """Return resources as ``/state`` shows them: a number each, ports as text."""
    found: Json = {name: resources.scalar(name) for name in ("disk", "mem", "gpus", "cpus")}
    ranges = resources.ports().pairs
    if ranges:
        found["ports"] = "[" + ", ".join(f"{a}-{b}" for a, b in ranges) + "]"
    return found


def reserved(resources: Resources) -> Json:
    """Return what is reserved, by role."""
    roles = {kind.reservation_role for kind, _ in resources} - {"*"}
    return {
        role: scalars(Resources({k: v for k, v in resources if k.reservation_role == role}))
        for role in sorted(roles)
    }


def attributes(given: Iterable[Mapping[str, Any]]) -> Json:
    """Return Attribute JSON as ``/state`` shows it."""
    return {one["name"]: one[one["type"].lower()]["value"] for one in given}


def status_summary(status: Mapping[str, Any]) -> Json:
    """Return a status as ``/state`` shows it."""
    found: Json = {"state": status["state"], "timestamp": status["timestamp"]}
    if "container_status" in status:
        found["container_status"] = {
            k: v for k, v in status["container_status"].items() if k != "executor_pid"
        }
    if "healthy" in status:
        found["healthy"] = status["healthy"]
    return found
