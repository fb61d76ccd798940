"""The dashboard's files, as a browser asks for them. Mounted by ``api.app``.

They hold nothing of the service, and so need no token: whatever a page shows it asks the API for.
The page at ``/`` is answered to who takes HTML alone. All its addresses are relative, so that it
works under whatever prefix a proxy puts in front of it.
"""

from __future__ import annotations

import functools
from importlib import resources

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

#: The folder of the files, and the first part of their paths.
FOLDER = "dashboard"
_MEDIA_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "txt": "text/plain",
}
#: Scripts and styles are those of the package and no others; nobody may show the page in a frame.
#: The browser asks each time whether a file is still the same: a new release is seen at once.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


@functools.cache
def files() -> dict[str, tuple[bytes, str]]:
    """Return content and media type of every file by its name."""
    folder = resources.files("dcos_tensorflow.api") / FOLDER
    return {
        file.name: (file.read_bytes(), _MEDIA_TYPES[file.name.rpartition(".")[2]])
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _MEDIA_TYPES
    }


def routes() -> list[BaseRoute]:
    """Return the page's routes, to stand before those of the API."""
    return [Route("/", _page), Mount(f"/{FOLDER}", app=_file)]


def _page(request: Request) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    return _answer("index.html")


async def _file(scope: Scope, receive: Receive, send: Send) -> None:
    name = scope["path"].rpartition(f"/{FOLDER}/")[2]
    await _answer(name)(scope, receive, send)


def _answer(name: str) -> Response:
    content, media_type = files().get(name, (b"", ""))
    if not media_type:
        return Response("there is no such file", 404, HEADERS, media_type="text/plain")
    return Response(content, 200, HEADERS, media_type=media_type)
