"""The window's ASGI application: the list of services, and each one's dashboard below it.

Made by ``window.process`` for one user, by ``window.host`` for every browser with the operator's
token. A request is answered to a browser that is logged in (``login``), and none that another page
has sent (``untrusted_input.other_pages``), or, where no token is asked for, another name of this
machine.
"""

from __future__ import annotations

import asyncio
import functools
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

from dcos_tensorflow.api.callers.access import Access, AccessRefused, Right
from dcos_tensorflow.api.pages import page_file
from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.window import forwarding
from dcos_tensorflow.window.boards import NoBoard
from dcos_tensorflow.window.login import SESSION_SECONDS, Login
from dcos_tensorflow.window.services import NotKept, Refused, Services
from untrusted_input.bounded_body import BodyTooLong, body_of
from untrusted_input.other_pages import is_from_another_page, names_an_address
from untrusted_input.page_files import HEADERS

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
    """The routes over some services. ``asked_at`` is when a browser asked last (monotonic).

    ``access`` lets in who has the operator's token, too, by whatever name this machine is asked.
    With ``tls`` the cookie goes back by TLS alone.
    """

    def __init__(
        self,
        services: Services,
        login: Login,
        port: int,
        access: Access | None = None,
        *,
        tls: bool = False,
    ) -> None:
        self.asked_at = time.monotonic()
        self._shown = services
        self._login = login
        self._access = access
        self._tls = tls
        # Cookies know no ports: another window of this machine has another name.
        self._cookie = f"{COOKIE}_{port}"

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/links", self._link, methods=["POST"]),
                Route("/enter", self._guarded(self._enter, logged_in=False)),
                Route("/login", self._guarded(self._logged_in), methods=["POST"]),
                Route("/", self._guarded(self._page("services.html"))),
                Route("/dashboard/{file:path}", self._guarded(self._file, logged_in=False)),
                Route("/services", self._guarded(self._services)),
                Route("/queue/", self._guarded(self._page("queue.html"))),
                Route("/queue/dashboard/{file:path}", self._guarded(self._file, logged_in=False)),
                Route("/queue/{path:path}", self._guarded(self._queue), methods=["GET", "POST"]),
                Route("/services/{name}/", self._guarded(self._page("index.html"))),
                Route(
                    "/services/{name}/dashboard/{file:path}",
                    self._guarded(self._file, logged_in=False),
                ),
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
            is_named = self._access is not None or names_an_address(headers)
            if not is_named or is_from_another_page(request.method, headers):
                return _refused("a page of another site may read and order nothing here")
            if logged_in and not self._login.is_session(request.cookies.get(self._cookie, "")):
                refusal = self._not_let_in(request)
                if refusal is not None:
                    return refusal
            self.asked_at = time.monotonic()
            try:
                return await endpoint(request)
            except CliError as error:
                # The state store is away.
                return _json({"message": str(error)}, 503)

        return guarded

    def _not_let_in(self, request: Request) -> Response | None:
        """Return the answer to a request without a session; None where it has the token."""
        if self._access is None:
            return _refused(_CLOSED)
        try:
            self._access.admit(request, Right.OPERATE)
        except AccessRefused as error:
            is_page = request.method == "GET" and request.url.path.endswith("/")
            if is_page and "authorization" not in request.headers:
                return page_file("door.html", 401)
            return _json({"message": str(error)}, error.refusal.status)
        return None

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
        known = await run_in_threadpool(self._shown.has, service)
        answer = RedirectResponse(f"/services/{service}/" if known else "/", 303, HEADERS)
        return self._with_cookie(answer, session)

    async def _logged_in(self, request: Request) -> Response:
        """Give a browser whose user has said the token a session; ``_guarded`` has looked at it."""
        return self._with_cookie(_json({}), self._login.new_session())

    def _with_cookie(self, answer: Response, session: str) -> Response:
        answer.set_cookie(
            *(self._cookie, session, int(SESSION_SECONDS)),
            secure=self._tls,
            httponly=True,
            samesite="strict",
        )
        return answer

    def _page(self, name: str) -> Endpoint:
        async def page(request: Request) -> Response:
            return page_file(name)

        return page

    async def _file(self, request: Request) -> Response:
        return page_file(request.path_params["file"])

    async def _services(self, request: Request) -> Response:
        told = await run_in_threadpool(self._shown.found)
        queue = await run_in_threadpool(self._shown.queue)
        return _json({"services": told, "queue": queue.name if queue is not None else None})

    async def _board(self, request: Request) -> Response:
        name = request.path_params["name"]
        if not await run_in_threadpool(self._shown.has, name):
            return _json({"message": f"there is no {request.url.path}"}, 404)
        try:
            address = await run_in_threadpool(self._shown.board, name)
        except NoBoard as error:
            return _json({"message": str(error)}, 409)
        return _json({"address": address})

    async def _service(self, request: Request) -> Response:
        name, path = request.path_params["name"], request.path_params["path"]
        is_known = path.startswith(("v1/", "v2/")) and await run_in_threadpool(
            self._shown.has, name
        )
        if not is_known:
            return _json({"message": f"there is no {request.url.path}"}, 404)
        try:
            body = await body_of(request, _MOST_BODY)
        except BodyTooLong as error:
            return _json({"message": str(error)}, 400)
        is_order = request.method != "GET"
        api = await run_in_threadpool(functools.partial(self._shown.api, name, now=is_order))
        if api is None:
            return await self._kept(request, name, path, body)
        return await self._passed_on(request, api, body, 3)

    async def _queue(self, request: Request) -> Response:
        """Pass a question on to the queue of this machine, as its operator's."""
        found = await run_in_threadpool(self._shown.queue)
        if found is None:
            return _json({"message": "no queue runs on this machine"}, 503)
        return await self._passed_on(request, found.address, b"", 2)

    async def _passed_on(
        self, request: Request, api: ApiAddress, body: bytes, above: int
    ) -> Response:
        try:
            return await forwarding.forwarded(request, api, body, above)
        except (OSError, http.client.HTTPException) as error:
            return _json({"message": f"it does not answer: {error}"}, 503)

    async def _kept(self, request: Request, name: str, path: str, body: bytes) -> Response:
        shown = self._shown
        try:
            if request.method != "GET":
                return _json(await run_in_threadpool(shown.ordered, name, path, body))
            if path == "v1/events":
                watched = await run_in_threadpool(shown.watched, name)
                return StreamingResponse(
                    self._stream(name, watched), media_type="text/event-stream", headers=_NO_STORE
                )
            query = dict(request.query_params)
            return _json(await run_in_threadpool(shown.answer, name, path, query))
        except Refused as error:
            return _json({"message": str(error)}, error.status)
        except NotKept as error:
            return _json({"message": str(error)}, 404)

    async def _stream(self, name: str, shown: dict[str, Any]) -> AsyncIterator[str]:
        """Yield what was shown last; end once a scheduler serves the service: it is to be asked."""
        yield _whole(shown)
        looks = 0
        while (now := await run_in_threadpool(self._still_kept, name, shown)) is not None:
            if now != shown:
                shown = now
                yield _whole(shown)
            await asyncio.sleep(_LOOK_SECONDS)
            looks += 1
            if looks % _SIGN_OF_LIFE == 0:
                yield ": \n\n"

    def _still_kept(self, name: str, shown: dict[str, Any]) -> dict[str, Any] | None:
        """Return what is shown now; None once a scheduler is to be asked, or the store is away."""
        try:
            if self._shown.api(name) is not None:
                return None
            # What was shown last of a job that has ended does not change.
            return shown if shown["kept"] is True else self._shown.watched(name)
        except (CliError, NotKept):
            # The page asks again, and is told.
            return None


def _whole(shown: dict[str, Any]) -> str:
    return f"event: whole\ndata: {json.dumps(shown)}\n\n"


_NO_STORE = {"cache-control": "no-store"}


def _json(body: Any, status: int = 200) -> Response:
    return JSONResponse(body, status, _NO_STORE)


def _refused(why: str) -> Response:
    return _json({"message": why}, 403)
