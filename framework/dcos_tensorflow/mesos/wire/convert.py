"""Mesos' v1 JSON <-> the core's types.

Used by the gateway. Pure functions; they refuse unknown values by name with
ConversionError. The shapes are those of mesos/v1/mesos.proto and scheduler.proto.
"""

from __future__ import annotations

import base64
import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dcos_tensorflow.core.model.actions import LaunchTask
from dcos_tensorflow.core.model.events import InverseOffer, TaskUpdate
from dcos_tensorflow.core.model.offer import AttributeValue, Offer
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import Container, Containerizer, ServiceSpec, Uri
from dcos_tensorflow.mesos.wire.container_info import (
    discovery,
    joined,
    secret_variables,
    with_wishes,
)
from dcos_tensorflow.mesos.wire.offered_resources import (
    ConversionError,
    OfferedResources,
    allocation_role,
    is_plain,
)
from dcos_tensorflow.mesos.wire.reservation_calls import (
    Operations,
    ResourcePool,
    mount_sizes,
    offered_reservations,
    take_reserved,
)

__all__ = [
    "ConversionError",
    "framework_info",
    "inverse_offer_from_json",
    "launch_operations",
    "offer_from_json",
    "region_of",
    "update_from_json",
]

Json = Mapping[str, Any]

#: mesos.proto, TaskState. KILLING still runs: only the executor's word ends it.
_TASK_STATES = {
    "TASK_STAGING": TaskState.STAGING,
    "TASK_STARTING": TaskState.STARTING,
    "TASK_RUNNING": TaskState.RUNNING,
    "TASK_KILLING": TaskState.RUNNING,
    "TASK_FINISHED": TaskState.FINISHED,
    "TASK_FAILED": TaskState.FAILED,
    "TASK_KILLED": TaskState.KILLED,
    "TASK_UNREACHABLE": TaskState.UNREACHABLE,
    "TASK_ERROR": TaskState.LOST,
    "TASK_LOST": TaskState.LOST,
    "TASK_DROPPED": TaskState.LOST,
    "TASK_GONE": TaskState.LOST,
    "TASK_GONE_BY_OPERATOR": TaskState.LOST,
    "TASK_UNKNOWN": TaskState.LOST,
}
_NANOSECONDS = 1e9
_NOTHING, _NO_PORTS = Resources(), PortRanges()


def offer_from_json(offer: Json, received_at: float) -> Offer:
    """Return an offer for the core: unreserved resources and those reserved to our role.

    ``received_at`` is unix seconds. Raises ConversionError.
    """
    try:
        usable = OfferedResources.of([offer])
        # Of nearly all of thousands no more is to be looked for.
        plain = all(map(is_plain, offer.get("resources", ())))
        fixed = OfferedResources(()) if plain else usable.fixed()
        location = (offer.get("domain") or {}).get("fault_domain") or {}
        start = (offer.get("unavailability") or {}).get("start")
        hostname = str(offer["hostname"])
        url = (offer.get("url") or {}).get("address") or {}
        return Offer(
            offer_id=_value(offer["id"]),
            agent_id=_value(offer["agent_id"]),
            hostname=hostname,
            address=str(url.get("ip") or url.get("hostname") or hostname),
            mesos_role=allocation_role(offer),
            resources=usable.total(),
            ports=usable.ports(),
            attributes={str(a["name"]): _attribute(a) for a in offer.get("attributes", ())},
            zone=(location.get("zone") or {}).get("name"),
            region=(location.get("region") or {}).get("name"),
            unavailable_from=int(start["nanoseconds"]) / _NANOSECONDS if start else None,
            received_at=received_at,
            fixed=fixed.total() if fixed.entries else _NOTHING,
            fixed_ports=fixed.ports() if fixed.entries else _NO_PORTS,
            reserved=() if plain else offered_reservations(offer),
            mounts=() if plain else mount_sizes(offer),
        )
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ConversionError(f"offer cannot be read: {error!r}") from error


def region_of(master: Json) -> str:
    """Return a master's own region, as its MasterInfo tells; empty where it has none."""
    domain = (master.get("domain") or {}).get("fault_domain") or {}
    return str((domain.get("region") or {}).get("name") or "")


def inverse_offer_from_json(offer: Json) -> InverseOffer:
    """Return an inverse offer for the core. Raises ConversionError."""
    try:
        unavailability = offer["unavailability"]
        length = unavailability.get("duration")
        return InverseOffer(
            inverse_offer_id=_value(offer["id"]),
            agent_id=_value(offer.get("agent_id") or {"value": ""}),
            start=int(unavailability["start"]["nanoseconds"]) / _NANOSECONDS,
            duration=int(length["nanoseconds"]) / _NANOSECONDS if length else None,
        )
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ConversionError(f"inverse offer cannot be read: {error!r}") from error


def update_from_json(status: Json) -> TaskUpdate:
    """Return a status update for the core. Raises ConversionError for a state Mesos has not."""
    try:
        state = str(status["state"])
        if state not in _TASK_STATES:
            raise ConversionError(f"unknown task state {state!r}")
        return TaskUpdate(
            task_id=_value(status["task_id"]),
            state=_TASK_STATES[state],
            agent_id=_value(status.get("agent_id") or {"value": ""}),
            mesos_state=state,
            source=str(status.get("source") or ""),
            reason=str(status.get("reason") or ""),
            message=str(status.get("message") or ""),
            uuid=str(status.get("uuid") or ""),
            container_address=_container_address(status.get("container_status") or {}),
        )
    except (LookupError, TypeError, AttributeError) as error:
        raise ConversionError(f"status update cannot be read: {error!r}") from error


def _own_user() -> str:
    """Return the name of this process's user, or its number where the machine knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def framework_info(
    spec: ServiceSpec,
    framework_id: str | None,
    hostname: str,
    webui_url: str,
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the FrameworkInfo of a service, the same text each time but for the id.

    An empty ``spec.user`` is the user of this process, as Mesos' own driver library has it: the
    master itself would take an empty name for a name.
    """
    capabilities = ["MULTI_ROLE", "PARTITION_AWARE", "TASK_KILLING_STATE", "RESERVATION_REFINEMENT"]
    # Without this capability the master offers agents of its own region only, which is what the
    # published package promises when no region is named (option service.region).
    if spec.region or any(role.names_region() for role in spec.roles):
        capabilities.append("REGION_AWARE")
    if spec.wants_gpus():
        capabilities.append("GPU_RESOURCES")
    info: dict[str, Any] = {
        "user": spec.user or _own_user(),
        "name": spec.name,
        "roles": [spec.mesos_role],
        "capabilities": [{"type": capability} for capability in capabilities],
        "checkpoint": True,
        "failover_timeout": spec.failover_timeout_seconds,
        "hostname": hostname,
    }
    if labels:
        info["labels"] = {"labels": [{"key": k, "value": v} for k, v in labels.items()]}
    if webui_url:
        info["webui_url"] = webui_url
    if spec.principal:
        info["principal"] = spec.principal
    if framework_id:
        info["id"] = {"value": framework_id}
    return info


def launch_operations(
    launches: Sequence[LaunchTask], raw_offers: Sequence[Json]
) -> list[dict[str, Any]]:
    """Return the operations of one ACCEPT: what is to be reserved and created, then the LAUNCH.

    Raises ConversionError when the offers do not hold what the tasks need together.
    """
    pool, before = ResourcePool.of(raw_offers), Operations()
    infos = []
    for launch in launches:
        try:
            resources, pool = _taken(pool, launch, before)
        except ConversionError as error:
            raise ConversionError(f"task {launch.task_id}: {error}") from error
        infos.append(_task_info(launch, resources))
    return [*before.to_json(), {"type": "LAUNCH", "launch": {"task_infos": infos}}]


def _taken(
    pool: ResourcePool, launch: LaunchTask, before: Operations
) -> tuple[list[dict[str, Any]], ResourcePool]:
    """Return the resources of one task, and what is left for the others."""
    ports = launch.host_ports
    if launch.reservation is not None:
        return take_reserved(pool, launch.reservation, launch.resources, ports, before)
    resources, free = pool.free.take(launch.resources, ports)
    return resources, replace(pool, free=free)


def _task_info(launch: LaunchTask, resources: list[dict[str, Any]]) -> dict[str, Any]:
    info: dict[str, Any] = {
        "name": launch.name,
        "task_id": {"value": launch.task_id},
        "agent_id": {"value": launch.agent_id},
        "resources": resources,
        "command": _command(launch),
        "kill_policy": {"grace_period": duration(launch.kill_grace_seconds)},
        "discovery": discovery(launch),
    }
    if launch.container is not None:
        info["container"] = _container(launch.container, launch)
    container = with_wishes(joined(info.get("container"), launch), launch)
    if container is not None:
        info["container"] = container
    if launch.labels:
        info["labels"] = {
            "labels": [{"key": key, "value": value} for key, value in launch.labels.items()]
        }
    return info


def duration(seconds: float) -> dict[str, int]:
    """Return a DurationInfo."""
    return {"nanoseconds": round(seconds * _NANOSECONDS)}


def _command(launch: LaunchTask) -> dict[str, Any]:
    variables: list[dict[str, Any]] = [
        {"name": name, "value": value} for name, value in launch.env.items()
    ]
    # Docker's engine is given its environment by the Docker containerizer, which cannot resolve
    # secrets (docs/secrets.md of Mesos: Mesos containerizer only): there they are plain values.
    hidden = launch.container is None or launch.container.containerizer is Containerizer.MESOS
    for name, value in launch.secret_env.items():
        if hidden:
            data = base64.b64encode(value.encode()).decode("ascii")
            secret = {"type": "VALUE", "value": {"data": data}}
            variables.append({"name": name, "type": "SECRET", "secret": secret})
        else:
            variables.append({"name": name, "value": value})
    variables += secret_variables(launch)
    command: dict[str, Any] = {"shell": True, "value": launch.command}
    if variables:
        command["environment"] = {"variables": variables}
    if launch.uris:
        command["uris"] = [_uri(uri) for uri in launch.uris]
    if launch.user:
        command["user"] = launch.user
    return command


def _uri(uri: Uri) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "value": uri.value,
        "extract": uri.extract,
        "executable": uri.executable,
        "cache": uri.cache,
    }
    if uri.output_file:
        fields["output_file"] = uri.output_file
    return fields


def _container(container: Container, launch: LaunchTask) -> dict[str, Any]:
    volumes = [
        {"container_path": path, "host_path": path, "mode": "RW"}
        for path in container.host_directories
    ]
    return {**_image(container, launch), **({"volumes": volumes} if volumes else {})}


def _image(container: Container, launch: LaunchTask) -> dict[str, Any]:
    if container.containerizer is Containerizer.MESOS:
        docker = {"name": container.image}
        image = {"type": "DOCKER", "docker": docker, "cached": not container.force_pull}
        return {"type": "MESOS", "mesos": {"image": image}}
    if launch.resources.gpus:
        raise ConversionError(
            f"task {launch.task_id}: GPUs need the Mesos containerizer, not Docker's engine"
        )
    return {
        "type": "DOCKER",
        "docker": {
            "image": container.image,
            "network": "HOST",
            "force_pull_image": container.force_pull,
        },
    }


def _value(identifier: Json) -> str:
    return str(identifier["value"])


def _attribute(attribute: Json) -> AttributeValue:
    kind = attribute["type"]
    if kind == "TEXT":
        return str(attribute["text"]["value"])
    if kind == "SCALAR":
        return float(attribute["scalar"]["value"])
    if kind == "RANGES":
        ranges = attribute["ranges"].get("range") or ()
        return "[" + ", ".join(f"{each['begin']}-{each['end']}" for each in ranges) + "]"
    if kind == "SET":
        return "{" + ", ".join(str(item) for item in attribute["set"].get("item") or ()) + "}"
    raise ConversionError(f"attribute {attribute.get('name')!r} has unknown type {kind!r}")


def _container_address(status: Json) -> str:
    for network in status.get("network_infos") or ():
        for address in network.get("ip_addresses") or ():
            if address.get("ip_address"):
                return str(address["ip_address"])
    return ""
