"""The dashboard's files, as a browser asks for them. Mounted by ``api.app``.

They hold nothing of the service, and so need no token: a page asks the API for its content.
The page at ``/`` is for every client that takes HTML, or names no type. All its
addresses are relative, so that it works under any prefix of a proxy.
"""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from untrusted_input.page_files import HEADERS, files

#: The files; the folder's name is the first part of their paths.
FOLDER = Path(__file__).parent / "dashboard"


def routes() -> list[BaseRoute]:
    """Return the page's routes, to stand before those of the API."""
    return [Route("/", _page), Mount(f"/{FOLDER.name}", app=_file)]


def _page(request: Request) -> Response:
    accept = request.headers.get("accept", "*/*")
    if not any(kind in accept for kind in ("text/html", "*/*")):
        raise HTTPException(404)
    return page_file("index.html")


async def _file(scope: Scope, receive: Receive, send: Send) -> None:
    name = scope["path"].rpartition(f"/{FOLDER.name}/")[2]
    await page_file(name)(scope, receive, send)


def page_file(name: str, status: int = 200) -> Response:
    """Return a file of the dashboard, or that there is none."""
    content, media_type = files(FOLDER).get(name, (b"", ""))
    if not media_type:
        return Response("there is no such file", 404, HEADERS, media_type="text/plain")
    return Response(content, status, HEADERS, media_type=media_type)
