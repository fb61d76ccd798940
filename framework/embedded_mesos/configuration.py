"""What an embedded cluster is made of: its agents, and a page for a browser.

Read by ``cluster`` and ``daemon``. A program that describes a cluster imports this alone: it need
not be able to run one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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


@dataclass(frozen=True)
class Page:
    """A page that the master shows to browsers at ``/``, beside Mesos' own endpoints.

    ``index`` is a file of the ``folder``; all files of the folder lie below its name, as
    ``/dashboard/index.js``. The page asks ``/state``, and ``/overview/`` (``wire.overview``).
    """

    folder: Path
    index: str


@dataclass(frozen=True)
class Credential:
    """A principal and its secret (Mesos: ``Credential``), for HTTP basic authentication.

    Without a principal nothing is sent, to a cluster that asks for nothing.
    """

    principal: str = ""
    secret: str = field(default="", repr=False)

    def header(self) -> dict[str, str]:
        """Return the Authorization header (RFC 7617, UTF-8); empty without a principal."""
        if not self.principal:
            return {}
        known = base64.b64encode(f"{self.principal}:{self.secret}".encode()).decode("ascii")
        return {"Authorization": f"Basic {known}"}
