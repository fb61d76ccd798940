"""Faults to order, for tests: of updates, agents, the master and its connections.

``Network`` is what the cluster consults when it carries a message; ``Faults`` are the orders. Each
order is deterministic: it says what happens to which messages, never how likely.
"""

from __future__ import annotations

import heapq
import itertools
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dcos_tensorflow.local import membership, messages, offers
from dcos_tensorflow.local.master import Master

if TYPE_CHECKING:
    from dcos_tensorflow.local.cluster import EmbeddedCluster

#: Seconds of delay for each delivery of a message: () is lost, (0,) is as usual.
_Fate = tuple[float, ...]


@dataclass
class _UpdateRule:
    task_id: str | None
    state: str | None
    left: int
    fate: _Fate

    def matches(self, message: messages.StatusUpdate) -> bool:
        status = message.status
        return (
            self.left > 0
            and self.task_id in (None, status["task_id"]["value"])
            and self.state in (None, status["state"])
        )


class Network:
    """What lies between the master and its agents. Used under the cluster's lock."""

    def __init__(self, agents: int) -> None:
        self._cut = [False] * agents
        self._held: list[list[tuple[str, object]] | None] = [None] * agents
        self._rules: list[_UpdateRule] = []
        self._later: list[tuple[float, int, int, object]] = []
        self._order = itertools.count()

    def reaches(self, link: int) -> bool:
        """Say whether messages pass between the master and an agent."""
        return not self._cut[link]

    def frozen(self, link: int) -> bool:
        """Say whether an agent stands still."""
        return self._held[link] is not None

    def hold_for_agent(self, link: int, item: tuple[str, object]) -> bool:
        """Keep what comes for a frozen agent; say whether it was kept."""
        held = self._held[link]
        if held is not None:
            held.append(item)
        return held is not None

    def freeze(self, link: int) -> None:
        """Let an agent stand still."""
        if self._held[link] is None:
            self._held[link] = []

    def thaw(self, link: int) -> list[tuple[str, object]]:
        """Let it go on; return what came meanwhile."""
        held = self._held[link] or []
        self._held[link] = None
        return held

    def cut(self, link: int, cut: bool) -> None:
        """Let nothing pass, or let everything pass again."""
        self._cut[link] = cut

    def add_rule(self, rule: _UpdateRule) -> None:
        """Decide the fate of updates to come."""
        self._rules.append(rule)

    def on_the_way(self, link: int, message: object) -> _Fate:
        """Return the fate of an agent's message."""
        if self._cut[link]:
            return ()
        if isinstance(message, messages.StatusUpdate):
            for rule in self._rules:
                if rule.matches(message):
                    rule.left -= 1
                    return rule.fate
        return (0.0,)

    def later(self, at: float, link: int, message: object) -> None:
        """Deliver a message to the master at ``at``."""
        heapq.heappush(self._later, (at, next(self._order), link, message))

    def due(self, now: float) -> list[tuple[int, object]]:
        """Return the delayed messages whose time has come."""
        found = []
        while self._later and self._later[0][0] <= now:
            _, _, link, message = heapq.heappop(self._later)
            if not self._cut[link]:
                found.append((link, message))
        return found

    def deadline(self) -> float:
        """Return when the next delayed message is due."""
        return self._later[0][0] if self._later else float("inf")


class Faults:
    """Orders. Agents are named by their place in the cluster's configuration."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    # -- updates -------------------------------------------------------------------------------

    def drop_updates(
        self, count: int = 1, *, task_id: str | None = None, state: str | None = None
    ) -> None:
        """Lose the next ``count`` matching updates between agent and master."""
        self._rule(_UpdateRule(task_id, state, count, ()))

    def delay_updates(
        self,
        seconds: float,
        count: int = 1,
        *,
        task_id: str | None = None,
        state: str | None = None,
    ) -> None:
        """Deliver the next ``count`` matching updates ``seconds`` late."""
        self._rule(_UpdateRule(task_id, state, count, (seconds,)))

    def duplicate_updates(
        self, count: int = 1, *, task_id: str | None = None, state: str | None = None
    ) -> None:
        """Deliver the next ``count`` matching updates twice."""
        self._rule(_UpdateRule(task_id, state, count, (0.0, 0.0)))

    def _rule(self, rule: _UpdateRule) -> None:
        with self._cluster.lock:
            self._cluster.network.add_rule(rule)

    # -- agents --------------------------------------------------------------------------------

    def partition_agent(self, agent: int) -> None:
        """Let no message pass between the master and an agent; its tasks run on."""
        with self._cluster.lock:
            self._cluster.network.cut(agent, True)

    def heal_agent(self, agent: int) -> None:
        """End a partition. The agent registers again, as after every broken connection."""
        cluster = self._cluster
        with cluster.lock:
            cluster.network.cut(agent, False)
            if cluster.agents[agent].running:
                cluster.agents[agent].master_changed(cluster.now())
            cluster.tick(cluster.now())

    def freeze_agent(self, agent: int, *, tasks: bool = False) -> None:
        """Stop an agent as SIGSTOP does; with ``tasks`` its tasks, too (a hung machine)."""
        with self._cluster.lock:
            self._cluster.network.freeze(agent)
            if tasks:
                self._signal_tasks(agent, signal.SIGSTOP)

    def thaw_agent(self, agent: int) -> None:
        """Let a frozen agent and its tasks go on (SIGCONT)."""
        cluster = self._cluster
        with cluster.lock:
            self._signal_tasks(agent, signal.SIGCONT)
            held = cluster.network.thaw(agent)
            now = cluster.now()
            core = cluster.agents[agent]
            # An agent that slept through its pings knows so before it reads its mail.
            core.tick(now)
            for source, message in held:
                if source == "executor":
                    core.executor_message(message, now)
                elif core.registered:
                    core.master_message(message, now)
            cluster.settle()

    def _signal_tasks(self, agent: int, number: int) -> None:
        for container_id in self._cluster.agents[agent].containerizer.containers:
            self._cluster.host.signal_task(container_id, number)

    def crash_agent(self, agent: int) -> None:
        """Kill the agent's process (SIGKILL). Tasks of checkpointing frameworks run on."""
        cluster = self._cluster
        with cluster.lock:
            cluster.agents[agent].crash()
            cluster.network.freeze(agent)
            membership.disconnected(cluster.core, agent, cluster.now())
            cluster.settle()

    def restart_agent(self, agent: int) -> None:
        """Start a crashed agent again with its work directory: it takes its tasks up again."""
        cluster = self._cluster
        with cluster.lock:
            held = cluster.network.thaw(agent)
            core = cluster.agents[agent]
            core.restart(cluster.now())
            for source, message in held:
                if source == "executor":
                    core.executor_message(message, cluster.now())
            core.tick(cluster.now())
            cluster.settle()

    def lose_machine(self, agent: int) -> None:
        """Take the power away: the agent and its tasks die, and nobody says so."""
        cluster = self._cluster
        with cluster.lock:
            core = cluster.agents[agent]
            cluster.network.cut(agent, True)
            cluster.network.freeze(agent)
            core.running = False
            core.registered = False
            for container_id in list(core.containerizer.containers):
                cluster.host.destroy(container_id)
            cluster.settle()

    def replace_machine(self, agent: int) -> None:
        """Start a lost machine anew: an agent with a new id and no tasks."""
        cluster = self._cluster
        with cluster.lock:
            cluster.network.cut(agent, False)
            held = cluster.network.thaw(agent)
            core = cluster.agents[agent]
            core.forget(cluster.now())
            for source, message in held:
                if source == "executor":
                    core.executor_message(message, cluster.now())
            core.tick(cluster.now())
            cluster.settle()

    def shut_down_agent(self, agent: int) -> None:
        """Tell an agent to leave (SIGUSR1): its tasks are lost at once."""
        cluster = self._cluster
        with cluster.lock:
            cluster.agents[agent].shut_down(cluster.now())
            cluster.settle()

    # -- the master ----------------------------------------------------------------------------

    def lose_master(self, *, agents_return: bool = True) -> None:
        """Replace the master by one that knows agent ids only: streams break, agents come again.

        With ``agents_return`` false the agents stay away until ``return_agents``.
        """
        cluster = self._cluster
        with cluster.lock:
            for stream in cluster.open_streams():
                stream.abort()
            cluster.forget_streams()
            old = cluster.core
            cluster.core = Master(old.address, old.timing, cluster.now(), registry=old.state)
            for link, agent in enumerate(cluster.agents):
                if not agents_return:
                    cluster.network.cut(link, True)
                if agent.running:
                    agent.master_changed(cluster.now())
            cluster.tick(cluster.now())

    def return_agents(self) -> None:
        """Let the agents that stayed away register with the new master."""
        cluster = self._cluster
        with cluster.lock:
            for link, agent in enumerate(cluster.agents):
                cluster.network.cut(link, False)
                if agent.running:
                    agent.master_changed(cluster.now())
            cluster.tick(cluster.now())

    def refuse(self, seconds: float, text: str = "Master has not finished recovery") -> None:
        """Answer everything but /health with 503 for a while."""
        self._cluster.http_faults.refuse_text = text
        self._cluster.http_faults.refuse_until = time.monotonic() + seconds

    def redirect(self, leader: str | None) -> None:
        """Send everybody to ``leader`` (``host:port``) with 307; None leads again."""
        self._cluster.http_faults.leader = leader

    def slow_answers(self, seconds: float) -> None:
        """Answer every call this much later; 0 ends it."""
        self._cluster.http_faults.answer_delay = seconds

    # -- connections ---------------------------------------------------------------------------

    def close_streams(self) -> None:
        """Break every event stream, between two records."""
        self._streams(lambda stream: stream.abort())

    def close_streams_mid_record(self) -> None:
        """Break every event stream in the middle of its next record, which comes at once."""
        with self._cluster.lock:
            for stream in self._cluster.open_streams():
                stream.cut_mid_record()
                stream.send({"type": "HEARTBEAT"})

    def half_open_streams(self) -> None:
        """Write nothing more to the open streams, and leave them open."""
        self._streams(lambda stream: stream.half_open())

    def _streams(self, order: Callable[..., None]) -> None:
        with self._cluster.lock:
            for stream in self._cluster.open_streams():
                order(stream)

    def drop_accept_before(self, count: int = 1) -> None:
        """Close the connection on the next ACCEPTs without reading them."""
        self._cluster.http_faults.drop_before_accept = count

    def drop_accept_after(self, count: int = 1) -> None:
        """Carry the next ACCEPTs out, and close the connection without an answer."""
        self._cluster.http_faults.drop_after_accept = count

    # -- offers --------------------------------------------------------------------------------

    def rescind_offers(self) -> None:
        """Take every open offer back."""
        with self._cluster.lock:
            for offer in list(self._cluster.core.state.offers.values()):
                offers.rescind(self._cluster.core, offer)
            self._cluster.settle()

    def rescind_at_accept(self, count: int = 1) -> None:
        """Take the offers of the next ACCEPTs back just before they are looked at."""
        self._cluster.rescind_at_accept = count
