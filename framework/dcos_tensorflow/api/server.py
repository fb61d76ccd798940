"""Serves an ASGI application in a thread of its own.

Used by ``scheduler.Scheduler`` and by tests. It installs no signal handler (those are the command
line's) and logs nothing per request. The socket is bound before the thread starts, so that a port
that is taken is an error where it can be handled.
"""

from __future__ import annotations

import asyncio
import socket
import threading

import uvicorn
from starlette.types import ASGIApp

_START_SECONDS = 10.0
#: How long requests under way may take to end when the server stops.
_GRACE_SECONDS = 2


class ServerNotStarted(OSError):
    """The API could not be served at the wanted address; the text says why."""


class ApiServer:
    """One application at one address. ``start`` and ``stop`` are called once each."""

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host = host
        self._port = port
        self._server = _Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="api-server", daemon=True)

    def start(self) -> str:
        """Bind, serve, and return ``host:port`` as it was bound. Raises ServerNotStarted."""
        self._socket = _bound(self._host, self._port)
        host, port = self._socket.getsockname()[:2]
        self._thread.start()
        self._server.ready.wait(_START_SECONDS)
        if not self._server.started:
            self.stop()
            raise ServerNotStarted(f"the API at {host}:{port} did not begin to serve")
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def stop(self) -> None:
        """Stop serving; returns when the thread has ended. Harmless when it never started."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        if self._socket is not None:
            self._socket.close()

    def _run(self) -> None:
        if self._socket is None:
            raise AssertionError("the thread is started by start() only")
        try:
            self._server.run(sockets=[self._socket])
        finally:
            # Whoever waits for a start that failed need not wait any longer.
            self._server.ready.set()


class _Server(uvicorn.Server):
    """uvicorn, telling when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        # Only now are connections answered; the socket alone would merely queue them.
        asyncio.get_running_loop().call_soon(self.ready.set)


def _bound(host: str, port: int) -> socket.socket:
    """Return a bound socket. Raises ServerNotStarted naming the address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise ServerNotStarted(f"the API can not listen on {host}: {error}") from error
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        # Until somebody listens a second process could bind the same port.
        bound.listen()
    except OSError as error:
        bound.close()
        reason = error.strerror or str(error)
        raise ServerNotStarted(f"the API can not listen on {host}:{port}: {reason}") from error
    return bound
