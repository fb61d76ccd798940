"""Faults of the master, of its connections, and of what it sends. Part of ``Faults``."""

import time

from cluster_faults import losses
from cluster_faults.disturbance import Disturbance, UpdateRule
from embedded_mesos import EmbeddedCluster
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.master import Master


class MasterFaults:
    """See the package."""

    _cluster: EmbeddedCluster
    _disturbance: Disturbance
    #: How long a new master waits for the agents of the old one.
    reregister_seconds = losses.REREGISTER_SECONDS

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
            self._disturbance.add_rule(rule)

    # -- the master ----------------------------------------------------------------------------

    def lose_master(self, *, agents_return: bool = True) -> None:
        """Replace the master at once by one that knows what Mesos' registry knows, no tasks.

        Streams break and agents register again; with ``agents_return`` false they stay away until
        ``return_agents``.
        """
        with self._cluster.lock:
            lost = self._cluster.core.desk
            self.close_streams()
            if not agents_return:
                self._cut_all(True)
            self._lead(lost)

    def stop_master(self) -> None:
        """Kill the master: streams break, and connections are refused until ``start_master``."""
        cluster = self._cluster
        with cluster.lock:
            if not self._disturbance.has_master:
                return
            self._disturbance.has_master = False
            self._lost = cluster.core.desk
            # No master leads: what stands here meanwhile knows no agent and hears none.
            cluster.core = Master(Desk(self._lost.address, cluster.timing, cluster.now()))
            self.close_streams()
        cluster.master_server.stop()

    def start_master(self, *, agents_return: bool = True) -> None:
        """Let a new master lead at the old one's address, as ``lose_master`` does.

        Raises OSError when the port was taken by another program meanwhile.
        """
        cluster = self._cluster
        with cluster.lock:
            if not agents_return:
                self._cut_all(True)
            if self._disturbance.has_master:
                return
            cluster.listen()
            self._disturbance.has_master = True
            self._lead(self._lost)
        cluster.master_server.start()

    def _lead(self, lost: Desk) -> None:
        """Let a new master lead: it knows what Mesos' registry knows."""
        cluster = self._cluster
        heir = Desk(lost.address, cluster.timing, cluster.now())
        until = cluster.now() + self.reregister_seconds
        losses.inherit(heir.state, lost.state, until=until)
        cluster.core = Master(heir)
        self._agents_look_for_master()

    def _agents_look_for_master(self) -> None:
        cluster = self._cluster
        for agent in cluster.agents:
            if agent.running:
                agent.master_changed(cluster.now())
        cluster.tick(cluster.now())

    def return_agents(self) -> None:
        """Let the agents that stayed away register with the new master."""
        with self._cluster.lock:
            self._cut_all(False)
            self._agents_look_for_master()

    def _cut_all(self, cut: bool) -> None:
        for link in range(len(self._cluster.agents)):
            self._disturbance.cut(link, cut)

    def refuse(self, seconds: float, text: str = "Master has not finished recovery") -> None:
        """Answer everything but /health with 503 for a while."""
        self._disturbance.http.refuse_text = text
        self._disturbance.http.refuse_until = time.monotonic() + seconds

    def redirect(self, leader: str | None) -> None:
        """Send everybody to ``leader`` (``host:port``) with 307; None leads again."""
        self._disturbance.http.leader = leader

    def slow_answers(self, seconds: float) -> None:
        """Answer every call this much later; 0 ends it."""
        self._disturbance.http.answer_delay = seconds

    # -- connections ---------------------------------------------------------------------------

    def close_streams(self) -> None:
        """Break every event stream, between two records."""
        with self._cluster.lock:
            for stream in self._disturbance.streams():
                stream.abort()

    def close_streams_mid_record(self) -> None:
        """Break every event stream in the middle of its next record, which comes at once."""
        with self._cluster.lock:
            for stream in self._disturbance.streams():
                stream.cut = True
            desk = self._cluster.core.desk
            for framework in desk.state.frameworks.values():
                desk.send_event(framework, {"type": "HEARTBEAT"})
            self._cluster.settle()

    def half_open_streams(self) -> None:
        """Write nothing more to the open streams, and leave them open."""
        with self._cluster.lock:
            for stream in self._disturbance.streams():
                stream.half_open = True

    def drop_accept_before(self, count: int = 1) -> None:
        """Close the connection on the next ACCEPTs without reading them."""
        self._disturbance.http.drop_before_accept = count

    def drop_accept_after(self, count: int = 1) -> None:
        """Carry the next ACCEPTs out, and close the connection without an answer."""
        self._disturbance.http.drop_after_accept = count

    # -- offers --------------------------------------------------------------------------------

    def rescind_at_accept(self, count: int = 1) -> None:
        """Take the offers of the next ACCEPTs back just before they are looked at."""
        self._disturbance.http.rescind_at_accept = count
