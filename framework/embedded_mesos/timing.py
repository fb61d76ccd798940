"""Every interval of the embedded cluster, in seconds.

Given to ``cluster.EmbeddedCluster``; tests shorten what they wait for. Defaults are those of
Mesos 1.12, but for the ones that a person at a laptop would only wait for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Intervals and limits, named after the Mesos flag or constant that they stand for."""

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
