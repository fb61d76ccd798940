"""The container of a launch in Mesos' JSON: secrets, limits, shared memory, addresses.

Called by ``convert``. Pure; the shapes are those of mesos/v1/mesos.proto (Secret, Volume.Source,
RLimitInfo, LinuxInfo, NetworkInfo, DiscoveryInfo). A setting that a kind of container cannot have
is refused by name with ConversionError, never left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.contract import RUNNER_SECRETS_VARIABLE
from dcos_tensorflow.core.model.actions import LaunchTask, Vip
from dcos_tensorflow.core.spec.container_spec import ResourceLimit, TaskSecret
from dcos_tensorflow.core.spec.service_spec import Containerizer
from dcos_tensorflow.mesos.wire.offered_resources import ConversionError

#: LinuxInfo.shm_size only holds for a container with shared memory of its own.
_OWN_SHARED_MEMORY = "PRIVATE"


def secret_variables(launch: LaunchTask) -> list[dict[str, Any]]:
    """Return the variables whose values are secrets, for a CommandInfo's environment.

    The files that the scheduler has read come to the task runner in one of them, which writes them:
    masters show a task's volumes to all who see the task, a secret's value in them included, but
    nothing of its command.
    """
    found = [
        {"name": one.env, "type": "SECRET", "secret": _secret(one, launch.secret_values)}
        for one in launch.secrets
        if one.env
    ]
    values = launch.secret_values
    files = {one.file: _encoded(values[one.source]) for one in _files(launch, in_store=False)}
    if files:
        text = json.dumps(files, sort_keys=True).encode()
        found.append({"name": RUNNER_SECRETS_VARIABLE, "type": "SECRET", "secret": _value(text)})
    return found


def with_wishes(container: Mapping[str, Any] | None, launch: LaunchTask) -> dict[str, Any] | None:
    """Return a ContainerInfo with what the launch asks for; None when neither is there.

    Raises ConversionError for secrets in a container of Docker's engine: Mesos resolves them in its
    own containers alone (Mesos documentation, "Secrets").
    """
    docker = launch.container is not None and (
        launch.container.containerizer is Containerizer.DOCKER
    )
    if docker and launch.secrets:
        raise ConversionError(
            f"task {launch.task_id}: secrets need the Mesos containerizer, not Docker's engine"
        )
    wishes: dict[str, Any] = {}
    files = [_volume(one) for one in _files(launch, in_store=True)]
    if files:
        wishes["volumes"] = [*(container or {}).get("volumes", ()), *files]
    if docker:
        return _for_docker(container, launch)
    if launch.rlimits:
        wishes["rlimit_info"] = {"rlimits": [_limit(one) for one in launch.rlimits]}
    if launch.shm_size:
        wishes["linux_info"] = {
            **(container or {}).get("linux_info", {}),
            "ipc_mode": _OWN_SHARED_MEMORY,
            "shm_size": launch.shm_size,
        }
    if not wishes:
        return None if container is None else dict(container)
    return {"type": "MESOS", **(container or {}), **wishes}


def _files(launch: LaunchTask, *, in_store: bool) -> list[TaskSecret]:
    """Return the secrets that are files: those that Mesos finds, or those that were read here."""
    files = [one for one in launch.secrets if one.file]
    for one in files:
        if one.source not in launch.secret_values and not one.in_store:
            raise ConversionError(f"{one.option}: nothing was read from {one.source}")
    return [one for one in files if (one.source not in launch.secret_values) is in_store]


def _secret(wanted: TaskSecret, values: Mapping[str, bytes]) -> dict[str, Any]:
    if wanted.source in values:
        return _value(values[wanted.source])
    if not wanted.in_store:
        raise ConversionError(f"{wanted.option}: nothing was read from {wanted.source}")
    return _reference(wanted)


def _value(content: bytes) -> dict[str, Any]:
    return {"type": "VALUE", "value": {"data": _encoded(content)}}


def _reference(wanted: TaskSecret) -> dict[str, Any]:
    return {"type": "REFERENCE", "reference": {"name": wanted.source}}


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _volume(wanted: TaskSecret) -> dict[str, Any]:
    return {
        "container_path": wanted.file,
        "mode": "RO",
        "source": {"type": "SECRET", "secret": _reference(wanted)},
    }


def _limit(wanted: ResourceLimit) -> dict[str, Any]:
    limit: dict[str, Any] = {"type": wanted.name.replace("RLIMIT_", "RLMT_")}
    if wanted.soft is not None and wanted.hard is not None:
        limit |= {"soft": wanted.soft, "hard": wanted.hard}
    return limit


def _for_docker(container: Mapping[str, Any] | None, launch: LaunchTask) -> dict[str, Any]:
    """Docker's engine is told by parameters of ``docker run``."""
    parameters = [
        {
            "key": "ulimit",
            "value": f"{one.name.removeprefix('RLIMIT_').lower()}="
            f"{-1 if one.soft is None else one.soft}:{-1 if one.hard is None else one.hard}",
        }
        for one in launch.rlimits
    ]
    if launch.shm_size:
        parameters.append({"key": "shm-size", "value": f"{launch.shm_size}m"})
    found = dict(container or {})
    if parameters:
        found["docker"] = {**found["docker"], "parameters": parameters}
    return found


def joined(container: Mapping[str, Any] | None, launch: LaunchTask) -> dict[str, Any] | None:
    """Return a ContainerInfo in the launch's network; what was given when it joins none.

    Without an image it is one of the Mesos containerizer, on the agent's own file system. Docker's
    engine has a place of its own for port mappings (ContainerInfo.DockerInfo.PortMapping).
    """
    network = launch.network
    if network is None:
        return None if container is None else dict(container)
    info: dict[str, Any] = dict(container or {"type": "MESOS", "mesos": {}})
    member: dict[str, Any] = {"name": network.name}
    if network.labels:
        member["labels"] = _labels(network.labels)
    mappings = [
        {"host_port": port, "container_port": port, "protocol": "tcp"} for port in launch.host_ports
    ]
    if info["type"] == "DOCKER":
        mapped = {"port_mappings": mappings} if mappings else {}
        info["docker"] = {**info["docker"], "network": "USER", **mapped}
    elif mappings:
        member["port_mappings"] = mappings
    return {**info, "network_infos": [member]}


def discovery(launch: LaunchTask) -> dict[str, Any]:
    """Return the DiscoveryInfo: names of the ports, and the labels of a virtual address."""
    found: dict[str, Any] = {"visibility": "CLUSTER", "name": launch.name}
    if launch.ports:
        # The first port is the gRPC server's, the last the task runner's
        # (core.model.task.TaskRecord).
        names = [f"port-{index}" for index in range(len(launch.ports))]
        names[-1] = "runner"
        names[0] = "grpc"
        ports: list[dict[str, Any]] = [
            {"number": number, "name": name, "protocol": "tcp"}
            for number, name in zip(launch.ports, names, strict=True)
        ]
        if launch.vip is not None:
            ports[0] |= {"name": launch.vip.prefix, "labels": _vip_labels(launch, launch.vip)}
        found["ports"] = {"ports": ports}
    return found


def _vip_labels(launch: LaunchTask, vip: Vip) -> dict[str, Any]:
    """Return the labels that DC/OS makes a virtual address of, and whose address it leads to."""
    scope = "host" if launch.host_ports else "container"
    return _labels({"VIP_0": vip.label, "network-scope": scope})


def _labels(labels: Mapping[str, str]) -> dict[str, Any]:
    return {"labels": [{"key": key, "value": value} for key, value in labels.items()]}
