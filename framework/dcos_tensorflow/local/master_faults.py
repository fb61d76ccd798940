"""Faults of the master, of its connections, and of what it sends. Part of ``faults``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dcos_tensorflow.local.master import offers
from dcos_tensorflow.local.network import UpdateRule

if TYPE_CHECKING:
    from dcos_tensorflow.local.cluster import EmbeddedCluster


class MasterFaults:
    """See ``faults``."""

    _cluster: EmbeddedCluster

    # -- updates -------------------------------------------------------------------------------

    def drop_updates(
        self, count: int = 1, *, task_id: str | None = None, state: str | None = None
    ) -> None:
        """Lose the next ``count`` matching updates between agent and master."""
        self._rule(UpdateRule(task_id, state, count, ()))

    def delay_updates(
        self,
        seconds: float,
        count: int = 1,
        *,
        task_id: str | None = None,
        state: str | None = None,
    ) -> None:
        """Deliver the next ``count`` matching updates ``seconds`` late."""
        self._rule(UpdateRule(task_id, state, count, (seconds,)))

    def duplicate_updates(
        self, count: int = 1, *, task_id: str | None = None, state: str | None = None
    ) -> None:
        """Deliver the next ``count`` matching updates twice."""
        self._rule(UpdateRule(task_id, state, count, (0.0, 0.0)))

    def _rule(self, rule: UpdateRule) -> None:
        with self._cluster.lock:
            self._cluster.network.add_rule(rule)

    # -- the master ----------------------------------------------------------------------------

    def lose_master(self, *, agents_return: bool = True) -> None:
        """Replace the master at once by one that knows what Mesos' registry knows, no tasks.

        Streams break and agents register again; with ``agents_return`` false they stay away until
        ``return_agents``.
        """
        cluster = self._cluster
        with cluster.lock:
            for stream in cluster.open_streams():
                stream.abort()
            cluster.forget_streams()
            if not agents_return:
                self._cut_all(True)
            cluster.elect_master()

    def stop_master(self) -> None:
        """Kill the master: streams break, and connections are refused until ``start_master``."""
        self._cluster.stop_master()

    def start_master(self, *, agents_return: bool = True) -> None:
        """Let a new master lead at the old one's address, as ``lose_master`` does.

        Raises OSError when the port was taken by somebody else meanwhile.
        """
        if not agents_return:
            with self._cluster.lock:
                self._cut_all(True)
        self._cluster.start_master()

    def return_agents(self) -> None:
        """Let the agents that stayed away register with the new master."""
        cluster = self._cluster
        with cluster.lock:
            self._cut_all(False)
            for agent in cluster.agents:
                if agent.running:
                    agent.master_changed(cluster.now())
            cluster.tick(cluster.now())

    def _cut_all(self, cut: bool) -> None:
        for link in range(len(self._cluster.agents)):
            self._cluster.network.cut(link, cut)

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
                offers.rescind(self._cluster.core.desk, offer)
            self._cluster.settle()

    def rescind_at_accept(self, count: int = 1) -> None:
        """Take the offers of the next ACCEPTs back just before they are looked at."""
        self._cluster.rescind_at_accept = count
