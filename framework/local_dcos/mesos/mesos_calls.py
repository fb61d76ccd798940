"""Mesos over HTTP, as Admin Router shows it: ``/mesos``, ``/agent/<id>`` and the logs.

``application`` puts the table behind a server. Calls that master and agents can answer go to them
unchanged.
"""

from __future__ import annotations

import getpass
import re
from pathlib import Path

from local_dcos.http_calls import Answer, Call, Table, json_answer, text_answer
from local_dcos.mesos import logs, machine_metrics, mesos_protobuf
from local_dcos.mesos.mesos_client import MesosClient
from local_dcos.upstream import forward

_MASTER = "/mesos(?:/master)?"
_AGENT = "/(?:agent|slave)/([^/]+)"
_METRICS = "/system/v1/agent/([^/]+)/metrics/v0"
_STREAMED = ("application/x-protobuf", "application/recordio")
_EVENT_STREAM = "text/event-stream"
_DEFAULT_LINES = 10
_CLEAN_PREFIX = re.compile(r"^/(?:mesos(?:/master)?|(?:agent|slave)/[^/]+)")


class MesosCalls:
    """Answers the requests of Mesos' clients."""

    def __init__(self, mesos: MesosClient, cluster_id: str) -> None:
        self._mesos = mesos
        self._cluster_id = cluster_id

    def table(self) -> Table:
        """Return what is answered."""
        table = Table()
        table.add("POST", f"{_MASTER}/api/v1", self._operator)
        table.add("*", f"{_MASTER}(?:/.*)?", self._master)
        table.add("*", f"{_AGENT}(?:\\(1\\))?(?:/.*)?", self._agent)
        table.add("GET", f"{_METRICS}/node", self._node_metrics)
        # The client's words for it: no metrics found.
        table.add("GET", f"{_METRICS}/containers/.*", lambda *_: Answer(204))
        table.add("GET", "/system/v1/logs/v2/task/([^/]+)/file/(.+)", self._log)
        table.add("GET", "/system/v1/logs/v2/task/([^/]+)", self._log)
        return table

    # -- the master ----------------------------------------------------------------------------

    def _operator(self, call: Call) -> Answer:
        kind = call.headers.get("content-type", "").partition(";")[0].strip()
        if kind != mesos_protobuf.CONTENT_TYPE:
            return self._master(call)
        try:
            wanted = mesos_protobuf.call_type(call.body)
        except mesos_protobuf.NoSuchCall as error:
            return text_answer(f"Failed to parse body into Call protobuf: {error}\n", 400)
        state = self._mesos.state()
        if wanted == mesos_protobuf.GET_AGENTS:
            body = mesos_protobuf.agents(state["slaves"])
        elif wanted == mesos_protobuf.GET_FRAMEWORKS:
            # Whatever a framework says: here its tasks run as the user who has started all of this.
            user = getpass.getuser()
            body = mesos_protobuf.frameworks([{**f, "user": user} for f in state["frameworks"]])
        else:
            text = f"Not supported by the local DC/OS: call {wanted} as protobuf; send JSON\n"
            return text_answer(text, 501)
        return Answer(200, body, mesos_protobuf.CONTENT_TYPE)

    def _master(self, call: Call) -> Answer:
        return self._passed_on(call, self._mesos.master)

    # -- agents --------------------------------------------------------------------------------

    def _agent(self, call: Call, agent_id: str) -> Answer:
        address = self._mesos.agent_address(agent_id)
        if address is None:
            return text_answer(f"404 Not Found: there is no agent {agent_id}\n", 404)
        kind = call.headers.get("content-type", "").partition(";")[0].strip()
        if call.method == "POST" and kind in _STREAMED:
            text = "Not supported by the local DC/OS: task exec and task attach; the task's files"
            return text_answer(f"{text} are there for task ls, log and download\n", 501)
        return self._passed_on(call, address)

    def _node_metrics(self, call: Call, agent_id: str) -> Answer:
        address = self._mesos.agent_address(agent_id)
        if address is None:
            return json_answer({"message": f"there is no agent {agent_id}"}, 404)
        hostname = address.rpartition(":")[0]
        return json_answer(machine_metrics.node(agent_id, hostname, self._cluster_id))

    def _passed_on(self, call: Call, address: str) -> Answer:
        target = _CLEAN_PREFIX.sub("", call.target, count=1)
        return forward(
            address,
            target if target.startswith("/") else "/" + target,
            method=call.method,
            body=call.body,
            headers=call.headers,
            authorization=self._mesos.credentials.header(),
        )

    # -- logs ----------------------------------------------------------------------------------

    def _log(self, call: Call, task_id: str, name: str = "stdout") -> Answer:
        sandbox = self._mesos.sandbox_of(task_id)
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
