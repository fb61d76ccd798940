"""The page of an embedded cluster, and its requests to the master beside Mesos' own endpoints.

Called by ``http_master``, which has checked the caller. The page reads the cluster at ``/state`` as
any client does, and it takes an agent out by Mesos' own call; here are the files of sandboxes,
which lie on agents that the page may not ask (another port is another page to a browser), and the
orders that Mesos has no call for. Mesos itself knows none of these paths.
"""

from __future__ import annotations

import threading
import urllib.parse
from typing import Protocol

from embedded_mesos.agent import agent_views
from embedded_mesos.agent.agent import Agent
from embedded_mesos.configuration import Page
from embedded_mesos.wire import sandbox_files
from embedded_mesos.wire.http_server import Handler
from untrusted_input.page_files import HEADERS, files

#: What all paths of the page's questions begin with.
PATH = "/overview/"


class OverviewDoor(Protocol):
    """What is needed of the cluster."""

    lock: threading.RLock
    agents: list[Agent]
    page: Page | None

    def kill_task(self, task_id: str) -> bool:
        """Kill every process of a task."""

    def start_agent(self, link: int) -> bool:
        """Start an agent that has left as a new one."""


def show_page(to: Handler, page: Page | None, path: str) -> bool:
    """Answer with a file of the page, and say whether that was asked for. It tells nothing."""
    if to.command != "GET" or page is None:
        return False
    name = path.removeprefix(f"/{page.folder.name}/")
    if path == "/" and "text/html" in to.headers.get("Accept", ""):
        name = page.index
    content, media_type = files(page.folder).get(name, (b"", ""))
    if not media_type or name == path:
        return False
    to.answer(200, content, f"{media_type}; charset=utf-8", dict(HEADERS))
    return True


def answer(to: Handler, door: OverviewDoor, path: str, query: str) -> None:
    """Answer a path below ``PATH``, asked by a known caller.

    ``GET agents`` tells of every agent, gone ones too, and where its sandboxes lie; ``GET
    agents/LINK/files/...`` is Mesos' file API of an agent; ``POST agents/LINK/start`` and ``POST
    tasks/TASK-ID/kill`` are orders.
    """
    parts = path.removeprefix(PATH).split("/")
    match to.command, *map(urllib.parse.unquote, parts):
        case "GET", "agents":
            with door.lock:
                found = [agent_views.sandboxes_of_tasks(agent) for agent in door.agents]
            to.answer_json(found)
        case "GET", "agents", link, "files", verb if f"/files/{verb}" in sandbox_files.PATHS:
            agent = _agent(door, link)
            fields = urllib.parse.parse_qs(query)
            asked = {name: values[-1] for name, values in fields.items()}
            if agent is None:
                to.answer(404)
            else:
                sandbox_files.answer(to, agent, door.lock, f"/files/{verb}", asked)
        case "POST", "agents", link, "start":
            to.answer(200 if link.isdecimal() and door.start_agent(int(link)) else 404)
        case "POST", "tasks", task_id, "kill":
            to.answer(200 if door.kill_task(task_id) else 404)
        case _:
            to.answer(404)


def _agent(door: OverviewDoor, link: str) -> Agent | None:
    with door.lock:
        known = link.isdecimal() and int(link) < len(door.agents)
        return door.agents[int(link)] if known else None
