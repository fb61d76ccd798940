"""Serves an ASGI application by uvicorn, in a thread of its own.

Used by ``api.server`` and by the local DC/OS. It installs no signal handler (those are the command
line's) and logs nothing per request. The socket is bound before the thread starts, so that a port
that is taken is an error where it can be handled, and the address can be told before anybody is
answered.
"""

from __future__ import annotations

import asyncio
import socket
import threading

import uvicorn
from starlette.types import ASGIApp

_START_SECONDS = 10.0


class ServerNotStarted(OSError):
    """Nothing could be served at the wanted address; the text says why."""


class AsgiServer:
    """One application at one address. ``bind``, ``serve`` and ``stop`` are called once each.

    ``what`` is served, for messages: ``the API``. ``grace_seconds`` is how long requests under way
    may take to end when the server stops.
    """

    def __init__(self, what: str, host: str, port: int, *, grace_seconds: int) -> None:
        self.address = ""
        self._what = what
        self._host = host
        self._port = port
        self._grace_seconds = grace_seconds
        self._server: _Server | None = None
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def bind(self) -> str:
        """Take the address and return it as ``host:port``. Raises ServerNotStarted."""
        self._socket = _bound(self._what, self._host, self._port)
        host, port = self._socket.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return self.address

    def serve(self, app: ASGIApp, thread_name: str) -> None:
        """Answer at the address that was bound. Raises ServerNotStarted."""
        if self._socket is None:
            raise AssertionError("bind comes first")
        server = self._server = _Server(
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
                # Nobody may say that the request is another's: who asks is what the kernel says.
                proxy_headers=False,
                timeout_graceful_shutdown=self._grace_seconds,
            )
        )
        self._thread = threading.Thread(
            target=server.serve_at, args=(self._socket,), name=thread_name, daemon=True
        )
        self._thread.start()
        server.ready.wait(_START_SECONDS)
        if not server.started:
            self.stop()
            raise ServerNotStarted(f"{self._what} at {self.address} did not begin to serve")

    def stop(self) -> None:
        """Stop serving; returns when the thread has ended. Harmless when it never started."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        if self._socket is not None:
            self._socket.close()


class _Server(uvicorn.Server):
    """uvicorn, telling when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    def serve_at(self, bound: socket.socket) -> None:
        """Serve until ``should_exit`` is set."""
        try:
            self.run(sockets=[bound])
        finally:
            # Whoever waits for a start that failed need not wait any longer.
            self.ready.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        # Only now are connections answered; the socket alone would merely queue them.
        asyncio.get_running_loop().call_soon(self.ready.set)


def _bound(what: str, host: str, port: int) -> socket.socket:
    """Return a bound socket. Raises ServerNotStarted naming the address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise ServerNotStarted(f"{what} can not listen on {host}: {error}") from error
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        # Until somebody listens a second process could bind the same port.
        bound.listen()
    except OSError as error:
        bound.close()
        reason = error.strerror or str(error)
        raise ServerNotStarted(f"{what} can not listen on {host}:{port}: {reason}") from error
    return bound
