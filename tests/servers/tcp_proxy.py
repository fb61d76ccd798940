"""A TCP proxy that tests put between two processes, to cut what is between them.

``cut`` breaks every connection and refuses new ones; ``hang`` lets nothing through without a
message, as a network does that loses every packet; ``heal`` lets everything through again, also
what waited. ``swallow`` breaks every connection and never answers the next, as a server does that
accepts them while it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from waiting import end_others


class TcpProxy:
    """Forwards from a free port of 127.0.0.1 to ``host:port``; a context manager."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._connections: set[asyncio.StreamWriter] = set()
        self._refusing = False
        self._swallowing = 0
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.address = ""

    def __enter__(self) -> TcpProxy:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Break what is there and refuse what comes."""
        self._call(self._cut())

    def hang(self) -> None:
        """Let nothing through, without a message."""
        self._call(self._hang())

    def swallow(self, count: int) -> None:
        """Break what is there, and let the next ``count`` connections wait for ever."""
        self._call(self._swallow(count))

    def heal(self) -> None:
        """Let everything through again."""
        self._call(self._heal())

    def _call(self, what) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _cut(self) -> None:
        self._refusing = True
        for writer in list(self._connections):
            writer.transport.abort()

    async def _swallow(self, count: int) -> None:
        self._swallowing = count
        for writer in list(self._connections):
            writer.transport.abort()

    async def _hang(self) -> None:
        self._flowing.clear()

    async def _heal(self) -> None:
        self._refusing = False
        self._flowing.set()

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._cut()
        await end_others()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if self._swallowing:
                self._swallowing -= 1
                await reader.read()
                writer.transport.abort()
                return
            await self._flowing.wait()
            there, back = await asyncio.open_connection(*self._target)
            self._connections |= {writer, back}
            try:
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
            finally:
                self._connections -= {writer, back}
                back.transport.abort()
        writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        await self._flowing.wait()
        with contextlib.suppress(OSError):
            writer.write_eof()
