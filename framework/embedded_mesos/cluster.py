"""The embedded cluster: one master and its agents on this machine, ready for a scheduler.

The shell around the pure cores ``master`` and ``agent``: it carries their messages, keeps time,
runs the HTTP servers and the executors' processes. Used by ``background_cluster``, and by programs
that keep one in their own process. Everything ends with ``stop``; when the process is killed, the
executors notice and end their tasks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from embedded_mesos import messages
from embedded_mesos.agent.agent import Agent
from embedded_mesos.agent.agent_config import for_apps, identity
from embedded_mesos.configuration import APPS_ROLE, AgentConfig, Page, Timing
from embedded_mesos.interference import Interference
from embedded_mesos.machine import secret_files
from embedded_mesos.machine.host import Host, machine_environment
from embedded_mesos.master.calls import operator_calls
from embedded_mesos.master.calls.replies import Reply, Request
from embedded_mesos.master.calls.scheduler_calls import scheduler_call
from embedded_mesos.master.desk import Desk, MasterAddress
from embedded_mesos.master.master import Master
from embedded_mesos.wire.http_agent import make_server as make_agent_server
from embedded_mesos.wire.http_master import make_server as make_master_server
from embedded_mesos.wire.http_server import Server
from embedded_mesos.wire.streams import EventStream
from untrusted_input import trees

_DEFAULT_TIMING = Timing()


class EmbeddedCluster:
    """A Mesos-compatible cluster. A context manager: starts on entry, stops on exit."""

    def __init__(
        self,
        agents: Sequence[AgentConfig],
        work_dir: Path,
        *,
        port: int = 0,
        timing: Timing = _DEFAULT_TIMING,
        credentials: Mapping[str, str] | None = None,
        page: Page | None = None,
        interference: Interference | None = None,
    ) -> None:
        """Describe a cluster whose sandboxes are made in ``work_dir``; nothing runs yet.

        Port 0 of the master, on 127.0.0.1, is a free one. With ``credentials``, secrets by
        principal, master and agents ask for HTTP basic authentication. The master shows ``page`` to
        browsers. ``interference`` comes between the parts.
        """
        self._configs = list(agents)
        self._work_dir = Path(work_dir).resolve()
        self._port = port
        self.timing = timing
        self.credentials = credentials
        self.page = page
        self.interference = interference or Interference()
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._streams: dict[str, EventStream] = {}
        self._owner: dict[str, Agent] = {}
        self._has_room_for_apps = False
        self._stopping = False
        self._started = False
        self._offset = time.time() - time.monotonic()

    # -- life ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything; return when the master answers and all agents are registered.

        Whether a port of an agent's range is free is not looked at: it may be taken in the next
        moment anyway, and Mesos does not look either. Raises OSError when an address cannot be had.
        """
        now = self.now()
        # What tasks write, and what they were given, no other user may read.
        self._work_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._agent_servers: list[Server] = []
        self.agents: list[Agent] = []
        self.listen()
        try:
            address = MasterAddress("127.0.0.1", self._port, "127.0.0.1")
            self.core = Master(Desk(address, self.timing, now))
            for link, config in enumerate(self._configs):
                self._add_agent(link, config, now)
        except OSError:
            for server in (self.master_server, *self._agent_servers):
                server.server_close()
            raise
        self.host = Host(self._executor_message)
        with self.lock:
            for agent in self.agents:
                agent.tick(now)
            self.settle()
        self._timer = threading.Thread(target=self._run_timers, name="timers", daemon=True)
        self._timer.start()
        for server in (self.master_server, *self._agent_servers):
            server.start()
        self._started = True

    def listen(self) -> None:
        """Give the master a server at its address, which is not started yet. Raises OSError."""
        self.master_server = make_master_server(("127.0.0.1", self._port), self)
        self._port = int(self.master_server.server_address[1])

    def _add_agent(self, link: int, config: AgentConfig, now: float, role: str = "") -> Server:
        make_server = partial(make_agent_server, (config.address, 0), self, link)
        server = self.interference.on_machine(link, make_server)
        self._agent_servers.append(server)
        port = int(server.server_address[1])
        its_identity = identity(link, config, port, self._work_dir / "agents" / str(link), role)
        # Those of a cluster that was killed together with its executors.
        trees.remove(secret_files.place(its_identity.work_dir))
        agent = Agent(
            its_identity,
            self.timing,
            now,
            machine_environment=machine_environment(),
            gpus=config.gpus,
        )
        self.agents.append(agent)
        return server

    def _make_room_for_apps(self) -> None:
        """Add the agent for apps when the first framework of their role has subscribed.

        A local DC/OS may come to a cluster that runs already. Jobs are never offered any of it,
        so a machine is as big for them with apps as without.
        """
        if self._has_room_for_apps or not any(
            APPS_ROLE in framework.roles for framework in self.core.desk.state.frameworks.values()
        ):
            return
        self._has_room_for_apps = True
        self.add_agent(for_apps(self._configs[0]), APPS_ROLE)

    def add_agent(self, config: AgentConfig, role: str = "") -> None:
        """Add an agent to a cluster that runs; the lock is held. Raises OSError.

        With a ``role`` all of it is reserved for that one.
        """
        link = len(self.agents)
        self._add_agent(link, config, self.now(), role).start()
        self.agents[link].tick(self.now())

    def stop(self) -> None:
        """End everything, tasks included. Safe to call twice."""
        if not self._started:
            return
        self._started = False
        with self.lock:
            self._stopping = True
            self._changed.notify_all()
            for stream in self._streams.values():
                stream.close()
        self._timer.join()
        self.host.stop()
        # Each takes a moment to notice: all at once.
        servers = (self.master_server, *self._agent_servers)
        stopping = [threading.Thread(target=server.stop) for server in servers]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()

    @property
    def master(self) -> str:
        """Return where the master listens, ``host:port``."""
        return f"127.0.0.1:{self._port}"

    def now(self) -> float:
        """Return unix seconds that never go back."""
        return self._offset + time.monotonic()

    # -- carrying messages ---------------------------------------------------------------------

    def settle(self) -> None:
        """Carry out every effect until there is none left. The lock is held."""
        while True:
            effects = self.core.desk.take_effects()
            for effect in effects:
                self._master_effect(effect)
            for agent in self.agents:
                agent_effects = agent.take_effects()
                effects += agent_effects
                for effect in agent_effects:
                    self._agent_effect(agent, effect)
            if not effects:
                self._changed.notify_all()
                return

    def _master_effect(self, effect: object) -> None:
        if isinstance(effect, messages.SendEvent):
            stream = self._streams.get(effect.stream_id)
            if stream is not None:
                stream.send(effect.event)
        elif isinstance(effect, messages.CloseStream):
            stream = self._streams.pop(effect.stream_id, None)
            if stream is not None:
                stream.close()
        elif isinstance(effect, messages.ToAgent):
            self._to_agent(effect.link, effect.message)

    def _to_agent(self, link: int, message: object) -> None:
        if self.interference.reaches_agent(link, message):
            self.agents[link].master_message(message, self.now())

    def _agent_effect(self, agent: Agent, effect: object) -> None:
        link = agent.identity.link
        if isinstance(effect, messages.ToMaster):
            if self.interference.reaches_master(link, effect.message):
                self.core.agent_message(link, effect.message, self.now())
        elif isinstance(effect, messages.StartExecutor):
            self._owner[effect.container_id] = agent
            self._start_executor(agent, effect)
        elif isinstance(effect, messages.TellExecutor):
            self.host.tell(effect.container_id, effect.command)
        elif isinstance(effect, messages.DestroyExecutor):
            self.host.destroy(effect.container_id)
        elif isinstance(effect, messages.RemoveDirectory):
            trees.remove(effect.path)

    def _start_executor(self, agent: Agent, effect: messages.StartExecutor) -> None:
        now = self.now()
        try:
            start = partial(self.host.start, effect.container_id, effect.sandbox, effect.spec)
            pid = self.interference.on_machine(agent.identity.link, start)
        except OSError:
            agent.executor_message(messages.ExecutorGone(effect.container_id), now)
            return
        agent.executor_message(messages.ExecutorStarted(effect.container_id, pid), now)

    def _executor_message(self, container_id: str, message: object) -> None:
        with self.lock:
            agent = self._owner[container_id]
            link = agent.identity.link
            if self._stopping:
                return
            if isinstance(message, messages.ExecutorGone):
                del self._owner[container_id]
            if self.interference.executor_reaches_agent(link, container_id, message):
                agent.executor_message(message, self.now())
            self.settle()

    def _run_timers(self) -> None:
        with self.lock:
            while not self._stopping:
                now = self.now()
                self.tick(now)
                deadline = min(
                    [
                        self.core.deadline(),
                        self.interference.deadline(),
                        *(
                            agent.deadline()
                            for agent in self.agents
                            if self.interference.agent_runs(agent.identity.link)
                        ),
                    ]
                )
                self._changed.wait(max(0.001, min(deadline - now, 60.0)))

    def tick(self, now: float) -> None:
        """Do what time brings. The lock is held."""
        self.interference.tick(now)
        self.core.tick(now)
        # The pings of a late tick are there before the agents look how long the master was silent.
        self.settle()
        for agent in self.agents:
            if self.interference.agent_runs(agent.identity.link):
                agent.tick(now)
        self.settle()

    # -- the page's orders ---------------------------------------------------------------------

    def kill_task(self, task_id: str) -> bool:
        """Kill every process of a task (SIGKILL); False when no agent has one."""
        with self.lock:
            for agent in self.agents:
                for container in agent.containerizer.live():
                    if container.task_id == task_id:
                        self.host.destroy(container.container_id)
                        return True
        return False

    def start_agent(self, link: int) -> bool:
        """Start an agent that has left as a new one; False when it is there."""
        with self.lock:
            if not (0 <= link < len(self.agents) and self.agents[link].left):
                return False
            self.agents[link].start_anew(self.now())
            self.agents[link].tick(self.now())
            self.settle()
        return True

    # -- the master's door ---------------------------------------------------------------------

    def scheduler_call(self, request: Request) -> tuple[Reply, EventStream | None]:
        """Answer a scheduler's call."""
        with self.lock:
            self.interference.call_begins(request.body)
            reply = scheduler_call(self.core.desk, request, self.now())
            stream = None
            if reply.stream_id is not None:
                stream = EventStream(reply.stream_id)
                self._streams[stream.stream_id] = stream
                self._make_room_for_apps()
            self.settle()
            self.interference.call_ends(request.body)
            return reply, stream

    def stream_closed(self, stream_id: str) -> None:
        """Note that a scheduler's connection has ended."""
        with self.lock:
            self._streams.pop(stream_id, None)
            if not self._stopping:
                self.core.stream_closed(stream_id, self.now())
                self.settle()

    def operator_call(self, body: bytes) -> Reply:
        """Answer ``POST /api/v1``."""
        with self.lock:
            self.interference.call_begins(body)
            reply = operator_calls.call(self.core.desk, body, self.now())
            self.settle()
            return reply

    def operator_get(self, path: str, query: Mapping[str, list[str]], form: bytes) -> Reply:
        """Answer the other endpoints."""
        with self.lock:
            self.interference.call_begins(form)
            reply = operator_calls.get(self.core.desk, path, query, form, self.now())
            self.settle()
            return reply
