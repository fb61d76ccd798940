"""Reading a task's sandbox through the agent that runs, or ran, it.

Used by the scheduler (why did it fail?), the API and the CLI (logs). The agent's /state tells the
executor's directory, its /files/read gives pages of the files in it; both keep answering after
the task's end, until the agent's garbage collection.

It only reads, but for ``HttpAccess.post``; nothing is cached, and every question is bounded in
time and size.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from dcos_tensorflow.mesos.address import (
    DEFAULT_AGENT_PORT,
    Address,
    AddressError,
    parse_address,
    parse_location,
)
from dcos_tensorflow.mesos.connection import Authentication, HttpConnection
from dcos_tensorflow.mesos.credentials import Credentials
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

#: What an agent gives per read: 16 pages (src/files/files.cpp).
PAGE_BYTES = 64 * 1024
#: Bounds of one answer: lines longer than this altogether are cut at their beginning.
MAX_TAIL_BYTES = 1024 * 1024
_MAX_ANSWER_BYTES = 256 * 1024 * 1024
_MAX_REDIRECTS = 3


class AgentFilesError(Exception):
    """A sandbox could not be read; the message says what was asked and what was answered."""


class AgentUnknown(AgentFilesError):
    """The master knows no agent of this id."""


class AgentUnreachable(AgentFilesError):
    """Master or agent did not answer, or not in time, or not with what was asked for."""


class AgentRefused(AgentFilesError):
    """Master or agent wants other credentials."""


class SandboxNotFound(AgentFilesError):
    """The agent knows no such task: it never got there, or was garbage collected."""


class FileNotFound(AgentFilesError):
    """There is no such file in the sandbox."""


@dataclass(frozen=True)
class Sandbox:
    """Where a task's files lie: the agent that has them, and the directory on it."""

    agent: Address
    directory: str


@dataclass(frozen=True)
class FilePart:
    """Bytes of a file from ``offset`` on. ``size`` is what the whole file had when it was read."""

    offset: int
    data: bytes
    size: int


@dataclass(frozen=True)
class FileEntry:
    """One name in a folder. ``mode`` is 0o755 for what may be executed, else 0o644."""

    name: str
    size: int
    mode: int
    #: In unix seconds.
    changed_at: float
    is_folder: bool = False
    is_file: bool = False


class MesosAccess(Protocol):
    """What :class:`~dcos_tensorflow.mesos.gateway.MesosGateway` offers of the cluster."""

    @property
    def master(self) -> Address | None:
        """The leading master."""

    @property
    def access(self) -> HttpAccess:
        """How to speak to masters and agents."""

    def agent_url(self, agent_id: str) -> str | None:
        """The agent's base URL, if known."""


class HttpAccess:
    """Credentials, TLS settings and time-outs for reading from masters and agents."""

    def __init__(
        self,
        authentication: Authentication | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = 10.0,
    ) -> None:
        self.authentication = authentication or Credentials()
        self.tls = tls
        self.timeout_seconds = timeout_seconds

    def get(self, address: Address, path: str) -> Any:
        """Return the JSON at ``path``, following redirects. Raises AgentFilesError."""
        return _json_in(*self._answer("GET", address, path))

    def post(self, address: Address, path: str, call: Mapping[str, Any]) -> None:
        """Have a call carried out, following redirects. Raises AgentFilesError."""
        self._answer("POST", address, path, json.dumps(call).encode())

    def _answer(
        self, method: str, address: Address, path: str, sent: bytes | None = None
    ) -> tuple[str, bytes]:
        """Return which one has answered, and what."""
        for _ in range(_MAX_REDIRECTS + 1):
            status, location, body = self._ask(method, address, path, sent)
            if location and 300 <= status < 400:
                try:
                    address = parse_location(location, address)
                except AddressError as error:
                    raise AgentUnreachable(str(error)) from error
                continue
            _judge(address, path, status, body)
            return f"{address.url}{path}", body
        raise AgentUnreachable(f"{address.url}{path}: redirected in a circle")

    def _ask(
        self, method: str, address: Address, path: str, sent: bytes | None
    ) -> tuple[int, str, bytes]:
        connection = HttpConnection(address, self.timeout_seconds, self.tls)

        def ask(login: Mapping[str, str]) -> HTTPResponse:
            kind = {} if sent is None else {"Content-Type": "application/json"}
            headers = {"Accept": "application/json", **kind, **login}
            connection.request(method, path, body=sent, headers=headers)
            return connection.getresponse()

        try:
            login = self.authentication.header()
            response = ask(login)
            if response.status == 401 and self.authentication.refused(login):
                response.read(_MAX_ANSWER_BYTES)
                response = ask(self.authentication.header())
            body = response.read(_MAX_ANSWER_BYTES)
            return response.status, response.headers.get("Location", ""), body
        except (OSError, HTTPException) as error:
            what = "no answer in time" if isinstance(error, TimeoutError) else repr(error)
            raise AgentUnreachable(f"{address.url}{path}: {what}") from error
        finally:
            connection.close()


class AgentFiles:
    """Files of tasks."""

    def __init__(self, gateway: MesosAccess) -> None:
        self._gateway = gateway
        self._access = gateway.access

    def tail(
        self, agent_id: str, framework_id: str, task_id: str, file: str, lines: int = 40
    ) -> list[str]:
        """Return the last lines of a file, at most 1 MiB of them. Raises AgentFilesError."""
        _check_inside(file)
        return self.tail_in(self.locate(agent_id, framework_id, task_id), file, lines)

    def tail_in(self, sandbox: Sandbox, file: str, lines: int = 40) -> list[str]:
        """Return the last lines of a file, as ``tail`` does. Raises AgentFilesError."""
        agent, path = sandbox.agent, _path_in(sandbox, file)
        size = self._size(agent, path)
        start = size
        text = ""
        while start > 0 and size - start < MAX_TAIL_BYTES and text.count("\n") <= lines:
            end, start = start, max(0, start - PAGE_BYTES)
            text = "".join(self._pages(agent, path, start, end)) + text
        return _readable(text).splitlines()[-lines:] if lines > 0 else []

    def locate(self, agent_id: str, framework_id: str, task_id: str) -> Sandbox:
        """Return where a task's sandbox is. Raises AgentFilesError.

        That is the dear part of reading: the agent's whole state is asked for. A task's sandbox
        never moves.
        """
        found = self.sandboxes(agent_id, framework_id, (task_id,)).get(task_id)
        if found is None:
            raise SandboxNotFound(f"agent {agent_id} has no sandbox of task {task_id}")
        return found

    def sandboxes(
        self, agent_id: str, framework_id: str, task_ids: Iterable[str]
    ) -> dict[str, Sandbox]:
        """Return where the sandboxes of these tasks are, by one look at the agent's state.

        Those that it does not know are left out. Raises AgentFilesError.
        """
        agent = self._agent(agent_id)
        state = self._access.get(agent, "/state")
        found = {task: sandbox_directory(state, framework_id, task) for task in task_ids}
        return {task: Sandbox(agent, path) for task, path in found.items() if path is not None}

    def read_part(self, sandbox: Sandbox, file: str, offset: int, length: int) -> FilePart:
        """Return up to ``length`` bytes, at most a page, as they are. Raises AgentFilesError."""
        path = _path_in(sandbox, file)
        size = self._size(sandbox.agent, path)
        wanted = max(0, min(length, PAGE_BYTES, size - offset))
        text = str(self._read(sandbox.agent, path, offset, wanted)["data"]) if wanted else ""
        return FilePart(offset, text.encode("utf-8", "surrogateescape"), size)

    def browse(self, sandbox: Sandbox, folder: str) -> list[FileEntry]:
        """Return what is in a folder, an empty one for the sandbox. Raises AgentFilesError."""
        query = urlencode({"path": _path_in(sandbox, folder)})
        answer = self._access.get(sandbox.agent, f"/files/browse?{query}")
        if not isinstance(answer, list):
            raise AgentUnreachable(f"{sandbox.agent.url}/files/browse: unexpected answer")
        return [_entry(each) for each in answer if isinstance(each, dict) and "path" in each]

    def content(self, sandbox: Sandbox, file: str, size: int) -> Iterator[bytes]:
        """Yield a file's first ``size`` bytes as they are. Raises AgentFilesError."""
        for page in self._pages(sandbox.agent, _path_in(sandbox, file), 0, size):
            yield page.encode("utf-8", "surrogateescape")

    def _agent(self, agent_id: str) -> Address:
        url = self._gateway.agent_url(agent_id)
        if url is not None:
            return parse_address(url)
        master = self._gateway.master
        if master is None:
            raise AgentUnreachable(f"agent {agent_id}: no master is known to ask for it")
        path = f"/slaves?slave_id={quote(agent_id, safe='')}"
        for agent in self._access.get(master, path).get("slaves") or ():
            if agent.get("id") == agent_id:
                return agent_address(agent, master.https)
        raise AgentUnknown(f"master {master} knows no agent {agent_id}")

    def _size(self, agent: Address, path: str) -> int:
        return int(self._read(agent, path, -1, 0)["offset"])

    def _pages(self, agent: Address, path: str, start: int, end: int) -> Iterator[str]:
        while start < end:
            length = min(PAGE_BYTES, end - start)
            data = str(self._read(agent, path, start, length)["data"])
            if not data:
                return
            yield data
            start += length

    def _read(self, agent: Address, path: str, offset: int, length: int) -> Mapping[str, Any]:
        query = {"path": path, "offset": offset}
        if length:
            query["length"] = length
        answer = self._access.get(agent, f"/files/read?{urlencode(query)}")
        if not isinstance(answer, dict) or not {"data", "offset"} <= answer.keys():
            raise AgentUnreachable(f"{agent.url}/files/read: unexpected answer")
        return answer


def _entry(listed: Mapping[str, Any]) -> FileEntry:
    mode = str(listed.get("mode", ""))
    return FileEntry(
        name=str(listed["path"]).rpartition("/")[2],
        size=int(listed.get("size") or 0),
        mode=0o755 if mode[3:4] in ("x", "s") else 0o644,
        changed_at=float(listed.get("mtime") or 0),
        is_folder=mode.startswith("d"),
        is_file=mode.startswith("-"),
    )


def _check_inside(file: str) -> None:
    if file.startswith("/") or ".." in file.split("/"):
        raise ValueError(f"file {file!r}: expected a path inside the sandbox")


def _path_in(sandbox: Sandbox, file: str) -> str:
    _check_inside(file)
    return f"{sandbox.directory}/{file}" if file else sandbox.directory


def sandbox_directory(state: Mapping[str, Any], framework_id: str, task_id: str) -> str | None:
    """Return a task's directory by an agent's /state; None when the agent does not know it.

    A command executor, and there are no others of ours, has its task's id.
    """
    for framework in (*state.get("frameworks", ()), *state.get("completed_frameworks", ())):
        if framework.get("id") == framework_id:
            for kind in ("executors", "completed_executors"):
                for executor in framework.get(kind, ()):
                    if executor.get("id") == task_id:
                        return str(executor.get("directory", ""))
    return None


def agent_address(agent: Mapping[str, Any], https: bool = False) -> Address:
    """Return the address of an entry of the master's /slaves.

    The IP of its pid, ``slave(1)@ip:port``; with https the host name, which certificates carry.
    """
    _, _, endpoint = str(agent.get("pid", "")).partition("@")
    listed = parse_address(endpoint, https, DEFAULT_AGENT_PORT) if endpoint else None
    if listed is None or https:
        port = int(agent.get("port") or (listed.port if listed else DEFAULT_AGENT_PORT))
        return Address(str(agent["hostname"]), port, https)
    return listed


def _readable(text: str) -> str:
    """Put together characters that a page's end cut apart, and replace what is no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _judge(address: Address, path: str, status: int, body: bytes) -> None:
    where = f"{address.url}{path}"
    if status in (401, 403):
        raise AgentRefused(f"{where}: HTTP {status}")
    if status == 404:
        raise FileNotFound(f"{where}: not found")
    if status != 200:
        text = body[:200].decode("utf-8", "replace")
        raise AgentUnreachable(f"{where}: HTTP {status} {text}".rstrip())


def _json_in(where: str, body: bytes) -> Any:
    try:
        # Agents put a file's bytes into JSON as they are, whatever they are.
        return read_json(body.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise AgentUnreachable(f"{where}: the answer is no JSON") from error
