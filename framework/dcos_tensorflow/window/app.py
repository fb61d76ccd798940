"""The window's ASGI application: the list of services, and each one's dashboard below it.

Made by ``window.process``. A request is answered to a browser that is logged in (``login``), and
none that another page or another name of this machine has sent (``untrusted_input.other_pages``).
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from dcos_tensorflow.api.pages import FOLDER
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.served_queue import served_queue
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.window import forwarding, kept, services
from dcos_tensorflow.window.boards import Boards, NoBoard
from dcos_tensorflow.window.login import SESSION_SECONDS, Login
from untrusted_input.other_pages import is_from_another_page, names_an_address
from untrusted_input.page_files import HEADERS, files

COOKIE = "dcos_tensorflow_window"
#: No order of the dashboard is longer.
_MOST_BODY = 1_000_000
#: How often a stream of a service that no scheduler serves looks whether one does; seconds.
_LOOK_SECONDS = 2.0
#: How often it gives a sign of life, in looks.
_SIGN_OF_LIFE = 7

_CLOSED = (
    "This page is for the browser that dcos-tensorflow open has logged in; its link works once."
    " Run dcos-tensorflow open again."
)

Endpoint = Callable[[Request], Awaitable[Response]]


class Window:
    """The routes over one work directory. ``asked_at`` is when a browser asked last (monotonic)."""

    def __init__(self, work: WorkDirectory, login: Login, port: int) -> None:
        self.asked_at = time.monotonic()
        self._work = work
        self._login = login
        self.boards = Boards()
        # Cookies know no ports: another window of this machine has another name.
        self._cookie = f"{COOKIE}_{port}"

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/links", self._link, methods=["POST"]),
                Route("/enter", self._guarded(self._enter, logged_in=False)),
                Route("/", self._guarded(self._page("services.html"))),
                Route("/dashboard/{file:path}", self._guarded(self._file, logged_in=False)),
                Route("/services", self._guarded(self._services)),
                Route("/queue/", self._guarded(self._page("queue.html"))),
                Route("/queue/dashboard/{file:path}", self._guarded(self._file)),
                Route("/queue/{path:path}", self._guarded(self._queue), methods=["GET", "POST"]),
                Route("/services/{name}/", self._guarded(self._page("index.html"))),
                Route("/services/{name}/dashboard/{file:path}", self._guarded(self._file)),
                Route("/services/{name}/tensorboard", self._guarded(self._board), methods=["POST"]),
                Route(
                    "/services/{name}/{path:path}",
                    self._guarded(self._service),
                    methods=["GET", "POST"],
                ),
            ]
        )

    def _guarded(self, endpoint: Endpoint, *, logged_in: bool = True) -> Endpoint:
        async def guarded(request: Request) -> Response:
            headers = request.headers
            if not names_an_address(headers) or is_from_another_page(request.method, headers):
                return _refused("a page of another site may read and order nothing here")
            if logged_in and not self._login.is_session(request.cookies.get(self._cookie, "")):
                return _refused(_CLOSED)
            self.asked_at = time.monotonic()
            return await endpoint(request)

        return guarded

    async def _link(self, request: Request) -> Response:
        """Give the holder of the key a link that works once."""
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not self._login.is_key(given):
            return _refused("the window's key is another one")
        return JSONResponse({"path": f"/enter?link={self._login.new_link()}"})

    async def _enter(self, request: Request) -> Response:
        session = self._login.enter(request.query_params.get("link", ""))
        if session is None:
            return _refused(_CLOSED)
        service = request.query_params.get("service", "")
        known = service in registry.service_names(self._work)
        answer = RedirectResponse(f"/services/{service}/" if known else "/", 303, HEADERS)
        answer.set_cookie(
            self._cookie, session, int(SESSION_SECONDS), httponly=True, samesite="strict"
        )
        return answer

    def _page(self, name: str) -> Endpoint:
        async def page(request: Request) -> Response:
            return _static(name)

        return page

    async def _file(self, request: Request) -> Response:
        return _static(request.path_params["file"])

    async def _services(self, request: Request) -> Response:
        told = await run_in_threadpool(services.found, self._work)
        queue = await run_in_threadpool(served_queue, self._work)
        return _json({"services": told, "queue": queue.name if queue is not None else None})

    async def _board(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in registry.service_names(self._work):
            return _json({"message": f"there is no {request.url.path}"}, 404)
        try:
            service = self._work.service(name)
            address = await run_in_threadpool(self.boards.address, service)
        except NoBoard as error:
            return _json({"message": str(error)}, 409)
        return _json({"address": address})

    async def _service(self, request: Request) -> Response:
        name, path = request.path_params["name"], request.path_params["path"]
        if not path.startswith(("v1/", "v2/")) or name not in registry.service_names(self._work):
            return _json({"message": f"there is no {request.url.path}"}, 404)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _MOST_BODY:
                return _json({"message": f"the body is longer than {_MOST_BODY} bytes"}, 400)
        directory = self._work.service(name)
        client = await run_in_threadpool(services.scheduler_of, directory)
        if client is None:
            return await self._kept(request, directory, path, body)
        return await self._passed_on(request, client.api, body, 3)

    async def _queue(self, request: Request) -> Response:
        """Pass a question on to the queue of this machine, as its operator's."""
        found = await run_in_threadpool(served_queue, self._work)
        if found is None:
            return _json({"message": "no queue runs on this machine"}, 503)
        return await self._passed_on(request, found.address, b"", 2)

    async def _passed_on(
        self, request: Request, api: ApiAddress, body: bytes, above: int
    ) -> Response:
        """Return the answer of an API; its path is what follows so many parts of the request's."""
        # As it was asked, escapes and all.
        raw = request.scope["raw_path"].decode("ascii").split("/", above)[above]
        asked = f"/{raw}?{request.url.query}".rstrip("?")
        try:
            return await run_in_threadpool(
                forwarding.passed_on, api, request.method, asked, request.headers, body
            )
        except (OSError, http.client.HTTPException) as error:
            return _json({"message": f"it does not answer: {error}"}, 503)

    async def _kept(
        self, request: Request, directory: ServiceDirectory, path: str, body: bytes
    ) -> Response:
        try:
            if request.method != "GET":
                return _json(await run_in_threadpool(kept.ordered, directory, path, body))
            if path == "v1/events":
                shown = await run_in_threadpool(kept.watched, directory)
                return StreamingResponse(
                    _stream(directory, shown), media_type="text/event-stream", headers=_NO_STORE
                )
            query = dict(request.query_params)
            return _json(await run_in_threadpool(kept.answer, directory, path, query))
        except kept.Refused as error:
            return _json({"message": str(error)}, error.status)
        except kept.NotKept as error:
            return _json({"message": str(error)}, 404)


_NO_STORE = {"cache-control": "no-store"}


async def _stream(directory: ServiceDirectory, shown: dict[str, Any]) -> AsyncIterator[str]:
    """Yield what was shown last; end once a scheduler serves the service, so that it is asked."""
    yield f"event: whole\ndata: {json.dumps(shown)}\n\n"
    looks = 0
    while await run_in_threadpool(services.scheduler_of, directory) is None:
        await asyncio.sleep(_LOOK_SECONDS)
        looks += 1
        if looks % _SIGN_OF_LIFE == 0:
            yield ": \n\n"


def _static(name: str) -> Response:
    content, media_type = files(FOLDER).get(name, (b"", ""))
    if not media_type:
        return Response("there is no such file", 404, HEADERS, media_type="text/plain")
    return Response(content, 200, HEADERS, media_type=media_type)


def _json(body: Any, status: int = 200) -> Response:
    return JSONResponse(body, status, _NO_STORE)


def _refused(why: str) -> Response:
    return _json({"message": why}, 403)
