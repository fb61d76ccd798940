"""The configurations and the properties: ``/v1/configurations...`` and ``/v1/state...``.

The target runs, or is on its way to. Those before it are kept, to go back to.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.api.errors import BadRequest, ElementNotFound
from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.options.differences import differing

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas


def configuration_ids(state: ServiceState, stored: Mapping[str, ServiceSpec]) -> list[str]:
    """Return the ids of all configurations, the target's first."""
    known = configuration_id(state.spec)
    return [known, *(identifier for identifier in stored if identifier != known)]


def target_id(state: ServiceState) -> list[str]:
    """Return the target's id, in a list as the SDK does."""
    return [configuration_id(state.spec)]


def target(
    state: ServiceState, options: Mapping[str, Any], refused: Mapping[str, Any]
) -> schemas.Configuration:
    """Return the target configuration: the SDK's outline, our whole spec, the user's options.

    Where newer ones were ``refused`` it says why, and in which options they differ.
    """
    found: schemas.Configuration = {**_outline(state.spec), "options": codec.to_plain(options)}
    why = state.told.refused_configuration
    if why:
        found["refused"] = {"why": why, "in_force": differing(options, refused)}
    return found


def _outline(spec: ServiceSpec) -> schemas.Configuration:
    pods: list[schemas.PodSpec] = [
        {"type": str(role.role), "count": role.count, "user": spec.user}
        for role in spec.roles_in_start_order
    ]
    return {
        "name": spec.name,
        "role": spec.mesos_role,
        "principal": spec.principal,
        "user": spec.user,
        "pod-specs": pods,
        "spec": codec.to_plain(spec),
    }


def configuration(
    state: ServiceState,
    options: Mapping[str, Any],
    refused: Mapping[str, Any],
    stored: Mapping[str, ServiceSpec],
    wanted: str,
) -> schemas.Configuration:
    """Return the configuration with the id ``wanted``; the options of the target only are known.

    Raises BadRequest when that is no UUID, ElementNotFound when there is none.
    """
    try:
        identifier = str(uuid.UUID(wanted))
    except ValueError:
        raise BadRequest(f"{wanted!r} is not the id of a configuration: not a UUID") from None
    if identifier == configuration_id(state.spec):
        return target(state, options, refused)
    if identifier not in stored:
        raise ElementNotFound(wanted)
    return _outline(stored[identifier])


def framework_id(state: ServiceState) -> list[str]:
    """Return the framework id in a list, as the SDK does. Raises ElementNotFound before it is."""
    if not state.framework_id:
        raise ElementNotFound("framework id")
    return [state.framework_id]


def properties(state: ServiceState) -> dict[str, Any]:
    """Return the service's properties by name; every value is JSON."""
    return {
        "suppressed": state.desk.suppressed,
        "deployment-completed": state.job.deployed,
        "instance": state.instance,
        "job": _job(state),
    }


def _job(state: ServiceState) -> dict[str, Any]:
    """Return the job as one flat record, as it has been shown since the first release."""
    plain: dict[str, Any] = codec.to_plain(state.job)
    restart, membership, update = (plain.pop(key) for key in ("restart", "membership", "update"))
    for incident in plain["incidents"]:
        evidence = incident.pop("evidence")
        incident["summary"] += f": {evidence}" if evidence else ""
    return {
        **plain,
        **membership,
        **update,
        "why": state.only_gang.why,
        "attempt": state.attempt,
        "restarts": restart["count"],
        "restart_at": restart["due_at"],
        "restarting": restart["members"],
        "planned": restart["planned"],
        "replacing": restart["replacing"],
        "restore_step": restart["restore_step"],
        "agent_failures": codec.to_plain(state.agent_failures),
        "leaving": codec.to_plain(state.maintenance.starts),
        "leaving_told": codec.to_plain(state.maintenance.told_at),
        "uninstalling": state.uninstall.asked,
        "given_up": list(state.uninstall.given_up),
    }


def property_value(state: ServiceState, name: str) -> Any:
    """Return one property. Raises ElementNotFound."""
    known = properties(state)
    if name not in known:
        raise ElementNotFound(name)
    return known[name]
