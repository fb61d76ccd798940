"""How the agents of an embedded cluster are described.

Written by the command line, read by ``cluster`` and ``daemon``. It imports nothing of the cluster:
whoever describes one need not be able to run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from dcos_tensorflow.records import dataclass

#: The role that everything of the agent for apps is reserved for: as on DC/OS' public agents.
APPS_ROLE = "slave_public"


@dataclass(frozen=True)
class AgentConfig:
    """One agent. ``mem`` and ``disk`` are megabytes, ``ports`` first and last, inclusive.

    ``mounts`` are whole disks: their sizes (MB) by the directories where they are mounted.
    """

    address: str = "127.0.0.1"
    hostname: str = ""
    cpus: float = 2
    mem: float = 4096
    disk: float = 10000
    gpus: int = 0
    ports: tuple[int, int] = (31000, 32000)
    attributes: Mapping[str, str | float] = field(default_factory=dict)
    zone: str | None = None
    region: str | None = None
    mounts: Mapping[str, float] = field(default_factory=dict)
