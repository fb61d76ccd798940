"""The master's clock and its ear for agents: the parts that are called when time passes.

``cluster`` has one. It hands it the agents' messages and the time, hands ``desk`` to
``scheduler_calls`` and ``operator_calls`` with requests over HTTP, and collects
``desk.take_effects`` after each. The parts (``membership``, ``offers``, ``maintenance``, ...) are
functions over the desk and know nothing of this module.
"""

from __future__ import annotations

from embedded_mesos import messages
from embedded_mesos.master import draining, frameworks, membership, offers, updates
from embedded_mesos.master.desk import Desk


class Master:
    """See the module. ``now`` is unix seconds everywhere."""

    def __init__(self, desk: Desk) -> None:
        """Lead with what is on the desk."""
        self.desk = desk
        self.state = desk.state
        self._next_allocation = desk.started_at + desk.timing.allocation

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
        desk, timing = self.desk, self.desk.timing
        for framework in list(self.state.frameworks.values()):
            if framework.connected and now >= framework.next_heartbeat:
                framework.next_heartbeat = now + timing.heartbeat
                desk.send_event(framework, {"type": "HEARTBEAT"})
            if framework.failover_deadline is not None and now >= framework.failover_deadline:
                frameworks.remove(desk, framework, now)
        for agent in list(self.state.agents.values()):
            if now >= agent.next_ping:
                membership.ping(desk, agent, now)
            draining.check_drained(desk, agent, now)
        self.state.give_up_on_agents(now)
        if now >= self._next_allocation:
            self._next_allocation = now + timing.allocation
            offers.allocate(desk, now)
            self.state.cycles += 1

    def stream_closed(self, stream_id: str, now: float) -> None:
        """Note that a scheduler's connection has ended."""
        frameworks.stream_closed(self.desk, stream_id, now)

    def agent_message(self, link: int, message: object, now: float) -> None:
        """Take a message of the agent at ``link``."""
        desk = self.desk
        if isinstance(message, messages.RegisterAgent):
            registered = membership.register(desk, link, message, now)
            if registered is not None:
                draining.tell(desk, registered)
                offers.allocate(desk, now)
            return
        agent = self.state.agent_at(link)
        if agent is None:
            # An agent that the master has lost: it hears so at its next attempt to register.
            return
        agent.unanswered_pings = 0
        if isinstance(message, messages.StatusUpdate):
            updates.status_update(desk, message)
        elif isinstance(message, messages.OperationUpdate):
            updates.operation_update(desk, message)
        elif isinstance(message, messages.ExecutorExited):
            updates.executor_exited(desk, agent, message)
        elif isinstance(message, messages.UnregisterAgent):
            loss = membership.removed(agent, "the agent unregistered")
            membership.remove(desk, agent, loss, now)
