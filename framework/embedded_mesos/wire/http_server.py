"""The HTTP server of master and agents: threads, and answers.

Python's own server: byte-level faults need the bare socket.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import json
import os
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from untrusted_input.other_pages import is_from_another_page, names_an_address
from untrusted_input.seldom import Seldom

#: Bodies larger than this are refused: nothing a scheduler says is near it.
MAX_BODY_BYTES = 64 * 1024 * 1024
#: Of those whom we do not know nothing is near this.
MAX_STRANGERS_BODY_BYTES = 64 * 1024
#: A client says who it is within this time (seconds). Known ones keep their connections.
STRANGERS_SECONDS = 20.0
#: With more connections than this, the oldest of those whom we do not know goes. Each is a file
#: descriptor, and a thread.
MOST_CONNECTIONS = 500
#: The line before a chunk: its size, and extensions that no client sends.
_MAX_CHUNK_LINE_BYTES = 1024
_MAX_DIGITS = 18
#: What of a file is in memory at once.
_PIECE_BYTES = 1 << 20
_SELDOM = Seldom()
#: What Mesos answers to everybody.
OPEN = frozenset({"/health", "/version"})


class BodyTooLong(Exception):
    """A request's body is longer than it may be."""


class BadLength(Exception):
    """What a request says of the length of its body is no length."""


class Server(ThreadingHTTPServer):
    """An HTTP server on one address whose open connections can all be ended.

    Connections that ask for nothing hold it up for nothing: see the constants above.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        #: In the order they came; whether a known client is at its end.
        self._connections: dict[socket.socket, bool] = {}
        self._connections_lock = threading.Lock()
        super().__init__(address, handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )

    def start(self) -> None:
        """Serve in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and end every connection."""
        # A thread that waits for the next connection looks up at once, without a poll.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RD)
        self.shutdown()
        self.server_close()
        self._thread.join()

    def server_close(self) -> None:
        """Close the listening socket, then wait for the connections' threads."""
        self.end_connections()
        super().server_close()

    def end_connections(self) -> None:
        """End every open connection."""
        with self._connections_lock:
            connections = list(self._connections)
        for connection in connections:
            _end(connection)

    def note_known(self, connection: socket.socket) -> None:
        """Note that a connection is that of a known client."""
        with self._connections_lock:
            self._connections[connection] = True

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note the connection before its thread starts."""
        with self._connections_lock:
            self._connections[request] = False
            if len(self._connections) > MOST_CONNECTIONS:
                _end(next((c for c, known in self._connections.items() if not known), request))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection."""
        with self._connections_lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a client that went away be; anything else is a defect and is shown, not too often."""
        import sys

        error = sys.exception()
        if isinstance(error, ConnectionError | TimeoutError):
            return
        if _SELDOM.may_say(type(error).__name__) is None:
            return
        super().handle_error(request, client_address)


def _length(text: str, base: int) -> int:
    """Return a length. Raises BadLength: ``int`` takes signs too, and to read -1 is to read all."""
    if not (text.isascii() and text.isalnum() and len(text) <= _MAX_DIGITS):
        raise BadLength
    try:
        return int(text, base)
    except ValueError:
        raise BadLength from None


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    """Answers as libprocess does: HTTP/1.1, keep-alive, no chatter on stderr."""

    protocol_version = "HTTP/1.1"
    #: Without it, small answers wait for the client's delayed ACK (Nagle).
    disable_nagle_algorithm = True
    #: Until the client is known: then the connection may rest for as long as it likes.
    timeout = STRANGERS_SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def version_string(self) -> str:
        """Name the server."""
        return "embedded-mesos"

    def welcome(self) -> None:
        """Let the client have the connection for good: it is known."""
        self.connection.settimeout(None)
        if isinstance(self.server, Server):
            self.server.note_known(self.connection)

    def body(self, most_bytes: int = MAX_BODY_BYTES) -> bytes:
        """Return the request's body.

        Raises BodyTooLong, before it is read where it says so, and BadLength.
        """
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._chunked_body(most_bytes)
        length = _length(self.headers.get("Content-Length") or "0", 10)
        if length > most_bytes:
            raise BodyTooLong
        return self.rfile.read(length)

    def _chunked_body(self, most_bytes: int) -> bytes:
        found = b""
        while True:
            line = self.rfile.readline(_MAX_CHUNK_LINE_BYTES).decode("latin-1")
            size = _length(line.partition(";")[0].strip(), 16)
            if len(found) + size > most_bytes:
                raise BodyTooLong
            found += self.rfile.read(size)
            self.rfile.readline(_MAX_CHUNK_LINE_BYTES)
            if size == 0:
                return found

    def refuse_body(self, error: BodyTooLong | BadLength) -> None:
        """Write why the body is not read, and end the connection."""
        self.close_connection = True
        text = "413 Payload Too Large." if isinstance(error, BodyTooLong) else "400 Bad Request."
        self.answer(int(text[:3]), text, "text/plain; charset=utf-8")

    def is_foreign(self) -> bool:
        """Say whether a page of another site may have sent this, and answer it if so.

        A browser adds to each request to us what its user has logged in with here.
        """
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not is_from_another_page(self.command, headers) and names_an_address(headers):
            return False
        self.close_connection = True
        self.answer(403, "403 Forbidden.", "text/plain; charset=utf-8")
        return True

    def principal(self, credentials: Mapping[str, str] | None) -> str | None:
        """Return who asks, by HTTP basic authentication; None for an unknown caller."""
        header = self.headers.get("Authorization", "")
        if credentials is None or not header.startswith("Basic "):
            return None
        try:
            given = base64.b64decode(header[len("Basic ") :], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
        name, _, secret = given.partition(":")
        known = credentials.get(name)
        if known is not None and hmac.compare_digest(known.encode(), secret.encode()):
            return name
        return None

    def unauthorized(self, realm: str) -> None:
        """Write that only who is known may ask."""
        headers = {"WWW-Authenticate": f'Basic realm="{realm}"'}
        self.answer(401, "401 Unauthorized.", "text/plain; charset=utf-8", headers)

    def answer(
        self,
        status: int,
        body: str | bytes = "",
        content_type: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Write a whole answer."""
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        if content_type is not None:
            self.send_header("Content-Type", content_type)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer_file(self, path: Path) -> None:
        """Write a file as something to be kept, piece by piece: it may be larger than the memory.

        What is added to it meanwhile is left out.
        """
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            name = path.name.encode("ascii", "replace").decode().replace('"', "?")
            self.send_header("Content-Disposition", f'attachment; filename="{name}"')
            self.send_header("Content-Length", str(left))
            self.end_headers()
            while left and (piece := file.read(min(left, _PIECE_BYTES))):
                self.wfile.write(piece)
                left -= len(piece)
        if left:
            # It has become shorter: what was promised cannot be said any more.
            self.close_connection = True

    def answer_json(self, body: object, status: int = 200) -> None:
        """Write JSON."""
        self.answer(status, json.dumps(body, separators=(",", ":")), "application/json")
