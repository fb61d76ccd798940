"""The id of a configuration: the same options always have the same one.

Asked wherever configurations are compared or named; worked out once for each set of options.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.spec.service_spec import (
    JobSpec,
    PlacementConstraint,
    RetrySpec,
    RoleSpec,
    ServiceSpec,
)
from dcos_tensorflow.core.spec.storage_spec import StorageSpec

#: What came later does not count where it has its default: what was stored before keeps its id.
_CAME_LATER: Mapping[type, Collection[str]] = {
    ServiceSpec: (
        *("idle_seconds", "units", "workload", "placement", "capacity"),
        *("leave_on_rebalance", "tracking", "peer_network"),
    ),
    JobSpec: ("arguments", "parameters_as_arguments", "links", "sha256", "under_strategy"),
    RetrySpec: ("same_failure_limit",),
    RoleSpec: ("packages", "data_service"),
    PlacementConstraint: ("of_service",),
    StorageSpec: ("shards_uri",),
}


def configuration_id(spec: ServiceSpec) -> str:
    """Return the id of a configuration, a UUID.

    It is taken from what a reader of the store gets, so that 64 MB and 64.0 MB are the same.
    """
    known = spec.remembered.get("configuration")
    if known is None:
        known = spec.remembered["configuration"] = _worked_out(spec)
    return known


def _worked_out(spec: ServiceSpec) -> str:
    stored = codec.decode(ServiceSpec, codec.encode(spec))
    plain = codec.to_plain(stored)
    parts: list[tuple[Any, dict[str, Any]]] = [(stored, plain)]
    parts += [(getattr(stored, name), plain[name]) for name in ("job", "retry", "storage")]
    for role, told in zip(stored.roles, plain["roles"], strict=True):
        parts += [(role, told), *zip(role.constraints, told["constraints"], strict=True)]
    for part, told in parts:
        later = _CAME_LATER.get(type(part), ())
        for field in fields(part):
            if field.name in later and getattr(part, field.name) == field.default:
                del told[field.name]
    return str(uuid.uuid5(uuid.NAMESPACE_OID, codec.encode(plain).decode()))
