"""The facts of an embedded agent that follow from its configuration.

Asked by ``cluster``; pure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embedded_mesos.agent.containers import AgentIdentity
from embedded_mesos.configuration import AgentConfig

Json = dict[str, Any]

#: How many ended tasks of apps stay: the sandbox of a package's scheduler has 222 MB.
_KEPT_APPS = 5
#: The attribute by which agents for apps are known.
APPS_ATTRIBUTE = "public_ip"


def for_apps(first: AgentConfig) -> AgentConfig:
    """Return the agent that the apps of a local DC/OS run on, in the region of the ``first`` one.

    What an app asks for is noted and not enforced, so there is more of everything than apps can
    ask for. Its ports lie below those of the agents for jobs (31000 and above).
    """
    return AgentConfig(
        hostname="localhost",
        attributes={APPS_ATTRIBUTE: "true"},
        cpus=1000,
        mem=1000000,
        disk=10000000,
        ports=(1, 30999),
        zone=first.zone,
        region=first.region,
        kept_tasks=_KEPT_APPS,
    )


def identity(
    link: int, config: AgentConfig, port: int, work_dir: Path, role: str = ""
) -> AgentIdentity:
    """Return the facts of the agent at ``link`` that listens on ``port``.

    With a ``role`` all of it is reserved for that one (Mesos: ``--default_role``), for apps.
    """
    hostname = config.hostname or config.address
    scalars: dict[str, float] = {"cpus": config.cpus, "mem": config.mem, "disk": config.disk}
    if config.gpus:
        scalars["gpus"] = config.gpus
    resources: list[Json] = [
        {"name": name, "type": "SCALAR", "scalar": {"value": float(value)}}
        for name, value in scalars.items()
    ]
    resources += [_mount(root, size) for root, size in config.mounts.items()]
    ranges = {"range": [{"begin": config.ports[0], "end": config.ports[1]}]}
    ports: Json = {"name": "ports", "type": "RANGES", "ranges": ranges}
    if role:
        for resource in (*resources, ports):
            resource["reservations"] = [{"type": "STATIC", "role": role}]
    info: Json = {
        "hostname": hostname,
        "ip": config.address,
        "port": port,
        "resources": [*resources, ports],
        # Offers list the ports first.
        "offered_resources": [ports, *resources],
        "attributes": [_attribute(name, value) for name, value in config.attributes.items()],
        "checkpoint": True,
    }
    if config.region is not None or config.zone is not None:
        info["domain"] = {
            "fault_domain": {
                "region": {"name": config.region or "local"},
                "zone": {"name": config.zone or "local"},
            }
        }
    return AgentIdentity(
        link, config.address, port, hostname, str(work_dir), info, config.kept_tasks
    )


def _mount(root: str, size: float) -> Json:
    disk = {"source": {"type": "MOUNT", "mount": {"root": root}}}
    return {"name": "disk", "type": "SCALAR", "scalar": {"value": float(size)}, "disk": disk}


def _attribute(name: str, value: str | float) -> Json:
    if isinstance(value, str):
        return {"name": name, "type": "TEXT", "text": {"value": value}}
    return {"name": name, "type": "SCALAR", "scalar": {"value": float(value)}}
