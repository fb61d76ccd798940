"""How a task is reached, in Mesos' JSON: its container's network, its ports, its virtual address.

Called by ``convert``. Pure; the shapes are those of mesos/v1/mesos.proto (NetworkInfo,
DiscoveryInfo). A container's own address is nothing that can be asked for: Mesos tells it in the
first status update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.model.actions import LaunchTask, Vip


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
