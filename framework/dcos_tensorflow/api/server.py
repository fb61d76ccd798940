"""Serves the API in a thread of its own. Used by ``scheduler.scheduler`` and by tests."""

from __future__ import annotations

from starlette.types import ASGIApp

from untrusted_input.asgi_server import AsgiServer
from untrusted_input.listening import ServerNotStarted
from untrusted_input.server_tls import ServerTls

__all__ = ["ApiServer", "ServerNotStarted"]


class ApiServer:
    """The API at one address. ``start`` and ``stop`` are called once each."""

    def __init__(
        self, app: ASGIApp, host: str = "127.0.0.1", port: int = 0, *, tls: ServerTls | None = None
    ) -> None:
        #: ``host:port`` as it was bound; empty before the start.
        self.address = ""
        self._app = app
        self._server = AsgiServer("the API", host, port, tls=tls)

    def start(self) -> str:
        """Bind, serve, and return ``address``. Raises ServerNotStarted."""
        self.address = self._server.bind()
        self._server.serve(self._app, "api-server")
        return self.address

    def stop(self) -> None:
        """Stop serving; returns when the thread has ended. Harmless when it never started."""
        self._server.stop()
