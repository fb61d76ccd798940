"""A connection to one of our ASGI servers that no client holds for nothing.

uvicorn gives a client as long as it likes to send a request, and takes as many connections as the
process has file descriptors for. Here a request is whole within a time, however slowly it drips,
and some of an answer is taken within a time, too. Where there are too many connections the one goes
that has kept us waiting for longest. A client that sends a request at once and reads is answered,
whatever others do. Used by ``asgi_server``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

#: A request has arrived after so long (seconds), or its connection ends. So it does where nothing
#: of an answer that the kernel keeps no more of is taken for so long.
REQUEST_SECONDS = 20.0
#: So many connections at once: viewers, tasks that fetch, tunnels. Each is a file descriptor.
MOST_CONNECTIONS = 500


class BoundedConnection(H11Protocol):
    """One connection."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        #: Until the request is whole, and until some of the answer is taken; None: no wait.
        self._late: asyncio.TimerHandle | None = None
        self._untaken: asyncio.TimerHandle | None = None
        #: Since when the client has kept us waiting, by the loop's clock: for a request, for the
        #: next one (uvicorn ends that rest), or to take an answer. None: it has not.
        self._waiting_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, and let another connection go where there are too many."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > MOST_CONNECTIONS:
            waiting = [
                (connection._waiting_since, number, connection)
                for number, connection in enumerate(self.connections)
                if isinstance(connection, BoundedConnection)
                and connection._waiting_since is not None
            ]
            if waiting:
                min(waiting, key=lambda one: one[:2])[-1]._give_up()

    def data_received(self, data: bytes) -> None:
        """Go on waiting as long as the request is not whole: more of it gives it no more time."""
        if self._late is None:
            # The client rested. From its first byte on a request has a time of its own.
            self._waiting_since = None
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._await_request()
        else:
            self._stop_waiting()

    def pause_writing(self) -> None:
        """Begin to wait for the answer to be taken."""
        super().pause_writing()
        self._note_waiting()
        self._untaken = self._in_time(self._await_reader)

    def _await_reader(self) -> None:
        self._untaken = self._in_time(self._await_reader)

    def resume_writing(self) -> None:
        """Go on: much of what was written has been taken."""
        self._stop_waiting_for_reader()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        self._stop_waiting_for_reader()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Let the client rest until its next request; what came of it already is part of it."""
        super().on_response_complete()
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            return
        if self.conn.trailing_data[0]:
            self._await_request()
        else:
            self._note_waiting()

    def _await_request(self) -> None:
        if self._late is None:
            self._note_waiting()
            self._late = self._in_time(self._await_request_still)

    def _note_waiting(self) -> None:
        if self._waiting_since is None:
            self._waiting_since = self.loop.time()

    def _await_request_still(self) -> None:
        self._late = self._in_time(self._await_request_still)

    def _in_time(self, go_on: Callable[[], None]) -> asyncio.TimerHandle:
        """Give up when the time is over; ``go_on`` where some of an answer was taken meanwhile."""
        unsent = self.transport.get_write_buffer_size()

        def over() -> None:
            if self.transport.get_write_buffer_size() < unsent:
                go_on()
            else:
                self._give_up()

        return self.loop.call_later(REQUEST_SECONDS, over)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
            self._waiting_since = None

    def _stop_waiting_for_reader(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None
            self._waiting_since = None

    def _give_up(self) -> None:
        self._stop_waiting()
        self._stop_waiting_for_reader()
        self.transport.abort()


class TlsConnection(BoundedConnection):
    """One connection that begins with a TLS handshake, which is part of its first request's time.

    It counts from the first byte on: a client that never ends a handshake delays no other either.
    """

    def __init__(
        self, context: Callable[[], ssl.SSLContext], *arguments: Any, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._context = context
        #: What came before the handshake's end was noticed here; None from then on.
        self._early: list[bytes] | None = []
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the handshake."""
        super().connection_made(transport)
        if not transport.is_closing():
            transport.pause_reading()
            self._handshake = self.loop.create_task(self._secure(transport))

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, which may have come along with the handshake's end."""
        if self._early is not None:
            self._early.append(data)
        else:
            super().data_received(data)

    async def _secure(self, bare: asyncio.Transport) -> None:
        try:
            secured = await self.loop.start_tls(
                bare,
                self,
                self._context(),
                server_side=True,
                ssl_handshake_timeout=REQUEST_SECONDS,
            )
        except OSError:
            # Who speaks no TLS, or goes.
            secured = None
        if secured is None or secured.is_closing():
            # asyncio does not tell of the end of a connection that was none yet.
            self.connection_lost(None)
            return
        self.transport, self.flow, self.scheme = secured, FlowControl(secured), "https"
        early, self._early = self._early or [], None
        for data in early:
            self.data_received(data)
