"""Clients of a scheduler's API and of its master, many at once, some of them hostile.

    python -m benchmarks.scheduler.crowd API TOKEN-FILE MASTER --friendly 180 --hostile 20
        --seconds 30

Friendly ones ask something of the API once a second with its token, as a follower of a log does, or
follow its stream of events, as a dashboard does. Hostile ones know no secret and do what holds a
careless server up. Prints as JSON what the friendly ones met.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds until a friendly client takes no answer for one.
PATIENCE = 20.0
_PATHS = (
    *("/v1/job", "/v1/why", "/v1/plans/deploy", "/v1/pod/status", "/v1/metrics", "/v1/endpoints"),
    *("/v1/pod/worker-0/files/stdout?offset=0", "/v1/pod/worker-1/files/stdout?offset=0"),
    *("/v1/curves", "/v1/runs"),
)
#: One of so many friendly clients follows the stream: fewer than may watch at once.
_FOLLOWS = 3
#: A stream that says nothing for so long (seconds) is dead.
_SILENCE = 30.0

#: Who tries wrong tokens waits, with all of his address: hostile ones have another one.
_HOSTILE_ADDRESS = "127.0.0.2"

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Met:
    """What friendly clients met."""

    #: Seconds that each answer took.
    seconds: list[float] = field(default_factory=list)
    #: Answers other than 200, and requests without one, by what happened.
    failed: Counter[str] = field(default_factory=Counter)
    #: Events on all streams, and the failures that each follower knows of at the end.
    events: int = 0
    known: list[int] = field(default_factory=list)


async def _connected(address: str, source: str | None = None) -> Connection:
    host, _, port = address.rpartition(":")
    own = None if source is None else (source, 0)
    # An event is one line, and the first one is all that is known.
    return await asyncio.open_connection(host, int(port), local_addr=own, limit=1 << 24)


async def _asked(connection: Connection, path: str, token: str) -> int:
    """Return the status of the answer, which is read whole. Raises OSError and EOFError."""
    reader, writer = connection
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(head.encode())
    await writer.drain()
    answer = await reader.readuntil(b"\r\n\r\n")
    fields = dict(
        line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line
    )
    await reader.readexactly(int(fields.get(b"content-length", b"0")))
    return int(answer.split(b" ", 2)[1])


async def friendly(api: str, token: str, number: int, met: Met) -> None:
    """Ask something once a second, for ever; a connection that was ended is made again."""
    connection: Connection | None = None
    await asyncio.sleep(random.random())
    for path in itertools.islice(itertools.cycle(_PATHS), number % len(_PATHS), None):
        began = time.monotonic()
        for is_last in (False, True):
            is_new = connection is None
            try:
                async with asyncio.timeout(PATIENCE):
                    connection = connection or await _connected(api)
                    status = await _asked(connection, path, token)
                met.seconds.append(time.monotonic() - began)
                if status != 200:
                    met.failed[f"{path}: {status}"] += 1
                break
            except (OSError, EOFError, TimeoutError) as error:
                if connection is not None:
                    connection[1].close()
                connection = None
                # One that has waited may have given way: its next request was never begun.
                if is_new or is_last or isinstance(error, TimeoutError):
                    met.failed[f"{path}: {type(error).__name__}"] += 1
                    break
        await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began)))


async def follower(api: str, token: str, met: Met) -> None:
    """Follow the stream of events, for ever; one that breaks off, or skips an event, has failed."""
    path, number = "/v1/events", len(met.known)
    met.known.append(0)
    await asyncio.sleep(random.random())
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await _connected(api)
            head = f"GET {path} HTTP/1.1\r\nHost: {api}\r\nAuthorization: Bearer {token}\r\n\r\n"
            writer.write(head.encode())
            answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            met.failed[f"{path}: {answer[9:12].decode()}"] += 1
            return
        while True:
            async with asyncio.timeout(_SILENCE):
                line = await reader.readline()
            if not line:
                raise EOFError
            if line.startswith(b"data: "):
                met.events += 1
                incidents = json.loads(line[6:]).get("job", {}).get("incidents")
                met.known[number] = met.known[number] if incidents is None else len(incidents)
    except (OSError, EOFError, TimeoutError) as error:
        met.failed[f"{path}: {type(error).__name__}"] += 1


async def _say(address: str, *parts: bytes, pause: float = 0.0) -> None:
    """Send parts, read a little of the answer, and go."""
    reader, writer = await _connected(address, _HOSTILE_ADDRESS)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        async with asyncio.timeout(5):
            await reader.read(1000)
    finally:
        writer.transport.abort()


_POST = b"POST /v1/job/stop HTTP/1.1\r\nHost: 127.0.0.1\r\n"
_WRONG = b"Authorization: Bearer wrong\r\n"

#: What hostile ones do again and again.
HOSTILE: tuple[Callable[[str, str], Awaitable[None]], ...] = (
    lambda api, master: _say(api, b"", pause=60),
    lambda api, master: _say(master, b"", pause=60),
    lambda api, master: _say(api, *[bytes([b]) for b in b"GET / HTTP/1.1\r\nX: 1"], pause=1),
    lambda api, master: _say(api, _POST + _WRONG + b"\r\n"),
    lambda api, master: _say(api, _POST + b"Content-Length: 99999999\r\n\r\n", b"x" * 1_000_000),
    lambda api, master: _say(api, b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000),
    lambda api, master: _say(api, b"\x16\x03\x01\x02\x00\x01\x00 no HTTP at all \xff\r\n\r\n"),
    lambda api, master: _say(master, b"POST /api/v1 HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
    lambda api, master: _say(master, b"GET http://[ HTTP/1.1\r\n\r\n"),
    lambda api, master: _say(api, b"GET /v1/events HTTP/1.1\r\nHost: h\r\n" + _WRONG + b"\r\n"),
    lambda api, master: _say(api, _POST + b"Origin: http://evil.example\r\n\r\n"),
)


async def hostile(api: str, master: str, number: int) -> None:
    """Do one thing again and again, for ever, fifty times a second at most."""
    attack = HOSTILE[number % len(HOSTILE)]
    while True:
        with suppress(OSError, EOFError, TimeoutError):
            await attack(api, master)
        await asyncio.sleep(0.02)


async def crowd(given: argparse.Namespace) -> Met:
    """Have them all at work for so long, and return what the friendly ones met."""
    met, token = Met(), given.token_file.read_text().strip()
    create = asyncio.create_task
    tasks = [
        create(friendly(given.api, token, n, met))
        if n % _FOLLOWS
        else create(follower(given.api, token, met))
        for n in range(given.friendly)
    ]
    tasks += [create(hostile(given.api, given.master, n)) for n in range(given.hostile)]
    await asyncio.sleep(given.seconds)
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("api")
    parser.add_argument("token_file", type=Path)
    parser.add_argument("master")
    parser.add_argument("--friendly", type=int, default=180)
    parser.add_argument("--hostile", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0)
    met = asyncio.run(crowd(parser.parse_args()))
    told = {"seconds": met.seconds, "failed": met.failed}
    print(json.dumps({**told, "events": met.events, "known": met.known}))


if __name__ == "__main__":
    main()
