"""Passes a request on to the scheduler that serves a service, with the token that its file tells.

Used by ``window.app``. The browser never learns the token. A stream (``/v1/events``) is passed on
as it comes; it ends when the browser is gone or the scheduler ends.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.api_client import connection_to

#: A stream is silent for no longer (``api.live``), other answers take less; seconds.
_SECONDS = 40.0
_PIECE_BYTES = 64 * 1024
#: What of a request, and of an answer, concerns the other side.
_ASKED = ("accept", "content-type")
_ANSWERED = ("content-type", "cache-control", "retry-after", "x-accel-buffering")


async def forwarded(request: Request, api: ApiAddress, body: bytes, above: int) -> Response:
    """Return the answer of an API; its path is what follows so many parts of the request's.

    Raises as ``passed_on``.
    """
    # As it was asked, escapes and all.
    raw = request.scope["raw_path"].decode("ascii").split("/", above)[above]
    asked = f"/{raw}?{request.url.query}".rstrip("?")
    return await run_in_threadpool(passed_on, api, request.method, asked, request.headers, body)


def passed_on(
    api: ApiAddress, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> Response:
    """Return the scheduler's answer. Raises OSError, HTTPException where there is none."""
    sent = {name: headers[name] for name in _ASKED if name in headers}
    if api.token:
        sent["authorization"] = f"Bearer {api.token}"
    connection = connection_to(api, _SECONDS)
    try:
        connection.request(method, f"{api.prefix}{path}", body or None, sent)
        answer = connection.getresponse()
        kept = {name: value for name in _ANSWERED if (value := answer.getheader(name)) is not None}
        if answer.getheader("content-type", "").startswith("text/event-stream"):
            return StreamingResponse(_pieces(connection, answer), answer.status, kept)
        text = answer.read()
    except BaseException:
        connection.close()
        raise
    connection.close()
    # The token is ours: a scheduler that refuses it has nothing to ask the browser for.
    status = 502 if answer.status == 401 else answer.status
    return Response(text, status, kept)


def _pieces(
    connection: http.client.HTTPConnection, answer: http.client.HTTPResponse
) -> Iterator[bytes]:
    try:
        while piece := answer.read1(_PIECE_BYTES):
            yield piece
    except (OSError, http.client.HTTPException):
        # The scheduler has ended: so does the stream, and the page asks again.
        return
    finally:
        connection.close()
