"""Mesos over HTTP, as Admin Router shows it: ``/mesos``, ``/agent/<id>`` and the logs.

``application`` puts the table behind a server. Everything that needs nothing of Marathon goes to
the master and the agents unchanged.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dcos_tensorflow.local.dcos import logs, mesos_protobuf, sandbox_files
from dcos_tensorflow.local.dcos.http_calls import Answer, Call, Table, json_answer, text_answer
from dcos_tensorflow.local.dcos.mesos_gateway import MesosGateway
from dcos_tensorflow.local.dcos.upstream import forward

Json = dict[str, Any]

_MASTER = "/mesos(?:/master)?"
_AGENT = "/(?:agent|slave)/([^/]+)"
_EVENT_STREAM = "text/event-stream"
_DEFAULT_LINES = 10
_CLEAN_PREFIX = re.compile(r"^/(?:mesos(?:/master)?|(?:agent|slave)/[^/]+)")


class MesosCalls:
    """Answers the requests of Mesos' clients."""

    def __init__(self, gateway: MesosGateway) -> None:
        self._gateway = gateway

    def table(self) -> Table:
        """Return what is answered."""
        table = Table()
        table.add("GET", f"{_MASTER}/state(?:\\.json)?", self._state)
        table.add("GET", f"{_MASTER}/state-summary", self._summary)
        table.add("POST", f"{_MASTER}/api/v1", self._operator)
        table.add("*", f"{_MASTER}(?:/.*)?", self._master)
        table.add("GET", f"{_AGENT}/files/debug", self._debug)
        table.add("GET", f"{_AGENT}/files/(browse|read|download)", self._files)
        table.add("*", f"{_AGENT}(?:\\(1\\))?(?:/.*)?", self._agent)
        table.add("GET", "/system/v1/logs/v2/task/([^/]+)/file/(.+)", self._log)
        table.add("GET", "/system/v1/logs/v2/task/([^/]+)", self._log)
        return table

    # -- the master ----------------------------------------------------------------------------

    def _state(self, call: Call) -> Answer:
        return json_answer(self._gateway.state())

    def _summary(self, call: Call) -> Answer:
        return json_answer(self._gateway.state_summary())

    def _operator(self, call: Call) -> Answer:
        kind = call.headers.get("content-type", "").partition(";")[0].strip()
        if kind != mesos_protobuf.CONTENT_TYPE:
            return self._master(call)
        try:
            wanted = mesos_protobuf.call_type(call.body)
        except mesos_protobuf.NoSuchCall as error:
            return text_answer(f"Failed to parse body into Call protobuf: {error}\n", 400)
        state = self._gateway.state()
        if wanted == mesos_protobuf.GET_AGENTS:
            body = mesos_protobuf.agents(state["slaves"])
        elif wanted == mesos_protobuf.GET_FRAMEWORKS:
            body = mesos_protobuf.frameworks(state["frameworks"])
        else:
            text = f"Not supported by the local DC/OS: call {wanted} as protobuf; send JSON\n"
            return text_answer(text, 501)
        return Answer(200, body, mesos_protobuf.CONTENT_TYPE)

    def _master(self, call: Call) -> Answer:
        return self._passed_on(call, self._gateway.master)

    # -- agents --------------------------------------------------------------------------------

    def _agent(self, call: Call, agent_id: str) -> Answer:
        address = self._gateway.agent_address(agent_id)
        if address is None:
            return text_answer(f"404 Not Found: there is no agent {agent_id}\n", 404)
        return self._passed_on(call, address)

    def _passed_on(self, call: Call, address: str) -> Answer:
        target = _CLEAN_PREFIX.sub("", call.target, count=1)
        return forward(
            address,
            target if target.startswith("/") else "/" + target,
            method=call.method,
            body=call.body,
            headers=call.headers,
        )

    def _debug(self, call: Call, agent_id: str) -> Answer:
        found = self._gateway.sandboxes(agent_id)
        return json_answer({one.virtual: str(one.path) for one in found})

    def _files(self, call: Call, agent_id: str, verb: str) -> Answer:
        if "path" not in call.query:
            return text_answer("Expecting 'path=value' in query.\n", 400)
        roots = [(one.virtual, one.path) for one in self._gateway.sandboxes(agent_id)]
        found = sandbox_files.locate(call.query["path"], roots)
        if verb == "browse":
            return sandbox_files.browse(found)
        if verb == "download":
            return sandbox_files.download(found)
        return sandbox_files.read(found, call.query.get("offset"), call.query.get("length"))

    # -- logs ----------------------------------------------------------------------------------

    def _log(self, call: Call, task_id: str, name: str = "stdout") -> Answer:
        sandbox = self._gateway.sandbox_of(task_id)
        if sandbox is None:
            return text_answer("task not found\n", 404)
        path = (sandbox / name).resolve()
        follow = _EVENT_STREAM in call.headers.get("accept", "")
        inside = path.is_relative_to(sandbox.resolve())
        if not inside or path.is_dir():
            return text_answer("file not found\n", 404)
        if not path.exists() and not (follow and name in ("stdout", "stderr")):
            return text_answer("file not found\n", 404)
        try:
            start = _start(call, path)
        except ValueError as error:
            return text_answer(f"{error}\n", 400)
        if follow:
            return Answer(200, logs.events(path, start), _EVENT_STREAM)
        if path.stat().st_size == 0:
            return Answer(204)
        with open(path, "rb") as file:
            file.seek(start)
            return Answer(200, file.read(), "text/plain; charset=utf-8")


def _start(call: Call, path: Path) -> int:
    """Return the byte to begin with. Raises ValueError."""
    seen = call.headers.get("last-event-id")
    if seen is not None and seen.isdigit():
        return int(seen)
    cursor = call.query.get("cursor", "END")
    skip = int(call.query.get("skip", -_DEFAULT_LINES if cursor == "END" else 0))
    if cursor == "BEG" and skip == 0:
        return 0
    if cursor != "END" or skip > 0:
        raise ValueError("only cursor=END with a negative skip and cursor=BEG are supported")
    return logs.start_of_last(path, -skip) if path.exists() else 0
