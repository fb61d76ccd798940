"""Everything behind one HTTP server (starlette): tables in, answers out.

``local_dcos`` builds it. Each request runs in a thread of its own, for the ``dcos`` CLI opens
several connections at once; errors become the answers that its clients read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from local_dcos.cluster_calls import Guard
from local_dcos.cosmos import media_types
from local_dcos.errors import CosmosError, MarathonError
from local_dcos.http_calls import (
    Answer,
    Call,
    Table,
    json_answer,
    query_of,
    text_answer,
)
from local_dcos.services import Services
from local_dcos.upstream import Unreachable
from untrusted_input.bounded_body import BodyTooLong, body_of
from untrusted_input.peer import owner_of_peer

log = logging.getLogger(__name__)

#: No command of a client sends as much: packages are fetched, not uploaded.
_MAX_BODY_BYTES = 64 * 1024 * 1024


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
        call = _call(request)
        # Nothing is read of a caller that is not answered.
        answer = await run_in_threadpool(self._guard.refuse, call)
        if answer is None:
            try:
                body = await body_of(request, _MAX_BODY_BYTES)
            except BodyTooLong:
                answer = text_answer("413 Payload Too Large\n", 413)
            else:
                answer = await run_in_threadpool(self.answer, replace(call, body=body))
        await _response(answer, head=call.method == "HEAD")(scope, receive, send)

    def answer(self, call: Call) -> Answer:
        """Return the answer to a call that is let in, whatever happens."""
        try:
            return self._routed(call)
        except CosmosError as error:
            body = error.body(call.headers.get("user-agent", ""))
            return json_answer(body, error.status, media_types.ERROR)
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


def _call(request: Request) -> Call:
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query = request.scope["query_string"].decode("latin-1")
    target = raw.decode("latin-1")
    return Call(
        method=request.method,
        path=request.scope["path"],
        target=f"{target}?{query}" if query else target,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=b"",
        query=query_of(query),
        user=_user(request.scope),
    )


def _user(scope: Scope) -> int | None:
    client, server = scope.get("client"), scope.get("server")
    return owner_of_peer(tuple(client), tuple(server)) if client and server else None


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
