"""The desk that the master's parts share: records, effects, address, intervals, counters.

Every part of this room is functions over a ``Desk``; none holds anything of its own, and none knows
``master``, which has the desk and calls the parts. Pure: ``cluster`` carries out the effects.
"""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from embedded_mesos import messages
from embedded_mesos.configuration import Timing
from embedded_mesos.master.records import ClusterState, Framework, RegisteredAgent, Task
from embedded_mesos.shared_views import MESOS_VERSION

Json = dict[str, Any]


@dataclass(frozen=True)
class MasterAddress:
    """Where the master listens."""

    ip: str
    port: int
    hostname: str

    @property
    def pid(self) -> str:
        """Return the libprocess id that Mesos shows."""
        return f"master@{self.ip}:{self.port}"


class Desk:
    """See the module. ``now`` is unix seconds everywhere."""

    def __init__(
        self,
        address: MasterAddress,
        timing: Timing,
        now: float,
        *,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        """Start empty."""
        self.address = address
        self.timing = timing
        self.started_at = now
        self.new_id = new_id
        self.state = ClusterState(master_id=new_id())
        self.counters: dict[str, int] = {}
        self._effects: list[object] = []

    def take_effects(self) -> list[object]:
        """Return what is to be done since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def count(self, counter: str) -> None:
        """Add one to a counter of ``/metrics/snapshot``."""
        self.counters[counter] = self.counters.get(counter, 0) + 1

    # -- what goes out -------------------------------------------------------------------------

    def send_to_agent(self, agent: RegisteredAgent, message: object) -> None:
        """Order ``message`` to be carried to ``agent``."""
        self.send_to_link(agent.link, message)

    def send_to_link(self, link: int, message: object) -> None:
        """Order ``message`` to be carried to an agent that is not (any more) known."""
        self._effects.append(messages.ToAgent(link, message))

    def send_event(self, framework: Framework, event: Json) -> None:
        """Order ``event`` to be written; to a disconnected framework it is lost, as in Mesos."""
        if framework.stream_id is not None:
            self.send_to_stream(framework.stream_id, event)

    def send_to_stream(self, stream_id: str, event: Json) -> None:
        """Order ``event`` to be written to a stream."""
        self._effects.append(messages.SendEvent(stream_id, event))

    def close_stream(self, stream_id: str) -> None:
        """Order a stream to be ended."""
        self._effects.append(messages.CloseStream(stream_id))

    def update_from_master(
        self,
        framework: Framework,
        task_id: str,
        state: str,
        *,
        agent_id: str | None,
        reason: str,
        message: str,
        now: float,
        more: Json | None = None,
    ) -> None:
        """Send a status that the master itself decides. It has no uuid: it is not acknowledged."""
        status: Json = {
            "task_id": {"value": task_id},
            "state": state,
            "message": message,
            "source": "SOURCE_MASTER",
            "reason": reason,
            "timestamp": now,
            **(more or {}),
        }
        if agent_id is not None:
            status["agent_id"] = {"value": agent_id}
        self.send_event(framework, {"type": "UPDATE", "update": {"status": status}})

    # -- what several parts note ---------------------------------------------------------------

    def complete_task(self, framework: Framework, task: Task) -> None:
        """Move a task to the completed ones."""
        framework.tasks.pop(task.task_id, None)
        framework.unreachable_tasks.pop(task.task_id, None)
        framework.completed_tasks.append(task)
        del framework.completed_tasks[: -self.timing.max_completed_tasks]

    def master_info(self) -> Json:
        """Return the MasterInfo of SUBSCRIBED."""
        address = self.address
        # Mesos writes the address as a little-endian number: 127.0.0.1 is 16777343.
        number = int.from_bytes(ipaddress.IPv4Address(address.ip).packed, "little")
        return {
            "id": self.state.master_id,
            "ip": number,
            "port": address.port,
            "pid": address.pid,
            "hostname": address.hostname,
            "version": MESOS_VERSION,
            "address": {"hostname": address.hostname, "ip": address.ip, "port": address.port},
            "capabilities": [
                {"type": "AGENT_UPDATE"},
                {"type": "AGENT_DRAINING"},
                {"type": "QUOTA_V2"},
            ],
        }
