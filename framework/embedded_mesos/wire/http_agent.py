"""An agent's HTTP server: ``/state`` and the file API over its sandboxes (``sandbox_files``).

``cluster`` owns one for each agent.
"""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Mapping
from typing import Protocol

from embedded_mesos.agent import agent_views
from embedded_mesos.agent.agent import Agent
from embedded_mesos.interference import Interference
from embedded_mesos.shared_views import version
from embedded_mesos.wire import sandbox_files
from embedded_mesos.wire.http_server import OPEN, Handler, Server


class AgentDoor(Protocol):
    """What the server needs of the cluster."""

    lock: threading.RLock
    agents: list[Agent]
    interference: Interference
    credentials: Mapping[str, str] | None

    @property
    def master(self) -> str:
        """Return where the master listens."""


def make_server(address: tuple[str, int], door: AgentDoor, link: int) -> Server:
    """Return a server that is not started yet. Raises OSError."""
    return Server(address, type("AgentHandler", (_AgentHandler,), {"door": door, "link": link}))


class _AgentHandler(Handler):
    door: AgentDoor
    link: int

    def do_GET(self) -> None:
        self.door.interference.agent_asked(self.link, self.connection)
        if not self.door.agents[self.link].running:
            # It was told to leave: no server listens.
            self.close_connection = True
            return
        if self.is_foreign():
            return
        parsed = urllib.parse.urlparse(self.path)
        path = parsed.path.removeprefix("/slave(1)")
        credentials = self.door.credentials
        if credentials is None or self.principal(credentials):
            self.welcome()
        elif path not in OPEN:
            self.unauthorized("mesos-agent-readonly")
            return
        query = {name: values[-1] for name, values in urllib.parse.parse_qs(parsed.query).items()}
        if path == "/state":
            with self.door.lock:
                body = agent_views.state(self.door.agents[self.link], self.door.master)
            self.answer_json(body)
        elif path == "/health":
            self.answer(200)
        elif path == "/version":
            self.answer_json(version())
        elif path == "/files/debug":
            with self.door.lock:
                body = agent_views.sandboxes(self.door.agents[self.link])
            self.answer_json(body)
        elif path in sandbox_files.PATHS:
            sandbox_files.answer(self, self.door.agents[self.link], self.door.lock, path, query)
        else:
            self.answer(404)
