"""The configuration of an embedded cluster: its agents, its intervals, a page for a browser.

Read by ``cluster`` and ``background_cluster``. A program that describes a cluster imports this
alone: it need not be able to run one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

#: Agents have the addresses 127.0.0.1 upwards.
MOST_AGENTS = 250
#: The ports of an agent, from the first that no other one has, as far as there are as many.
PORTS_PER_AGENT = 1000
#: Mesos' own first port for tasks.
FIRST_PORT = 31000
LAST_PORT = 65535
#: The role that everything of the agent for apps is reserved for: as on DC/OS' public agents.
APPS_ROLE = "slave_public"


@dataclass(frozen=True)
class AgentConfig:
    """One agent. ``mem`` and ``disk`` are megabytes, ``ports`` first and last, inclusive.

    ``mounts`` are whole disks: their sizes (MB) by the directories where they are mounted.
    ``kept_tasks`` is how many that have ended it remembers, with their sandboxes, as Mesos does.
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
    kept_tasks: int = 150


def alike(like: AgentConfig, count: int, first_port: int = FIRST_PORT) -> tuple[AgentConfig, ...]:
    """Return ``count`` agents like one, each with an address and ports of its own.

    Raises ValueError where there are more of them than addresses.
    """
    if not 1 <= count <= MOST_AGENTS:
        raise ValueError(f"there can be 1 to {MOST_AGENTS} agents, not {count}")
    width = min(PORTS_PER_AGENT, (LAST_PORT - first_port) // count)
    return tuple(
        replace(
            like,
            address=f"127.0.0.{number}",
            ports=(first_port + (number - 1) * width, first_port + number * width - 1),
        )
        for number in range(1, count + 1)
    )


@dataclass(frozen=True)
class Timing:
    """Every interval and limit, in seconds, named after the Mesos flag or constant.

    Tests shorten what they wait for. Defaults are those of Mesos 1.12, but for the ones that a
    person at a laptop would only wait for.
    """

    #: Between HEARTBEAT events (DEFAULT_HEARTBEAT_INTERVAL).
    heartbeat: float = 15.0
    #: Between two allocation cycles (--allocation_interval; Mesos: 1).
    allocation: float = 0.25
    #: First wait before an unacknowledged update is sent again (STATUS_UPDATE_RETRY_INTERVAL_MIN).
    update_retry: float = 10.0
    #: Longest such wait (STATUS_UPDATE_RETRY_INTERVAL_MAX).
    update_retry_max: float = 600.0
    #: Between pings of an agent (--agent_ping_timeout; Mesos: 15).
    agent_ping: float = 3.0
    #: Pings without an answer until an agent is unreachable (--max_agent_ping_timeouts).
    agent_ping_timeouts: int = 5
    #: Between an agent's attempts to register (--registration_backoff_factor).
    agent_registration: float = 0.5
    #: From SIGTERM to SIGKILL where a task names no kill policy (command executor: 3 s).
    kill_grace: float = 3.0
    #: The same when a whole executor is shut down (--executor_shutdown_grace_period).
    executor_shutdown_grace: float = 5.0
    #: Completed frameworks and tasks that the master remembers.
    max_completed_frameworks: int = 50
    max_completed_tasks: int = 1000

    @property
    def agent_timeout(self) -> float:
        """Return how long an agent may be silent."""
        return self.agent_ping * self.agent_ping_timeouts


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
