"""The master's HTTP server: a thin shell over ``scheduler_calls`` and ``operator_calls``.

Beside Mesos' own answers it may have a page for people (``overview``).

``cluster`` owns it and answers its calls under its lock.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import BinaryIO, Protocol, cast

from embedded_mesos.interference import Interference
from embedded_mesos.master.calls.replies import TEXT, Reply, Request
from embedded_mesos.wire import overview
from embedded_mesos.wire.http_server import (
    MAX_BODY_BYTES,
    MAX_STRANGERS_BODY_BYTES,
    OPEN,
    BadLength,
    BodyTooLong,
    Handler,
    Server,
)
from embedded_mesos.wire.streams import EventStream


class MasterDoor(overview.OverviewDoor, Protocol):
    """What the server needs of the cluster."""

    interference: Interference
    credentials: Mapping[str, str] | None

    @property
    def master(self) -> str:
        """Return where the master listens, ``host:port``."""

    def scheduler_call(self, request: Request) -> tuple[Reply, EventStream | None]:
        """Answer a scheduler's call."""

    def stream_closed(self, stream_id: str) -> None:
        """Note that a scheduler's connection has ended."""

    def operator_call(self, body: bytes) -> Reply:
        """Answer ``POST /api/v1``."""

    def operator_get(self, path: str, query: Mapping[str, list[str]], form: bytes) -> Reply:
        """Answer the other endpoints."""

    def now(self) -> float:
        """Return unix seconds."""


_SCHEDULER = "/api/v1/scheduler"
_OPERATOR = "/api/v1"
_OPEN = OPEN | {"/redirect"}
_WRITERS = frozenset({"/teardown", "/machine/down", "/machine/up", "/quota", "/reserve"})


def make_server(address: tuple[str, int], door: MasterDoor) -> Server:
    """Return a server that is not started yet. Raises OSError."""
    return Server(address, type("MasterHandler", (_MasterHandler,), {"door": door}))


class _MasterHandler(Handler):
    door: MasterDoor

    def _serve(self) -> None:
        if self.is_foreign():
            return
        parsed = urllib.parse.urlparse(self.path)
        # libprocess serves everything under the process' name, too.
        path = parsed.path.removeprefix("/master") or "/"
        principal = self.principal(self.door.credentials)
        is_stranger = principal is None and self.door.credentials is not None
        if not is_stranger:
            self.welcome()
        try:
            body = self.body(MAX_STRANGERS_BODY_BYTES if is_stranger else MAX_BODY_BYTES)
        except (BodyTooLong, BadLength) as error:
            self.refuse_body(error)
            return
        if overview.show_page(self, self.door.page, path):
            return
        if is_stranger and path not in _OPEN:
            self._unauthorized(path)
            return
        reply = self.door.interference.master_asked(path, body)
        if reply is not None:
            self._reply(reply)
        elif path == "/redirect":
            self.answer(307, headers={"Location": f"//{self.door.master}"})
        elif path in (_SCHEDULER, _OPERATOR, f"{_OPERATOR}/operator") and self.command != "POST":
            text = (
                "405 Method Not Allowed. Expecting one of { 'POST' }, but received"
                f" '{self.command}'."
            )
            self.answer(405, text, TEXT, {"Allow": "POST"})
        elif path.startswith(overview.PATH):
            overview.answer(self, self.door, path, parsed.query)
        elif path == _SCHEDULER:
            self._scheduler(body, principal)
        elif path in (_OPERATOR, f"{_OPERATOR}/operator"):
            self._reply(self.door.operator_call(body))
        else:
            query = urllib.parse.parse_qs(parsed.query)
            self._reply(self.door.operator_get(path, query, body))

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def _reply(self, reply: Reply) -> None:
        self.answer(reply.status, reply.body, reply.content_type, reply.headers)

    def _scheduler(self, body: bytes, principal: str | None) -> None:
        request = Request(
            body=body,
            content_type=self.headers.get("Content-Type"),
            accept=self.headers.get("Accept"),
            stream_id=self.headers.get("Mesos-Stream-Id"),
            principal=principal,
        )
        reply, stream = self.door.scheduler_call(request)
        if stream is None:
            self._reply(reply)
            return
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Mesos-Stream-Id", stream.stream_id)
        try:
            self.end_headers()
            out = self.door.interference.records_out(self.connection, cast(BinaryIO, self.wfile))
            stream.serve(self.connection, out)
        finally:
            self.door.stream_closed(stream.stream_id)

    def _unauthorized(self, path: str) -> None:
        realm = "mesos-master-readonly"
        if path == _SCHEDULER:
            realm = "mesos-master-scheduler"
        elif path.startswith(_OPERATOR) or path in _WRITERS:
            realm = "mesos-master-readwrite"
        self.unauthorized(realm)
