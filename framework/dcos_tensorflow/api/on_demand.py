"""The API of which only the socket is there until somebody asks.

Used by ``cli.serving.served_job``. What answers is a web framework, an application and their
libraries: a tenth of a second that a job's start is not kept waiting for, and that a job of a
second never needs. Whoever asks first waits that long.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from untrusted_input.listening import address_of, listening_at

if TYPE_CHECKING:
    from dcos_tensorflow.api.server import ApiServer

log = logging.getLogger(__name__)

#: What is read of a request that gets no answer but that there is none.
_REQUEST_SECONDS, _REQUEST_BYTES = 1.0, 64 * 1024


class ApiOnDemand:
    """The API at one address. ``start`` and ``stop`` are called once each.

    ``serve`` makes it answer at a socket that listens, which is then the server's to close; it is
    called at the first connection, or ``at_once``, and raises ServerNotStarted.
    """

    def __init__(
        self,
        serve: Callable[[socket.socket], ApiServer],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        at_once: bool = False,
    ) -> None:
        #: ``host:port`` as it was bound; empty before the start.
        self.address = ""
        self._serve = serve
        self._host, self._port, self._at_once = host, port, at_once
        self._server: ApiServer | None = None
        self._listening: socket.socket | None = None
        self._thread: threading.Thread | None = None
        #: Closing one end wakes whoever waits at the other.
        self._stop, self._stopped = socket.socketpair()

    def start(self) -> str:
        """Bind and return ``address``. Raises ServerNotStarted."""
        self._listening = listening_at("the API", self._host, self._port)
        self.address = address_of(self._listening)
        if self._at_once:
            self._server = self._serve(self._listening)
            return self.address
        self._thread = threading.Thread(target=self._wait, name="api-on-demand", daemon=True)
        self._thread.start()
        return self.address

    def stop(self) -> None:
        """Stop serving; returns when nobody is answered any more. Harmless when never started."""
        self._stop.close()
        if self._thread is not None:
            self._thread.join()
        if self._server is not None:
            self._server.stop()
        elif self._listening is not None:
            self._listening.close()
        self._stopped.close()

    def _wait(self) -> None:
        listening = self._listening
        if listening is None:
            raise AssertionError("start comes first")
        if not self._is_asked(listening):
            return
        try:
            self._server = self._serve(listening)
        except Exception as error:
            # The job goes on, and whoever asks is told.
            log.exception("the API cannot be served")
            why = f"the API cannot be served: {error or type(error).__name__}"
            while listening.fileno() >= 0 and self._is_asked(listening):
                _refuse(listening, why)

    def _is_asked(self, listening: socket.socket) -> bool:
        """Wait for somebody who connects; False at the end."""
        with selectors.DefaultSelector() as selector:
            selector.register(listening, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            return all(key.fileobj is listening for key, _ in selector.select())


def _refuse(listening: socket.socket, why: str) -> None:
    """Answer whoever connects next with ``why`` there is no other answer."""
    text = f"{why}\n".encode()
    head = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nConnection: close"
    # Whoever does not wait for the answer needs none.
    with contextlib.suppress(OSError):
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(_REQUEST_SECONDS)
            connection.recv(_REQUEST_BYTES)
            connection.sendall(f"{head}\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
