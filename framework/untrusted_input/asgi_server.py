"""Serves an ASGI application by uvicorn, in a thread of its own.

Used by the service's API and by the local DC/OS. It installs no signal handler (those are the
command line's) and logs nothing per request. The socket is bound before the thread starts, so that
a port that is taken is an error where it can be handled, and the address can be told before anybody
is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import threading
from email.utils import formatdate
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from untrusted_input.listening import ServerNotStarted, address_of, listening_at
from untrusted_input.server_tls import ServerTls

#: The name in a request's scope of the ``asyncio.Event`` that says that the server ends: answers
#: that have no end of their own end then.
ENDING = "asgi_server.ending"
#: So long a client may rest between two requests on one connection, as with others' servers. The
#: clients of Mesos and DC/OS ask again every few seconds, and take the end of a connection for one
#: of the service.
REST_SECONDS = 75
_START_SECONDS = 10.0
#: From accept to ``connection_made`` (asyncio's selector_events: a task, then a call).
_ACCEPT_TURNS = 3


class AsgiServer:
    """One application at one address. ``bind``, ``serve`` and ``stop`` are called once each.

    ``what`` is served, for messages: ``the API``. ``grace_seconds`` is how long requests under way
    may take to end when the server stops. With ``tls`` no client is answered without.
    """

    def __init__(
        self,
        what: str,
        host: str,
        port: int,
        *,
        grace_seconds: int = 2,
        tls: ServerTls | None = None,
    ) -> None:
        self.address = ""
        self._what = what
        self._host = host
        self._port = port
        self._grace_seconds = grace_seconds
        self._tls = tls
        self._server: _Server | None = None
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def bind(self) -> str:
        """Take the address and return it as ``host:port``. Raises ServerNotStarted."""
        self._socket = listening_at(self._what, self._host, self._port)
        self.address = address_of(self._socket)
        return self.address

    def serve(self, app: ASGIApp, thread_name: str) -> None:
        """Answer at the address that was bound. Raises ServerNotStarted."""
        if self._socket is None:
            raise AssertionError("bind comes first")

        async def told_of_the_end(scope: Scope, receive: Receive, send: Send) -> None:
            scope[ENDING] = server.ending
            await app(scope, receive, send)

        server = self._server = _Server(
            uvicorn.Config(
                told_of_the_end,
                loop="asyncio",
                http=self._protocol(),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                # No header may say that the request is another's: who asks is what the kernel says.
                proxy_headers=False,
                timeout_graceful_shutdown=self._grace_seconds,
                timeout_keep_alive=REST_SECONDS,
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

    def _protocol(self) -> Any:
        """Return what makes a connection of uvicorn's arguments."""
        from untrusted_input.bounded_connection import BoundedConnection, TlsConnection

        if self._tls is None:
            return BoundedConnection
        return functools.partial(TlsConnection, self._tls.newest)

    def stop(self) -> None:
        """Stop serving; returns when the thread has ended. Harmless when it never started."""
        if self._server is not None and self._thread is not None:
            self._server.end()
            self._thread.join()
        if self._socket is not None:
            self._socket.close()


class _Dated(ServerState):
    """What uvicorn's connections share; the header Date is made for each answer.

    uvicorn's own is made each second, asked for or not: fifty servers that rest would not.
    """

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"date", formatdate(usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, given: list[tuple[bytes, bytes]]) -> None:
        """Take nothing: uvicorn sets what it has made."""


class _Server(uvicorn.Server):
    """uvicorn, telling when it serves, and ending when it is told to and not when it looks next."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = _Dated()
        self.ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Set when serving is to end; None before the start.
        self.ending: asyncio.Event | None = None

    def serve_at(self, bound: socket.socket) -> None:
        """Serve until ``end`` is called."""
        try:
            self.run(sockets=[bound])
        finally:
            # A caller that waits for a start that failed need not wait any longer.
            self.ready.set()

    def end(self) -> None:
        """End serving. Callable from any thread."""
        self.should_exit = True
        if self._loop is not None and self.ending is not None:
            with contextlib.suppress(RuntimeError):  # The loop has ended meanwhile.
                self._loop.call_soon_threadsafe(self.ending.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=sockets)
        # Only now are connections answered; the socket alone would merely queue them.
        self._loop.call_soon(self.ready.set)

    async def main_loop(self) -> None:
        if self.ending is None:
            raise AssertionError("startup comes first")
        # ``end`` may have come before there was an event to be set.
        if not self.should_exit:
            await self.ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A client accepted just now is a connection, which can be closed, some turns of the loop
        # later: a server that was closed in between would leave the socket open (CPython 3.11).
        loop = asyncio.get_running_loop()
        for server in self.servers:
            for listening in server.sockets:
                loop.remove_reader(listening)
        for _ in range(_ACCEPT_TURNS):
            await asyncio.sleep(0)
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        # No client is connected that would need the moment that uvicorn gives.
        for server in self.servers:
            server.close()
            await server.wait_closed()
