"""What an operator does to a cluster, as orders for tests. Part of ``Faults``.

Each is the operator's call of Mesos' API with an agent's place filled in: the same can be had with
``POST /api/v1`` on the master.
"""

import json
from collections.abc import Sequence
from typing import Any

from cluster_faults.agents import AgentFaults, FaultError
from embedded_mesos.master.records import nanoseconds

Json = dict[str, Any]


class OperatorOrders(AgentFaults):
    """See the package. Every order raises FaultError with the master's words when it refuses."""

    # -- maintenance ---------------------------------------------------------------------------

    def schedule_maintenance(
        self,
        agents: Sequence[int],
        start_in_seconds: float,
        duration_seconds: float | None = None,
    ) -> None:
        """Add a window to the maintenance schedule; machines leave the windows they were in."""
        unavailability: Json = {"start": nanoseconds(self._cluster.now() + start_in_seconds)}
        if duration_seconds is not None:
            unavailability["duration"] = nanoseconds(duration_seconds)
        machines = [self._machine(agent) for agent in agents]
        window = {"machine_ids": machines, "unavailability": unavailability}
        self._set_schedule([*self._windows_without(machines), window])

    def cancel_maintenance(self, agents: Sequence[int] | None = None) -> None:
        """Take machines, or all, out of the maintenance schedule."""
        machines = [self._machine(one) for one in agents or range(len(self._cluster.agents))]
        self._set_schedule(self._windows_without(machines))

    def start_maintenance(self, agents: Sequence[int]) -> None:
        """Take machines of the schedule down: agents shut down, their tasks are TASK_LOST."""
        self._on_machines("START_MAINTENANCE", agents)

    def stop_maintenance(self, agents: Sequence[int]) -> None:
        """Bring machines up again, and start their agents: new ones, with new ids."""
        self._on_machines("STOP_MAINTENANCE", agents)
        for agent in agents:
            self.restart_agent(agent)

    def _machine(self, agent: int) -> Json:
        identity = self._cluster.agents[agent].identity
        return {"hostname": identity.hostname, "ip": identity.ip}

    def _windows_without(self, machines: list[Json]) -> list[Json]:
        body = self._call("GET_MAINTENANCE_SCHEDULE")["get_maintenance_schedule"]
        kept = []
        for window in body["schedule"]["windows"]:
            left = [one for one in window["machine_ids"] if one not in machines]
            if left:
                kept.append({**window, "machine_ids": left})
        return kept

    def _set_schedule(self, windows: list[Json]) -> None:
        self._call("UPDATE_MAINTENANCE_SCHEDULE", {"schedule": {"windows": windows}})

    def _on_machines(self, kind: str, agents: Sequence[int]) -> None:
        self._call(kind, {"machines": [self._machine(agent) for agent in agents]})

    # -- agents --------------------------------------------------------------------------------

    def drain_agent(
        self, agent: int, *, max_grace_seconds: float | None = None, mark_gone: bool = False
    ) -> None:
        """End an agent's tasks with REASON_AGENT_DRAINING and keep it empty (DRAIN_AGENT)."""
        body: Json = {"mark_gone": mark_gone}
        if max_grace_seconds is not None:
            whole = int(max_grace_seconds)
            nanos = round((max_grace_seconds - whole) * 1e9)
            body["max_grace_period"] = {"seconds": whole, "nanos": nanos}
        self._on_agent("DRAIN_AGENT", agent, body)

    def deactivate_agent(self, agent: int) -> None:
        """Offer nothing of an agent any more; its tasks run on."""
        self._on_agent("DEACTIVATE_AGENT", agent, {})

    def reactivate_agent(self, agent: int) -> None:
        """Offer an agent again that was deactivated or is drained."""
        self._on_agent("REACTIVATE_AGENT", agent, {})

    def mark_agent_gone(self, agent: int) -> None:
        """Take an agent out for ever; ``restart_agent`` brings a new one in its place."""
        self._on_agent("MARK_AGENT_GONE", agent, {})

    def _on_agent(self, kind: str, agent: int, body: Json) -> None:
        self._call(kind, {"agent_id": {"value": self.agent_id(agent)}, **body})

    def _call(self, kind: str, body: Json | None = None) -> Json:
        call: Json = {"type": kind}
        if body is not None:
            call[kind.lower()] = body
        reply = self._cluster.operator_call(json.dumps(call).encode())
        if reply.status != 200:
            raise FaultError(f"{kind}: HTTP {reply.status}: {reply.body}")
        return dict(json.loads(reply.body)) if reply.body else {}
