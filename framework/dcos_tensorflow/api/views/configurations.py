"""The configuration and the properties: ``/v1/configurations...`` and ``/v1/state...``.

There is one configuration, the target: the options that this service was started with.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.api.answers import BadRequest, ElementNotFound
from dcos_tensorflow.core import records
from dcos_tensorflow.core.plan import roles_in_start_order
from dcos_tensorflow.core.service_state import ServiceState, configuration_id


def configuration_ids(state: ServiceState) -> list[str]:
    """Return the ids of all configurations; the target's is the only one."""
    return [configuration_id(state.spec)]


def target(state: ServiceState, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target configuration: the SDK's outline, our whole spec, the user's options."""
    pods = [
        {"type": str(role.role), "count": role.count, "user": state.spec.user}
        for role in roles_in_start_order(state.spec)
    ]
    return {
        "name": state.spec.name,
        "role": state.spec.mesos_role,
        "principal": state.spec.principal,
        "user": state.spec.user,
        "pod-specs": pods,
        "options": records.to_plain(options),
        "spec": records.to_plain(state.spec),
    }


def configuration(state: ServiceState, options: Mapping[str, Any], wanted: str) -> dict[str, Any]:
    """Return the configuration with the id ``wanted``.

    Raises BadRequest when that is no UUID, ElementNotFound when it is not the target's.
    """
    try:
        identifier = str(uuid.UUID(wanted))
    except ValueError:
        raise BadRequest(f"{wanted!r} is not the id of a configuration: not a UUID") from None
    if identifier != configuration_id(state.spec):
        raise ElementNotFound(wanted)
    return target(state, options)


def framework_id(state: ServiceState) -> list[str]:
    """Return the framework id in a list, as the SDK does. Raises ElementNotFound before it is."""
    if not state.framework_id:
        raise ElementNotFound("framework id")
    return [state.framework_id]


def properties(state: ServiceState) -> dict[str, Any]:
    """Return the service's properties by name; every value is JSON."""
    return {
        "suppressed": state.suppressed,
        "deployment-completed": state.job.deployed,
        "instance": state.instance,
        "job": records.to_plain(state.job),
    }


def property_value(state: ServiceState, name: str) -> Any:
    """Return one property. Raises ElementNotFound."""
    known = properties(state)
    if name not in known:
        raise ElementNotFound(name)
    return known[name]
