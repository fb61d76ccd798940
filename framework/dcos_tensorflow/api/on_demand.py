"""The API of which only the socket is there until somebody asks.

Used by ``cli.serving.served_job``. What answers is a web framework, an application and their
libraries: a tenth of a second that a job's start is not kept waiting for, and that a job of a
second never needs. Whoever asks first waits that long.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from dcos_tensorflow.network.listening import address_of, listening_at

if TYPE_CHECKING:
    from dcos_tensorflow.api.server import ApiServer

log = logging.getLogger(__name__)


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
        if self._listening is None:
            raise AssertionError("start comes first")
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            asked = [key.fileobj for key, _ in selector.select()]
        if self._stopped in asked:
            return
        try:
            self._server = self._serve(self._listening)
        except Exception:
            # Whoever asks is refused and does not wait for ever, and the job goes on.
            log.exception("the API cannot be served")
            self._listening.close()
