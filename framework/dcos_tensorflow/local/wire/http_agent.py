"""An agent's HTTP server: ``/state`` and the file API over its sandboxes.

``cluster`` owns one for each agent. Paths are those of the machine; only files below the agent's
work directory are served.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import stat
import threading
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from dcos_tensorflow.local.agent import agent_views
from dcos_tensorflow.local.agent.agent import Agent
from dcos_tensorflow.local.interference import Interference
from dcos_tensorflow.local.master.replies import TEXT
from dcos_tensorflow.local.shared_views import version
from dcos_tensorflow.local.wire.http_server import OPEN, Handler, Server

#: Mesos reads 16 pages at most (src/files/files.cpp).
_MAX_READ_BYTES = 16 * 4096


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
            # It was told to leave: nobody listens.
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
            self.answer_json(self._sandboxes())
        elif path in ("/files/browse", "/files/read", "/files/download"):
            self._files(path, query)
        else:
            self.answer(404)

    def _files(self, path: str, query: dict[str, str]) -> None:
        if "path" not in query:
            self.answer(400, "Expecting 'path=value' in query.\n", TEXT)
            return
        root = Path(self.door.agents[self.link].identity.work_dir).resolve()
        found = self._located(query["path"])
        if not found.is_relative_to(root) or not found.exists():
            self.answer(404)
        elif path == "/files/browse":
            self._browse(found)
        elif found.is_dir():
            self.answer(400, "Cannot read from a directory.\n", TEXT)
        elif not found.is_file():
            # Whoever opens a pipe waits for its other end: a task could hold the readers for ever.
            self.answer(400, "Cannot read from what is no file.\n", TEXT)
        elif path == "/files/read":
            self._read(found, query)
        else:
            headers = {"Content-Disposition": f'attachment; filename="{found.name}"'}
            self.answer(200, found.read_bytes(), "application/octet-stream", headers)

    def _sandboxes(self) -> dict[str, str]:
        with self.door.lock:
            return agent_views.sandboxes(self.door.agents[self.link])

    def _located(self, given: str) -> Path:
        """Return the file behind a path that begins with a sandbox's virtual or real name."""
        for virtual, directory in self._sandboxes().items():
            if (given + "/").startswith(virtual + "/"):
                return Path(directory + given.removeprefix(virtual)).resolve()
        return Path(given).resolve()

    def _browse(self, directory: Path) -> None:
        if not directory.is_dir():
            self.answer(404)
            return
        self.answer_json([_file_info(one) for one in sorted(directory.iterdir())])

    def _read(self, path: Path, query: dict[str, str]) -> None:
        try:
            offset = int(query.get("offset", "-1"))
            length = int(query.get("length", "-1"))
        except ValueError as error:
            self.answer(400, f"Failed to parse offset or length: {error}.\n", TEXT)
            return
        size = path.stat().st_size
        if offset < 0:
            # Mesos: without an offset the answer is the file's size.
            self.answer_json({"data": "", "offset": size})
            return
        length = _MAX_READ_BYTES if length < 0 else min(length, _MAX_READ_BYTES)
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(length)
        # Agents put a file's bytes into JSON as they are: whoever reads on must be able to count.
        text = data.decode("utf-8", "surrogateescape")
        body = json.dumps({"data": text, "offset": offset}, ensure_ascii=False)
        self.answer(200, body.encode("utf-8", "surrogateescape"), "application/json")


def _file_info(path: Path) -> dict[str, Any]:
    info = path.lstat()
    return {
        "gid": _name(grp.getgrgid, info.st_gid),
        "mode": stat.filemode(info.st_mode),
        "mtime": float(int(info.st_mtime)),
        "nlink": info.st_nlink,
        "path": os.fspath(path),
        "size": info.st_size,
        "uid": _name(pwd.getpwuid, info.st_uid),
    }


def _name(lookup: Any, number: int) -> str:
    try:
        return str(lookup(number)[0])
    except KeyError:
        return str(number)
