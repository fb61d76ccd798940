"""The Mesos master: state and messages in, effects out. Pure: no I/O, no threads, no clock.

``cluster`` feeds it scheduler calls (through ``scheduler_calls``), operator calls (through
``operator_calls``), agents' messages and ``tick``; it collects ``take_effects`` after each. ``now``
is unix seconds everywhere. This module holds frameworks and time; agents are in ``membership``,
offers in ``offers``, their use in ``accept``, updates in ``updates``, RECONCILE in
``reconciliation``.
"""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dcos_tensorflow.local import messages
from dcos_tensorflow.local.master import draining, maintenance, membership, offers, updates
from dcos_tensorflow.local.master.records import Agent, ClusterState, Framework, Task
from dcos_tensorflow.local.timing import Timing

Json = dict[str, Any]

#: The version that the recordings behind the conformance tests come from.
MESOS_VERSION = "1.12.0"


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


class Master:
    """See the module."""

    def __init__(
        self,
        address: MasterAddress,
        timing: Timing,
        now: float,
        *,
        registry: ClusterState | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        """Start empty but for what Mesos keeps in its registry (``registry/registry.proto``).

        ``registry`` is the lost master's state. Taken over are agent ids, what operators said of
        agents and machines, and quotas; frameworks and tasks are not.
        """
        self.address = address
        self.timing = timing
        self.started_at = now
        self.new_id = new_id
        self.state = ClusterState(master_id=new_id())
        self._effects: list[object] = []
        self._next_allocation = now + timing.allocation
        self._recovering: set[str] = set()
        if registry is not None:
            self._recovering = set(registry.agents)
            self.state.unreachable_agents = dict(registry.unreachable_agents)
            self.state.gone_agents = dict(registry.gone_agents)
            self.state.restrictions = dict(registry.restrictions)
            self.state.maintenance = list(registry.maintenance)
            self.state.down_machines = set(registry.down_machines)
            self.state.quotas = dict(registry.quotas)
        self._recovering_until = now + timing.agent_reregister_timeout
        self.counters: dict[str, int] = {}

    # -- effects and time ----------------------------------------------------------------------

    def take_effects(self) -> list[object]:
        """Return what is to be done since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def send_to_agent(self, agent: Agent, message: object) -> None:
        """Order ``message`` to be carried to ``agent``."""
        self._effects.append(messages.ToAgent(agent.link, message))

    def send_to_link(self, link: int, message: object) -> None:
        """Order ``message`` to be carried to an agent that is not (any more) known."""
        self._effects.append(messages.ToAgent(link, message))

    def send_event(self, framework: Framework, event: Json) -> None:
        """Order ``event`` to be written; to a disconnected framework it is lost, as in Mesos."""
        if framework.stream_id is not None:
            self._effects.append(messages.SendEvent(framework.stream_id, event))

    def count(self, counter: str) -> None:
        """Add one to a counter of ``/metrics/snapshot``."""
        self.counters[counter] = self.counters.get(counter, 0) + 1

    def deadline(self) -> float:
        """Return when ``tick`` has something to do next."""
        deadlines = [self._next_allocation]
        for framework in self.state.frameworks.values():
            if framework.connected:
                deadlines.append(framework.next_heartbeat)
            if framework.failover_deadline is not None:
                deadlines.append(framework.failover_deadline)
        deadlines += [agent.next_ping for agent in self.state.agents.values()]
        return min(deadlines)

    def tick(self, now: float) -> None:
        """Do what time brings: heartbeats, pings, timeouts, an allocation cycle."""
        for framework in list(self.state.frameworks.values()):
            if framework.connected and now >= framework.next_heartbeat:
                framework.next_heartbeat = now + self.timing.heartbeat
                self.send_event(framework, {"type": "HEARTBEAT"})
            if framework.failover_deadline is not None and now >= framework.failover_deadline:
                self.remove_framework(framework, now)
        for agent in list(self.state.agents.values()):
            if now >= agent.next_ping:
                membership.ping(self, agent, now)
            draining.check_drained(self, agent, now)
        if self._recovering and now >= self._recovering_until:
            # Mesos: agents that did not come back in time are unreachable.
            self.state.unreachable_agents.update(dict.fromkeys(self._recovering, now))
            self._recovering.clear()
        if self.timing.offer_timeout is not None:
            for offer in list(self.state.offers.values()):
                if now >= offer.made_at + self.timing.offer_timeout:
                    offers.rescind(self, offer)
        if now >= self._next_allocation:
            self._next_allocation = now + self.timing.allocation
            self.allocate(now)
            self.state.cycles += 1

    def allocate(self, now: float) -> None:
        """Run one allocation cycle: offers, and inverse offers where machines will be away."""
        offers.make_offers(self, now)
        maintenance.send_inverse_offers(self, now)

    def knows_agent(self, agent_id: str) -> bool:
        """Say whether an agent is registered, unreachable, or to come back to a new master."""
        state = self.state
        return (
            agent_id in state.agents
            or agent_id in state.unreachable_agents
            or agent_id in self._recovering
        )

    def recovering(self, agent_id: str | None, now: float) -> bool:
        """Say whether an agent of a lost master (None: any) may still come back."""
        if now >= self._recovering_until:
            return False
        return bool(self._recovering) if agent_id is None else agent_id in self._recovering

    def agent_recovered(self, agent_id: str) -> None:
        """Note that an agent of the lost master is back."""
        self._recovering.discard(agent_id)

    # -- frameworks ----------------------------------------------------------------------------

    def new_framework_id(self) -> str:
        """Return the next framework id."""
        number = self.state.next_framework
        self.state.next_framework += 1
        return f"{self.state.master_id}-{number:04}"

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

    def connect(self, framework: Framework, stream_id: str, now: float) -> None:
        """Attach a stream: SUBSCRIBED, a heartbeat, offers."""
        if framework.stream_id is not None:
            error = {"type": "ERROR", "error": {"message": "Framework failed over"}}
            self.send_event(framework, error)
            self._effects.append(messages.CloseStream(framework.stream_id))
        self._drop_claims(framework)
        framework.stream_id = stream_id
        framework.failover_deadline = None
        framework.recovered = False
        framework.reregistered_at = now
        framework.next_heartbeat = now + self.timing.heartbeat
        subscribed = {
            "framework_id": {"value": framework.framework_id},
            "heartbeat_interval_seconds": float(self.timing.heartbeat),
            "master_info": self.master_info(),
        }
        self.send_event(framework, {"type": "SUBSCRIBED", "subscribed": subscribed})
        self.send_event(framework, {"type": "HEARTBEAT"})
        self.allocate(now)

    def _drop_claims(self, framework: Framework) -> None:
        # Offers of an old connection die without a RESCIND (Mesos: failoverFramework).
        offers.drop_offers_of(self, framework)
        maintenance.drop_inverse_offers(self, framework_id=framework.framework_id, tell=False)
        framework.filters.clear()
        framework.inverse_filters.clear()

    def refuse_stream(self, stream_id: str, problem: str) -> None:
        """Send ERROR on a stream that belongs to no framework, and end it."""
        event = {"type": "ERROR", "error": {"message": problem}}
        self._effects.append(messages.SendEvent(stream_id, event))
        self._effects.append(messages.CloseStream(stream_id))

    def stream_closed(self, stream_id: str, now: float) -> None:
        """Note that a scheduler's connection has ended: the failover timeout begins."""
        for framework in list(self.state.frameworks.values()):
            if framework.stream_id == stream_id:
                framework.stream_id = None
                self._drop_claims(framework)
                framework.failover_deadline = now + framework.failover_timeout
                if framework.failover_timeout <= 0:
                    self.remove_framework(framework, now)

    def remove_framework(self, framework: Framework, now: float) -> None:
        """End a framework: its tasks are killed without updates, its id is refused from now on."""
        state = self.state
        agents = {task.agent_id for task in framework.tasks.values()}
        for agent in state.agents.values():
            held = [key for key in agent.executors if key[0] == framework.framework_id]
            for key in held:
                del agent.executors[key]
            if held or agent.agent_id in agents:
                self.send_to_agent(agent, messages.ShutdownFramework(framework.framework_id))
        for task in [*framework.tasks.values(), *framework.unreachable_tasks.values()]:
            if not task.terminal:
                task.state = "TASK_KILLED"
            self.complete_task(framework, task)
        framework.tasks.clear()
        framework.unreachable_tasks.clear()
        self._drop_claims(framework)
        if framework.stream_id is not None:
            self._effects.append(messages.CloseStream(framework.stream_id))
        framework.stream_id = None
        framework.failover_deadline = None
        framework.unregistered_at = now
        del state.frameworks[framework.framework_id]
        state.completed_frameworks[framework.framework_id] = framework
        while len(state.completed_frameworks) > self.timing.max_completed_frameworks:
            del state.completed_frameworks[next(iter(state.completed_frameworks))]

    # -- tasks ---------------------------------------------------------------------------------

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
        """Send a status that the master itself decides. It has no uuid: nobody acknowledges it."""
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

    def complete_task(self, framework: Framework, task: Task) -> None:
        """Move a task to the completed ones."""
        framework.tasks.pop(task.task_id, None)
        framework.unreachable_tasks.pop(task.task_id, None)
        framework.completed_tasks.append(task)
        del framework.completed_tasks[: -self.timing.max_completed_tasks]

    def kill_task(
        self, framework: Framework, task: Task, grace_seconds: float | None = None
    ) -> None:
        """Pass a KILL on to the task's agent."""
        agent = self.state.agents.get(task.agent_id)
        if agent is not None:
            message = messages.KillTask(framework.framework_id, task.task_id, grace_seconds)
            self.send_to_agent(agent, message)

    # -- messages of agents --------------------------------------------------------------------

    def agent_message(self, link: int, message: object, now: float) -> None:
        """Take a message of the agent at ``link``."""
        if isinstance(message, messages.RegisterAgent):
            membership.register(self, link, message, now)
            return
        agent = self.agent_at(link)
        if agent is None:
            # An agent that the master has lost: it hears so at its next attempt to register.
            return
        agent.unanswered_pings = 0
        if isinstance(message, messages.StatusUpdate):
            updates.status_update(self, agent, message)
        elif isinstance(message, messages.OperationUpdate):
            updates.operation_update(self, message)
        elif isinstance(message, messages.ExecutorExited):
            updates.executor_exited(self, agent, message)
        elif isinstance(message, messages.ExecutorMessage):
            updates.executor_message(self, agent, message)
        elif isinstance(message, messages.UnregisterAgent):
            loss = membership.removed(agent, "the agent unregistered")
            membership.remove(self, agent, loss, now)

    def agent_at(self, link: int) -> Agent | None:
        """Return the agent at a place in the cluster, if it is known."""
        return next((a for a in self.state.agents.values() if a.link == link), None)
