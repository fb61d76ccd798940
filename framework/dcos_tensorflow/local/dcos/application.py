"""Everything behind one HTTP server (starlette, uvicorn): tables in, answers out.

``local_dcos`` builds it. Each request runs in a thread of its own, for the ``dcos`` CLI opens
several connections at once; errors become the answers that its clients read.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Sequence

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dcos_tensorflow.local.dcos import media_types
from dcos_tensorflow.local.dcos.cluster_calls import Guard
from dcos_tensorflow.local.dcos.errors import CosmosError, MarathonError
from dcos_tensorflow.local.dcos.http_calls import (
    Answer,
    Call,
    Table,
    json_answer,
    query_of,
    text_answer,
)
from dcos_tensorflow.local.dcos.services import Services
from dcos_tensorflow.local.dcos.upstream import Unreachable

log = logging.getLogger(__name__)

_START_SECONDS = 10.0
#: How long requests under way may take to end when the server stops, in seconds.
_GRACE_SECONDS = 1


class Application:
    """The ASGI application."""

    def __init__(self, guard: Guard, tables: Sequence[Table], services: Services) -> None:
        """The first table with a fitting path answers; services come last."""
        self._guard = guard
        self._tables = tables
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        call = await _call(request)
        answer = await run_in_threadpool(self.answer, call)
        await _response(answer, head=call.method == "HEAD")(scope, receive, send)

    def answer(self, call: Call) -> Answer:
        """Return the answer to a call, whatever happens."""
        try:
            return self._guard.refuse(call) or self._routed(call)
        except CosmosError as error:
            return json_answer(error.body(), error.status, media_types.ERROR)
        except MarathonError as error:
            return json_answer(error.body(), error.status)
        except Unreachable as error:
            # The CLI's words for 503: "could not connect to the leading mesos master".
            return text_answer(f"503 Service Unavailable: {error}\n", 503)
        except Exception:
            log.exception("%s %s", call.method, call.path)
            return text_answer("500 Internal Server Error: see the log\n", 500)

    def _routed(self, call: Call) -> Answer:
        for table in self._tables:
            found = table.answer(call)
            if found is not None:
                return found
        if call.path.startswith("/service/"):
            return self._services.forward(call)
        return text_answer(f"404 Not Found: {call.path}\n", 404)


async def _call(request: Request) -> Call:
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query = request.scope["query_string"].decode("latin-1")
    target = raw.decode("latin-1")
    return Call(
        method=request.method,
        path=request.scope["path"],
        target=f"{target}?{query}" if query else target,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=await request.body(),
        query=query_of(query),
    )


def _response(answer: Answer, *, head: bool) -> Response:
    body = answer.body
    found: Response
    if isinstance(body, bytes):
        found = Response(b"" if head else body, answer.status)
        if head and body:
            found.headers["content-length"] = str(len(body))
    elif head:
        found = Response(b"", answer.status)
    else:
        found = StreamingResponse(body, answer.status)
    if answer.status in (204, 304):
        # h11 refuses a body, and with it the announcement of an empty one.
        del found.headers["content-length"]
    if answer.content_type is not None:
        found.headers["content-type"] = answer.content_type
    for name, value in answer.headers:
        found.raw_headers.append((name.lower().encode("latin-1"), value.encode("latin-1")))
    return found


class HttpServer:
    """One application on one loopback address. ``start`` and ``stop`` are called once each."""

    def __init__(self, host: str, port: int) -> None:
        """Take the address; nobody is answered yet. Raises OSError."""
        self._socket = socket.socket()
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
            # Until somebody listens a second process could take the same port.
            self._socket.listen(128)
        except OSError:
            self._socket.close()
            raise
        bound = self._socket.getsockname()
        self.address = f"{bound[0]}:{bound[1]}"
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self, application: Application) -> None:
        """Serve. Raises OSError when the server does not begin to."""
        self._server = _Server(
            uvicorn.Config(
                application,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        server = self._server
        self._thread = threading.Thread(
            target=lambda: server.run(sockets=[self._socket]), name="http", daemon=True
        )
        self._thread.start()
        if not self._server.ready.wait(_START_SECONDS):
            raise OSError(f"the server at {self.address} did not begin to serve")

    def stop(self) -> None:
        """Stop serving; returns when the thread has ended."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        self._socket.close()


class _Server(uvicorn.Server):
    """uvicorn, telling when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        asyncio.get_running_loop().call_soon(self.ready.set)
