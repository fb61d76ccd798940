"""A web server of a test's own, on a free loopback port: it says nothing and ends with the test."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """What a test's handler begins with."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answer whole; the names of headers are written with ``_`` for their hyphens."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Files(Handler, SimpleHTTPRequestHandler):
    """The files of a folder."""


@contextmanager
def served(handler: Callable[..., Any], tls: SSLContext | None = None) -> Iterator[str]:
    """Answer by a handler until the end of the block; yield HOST:PORT."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def served_folder(folder: Path, handler: Callable[..., Any] = Files) -> Iterator[str]:
    """Serve a folder's files until the end of the block; yield its URL."""
    with served(functools.partial(handler, directory=str(folder))) as address:
        yield f"http://{address}"
