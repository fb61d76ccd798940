"""Log files of tasks, whole or followed (dcos-log, ``/system/v1/logs/v2``).

``mesos_calls`` asks. A cursor is the number of bytes up to the end of a line: a reader that returns
with the last one gets the lines after it, and nothing twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

_BLOCK = 64 * 1024
_LOOK_SECONDS = 0.2
#: A sign of life on a stream that has nothing to say, in seconds.
_PING_SECONDS = 15.0
#: The client drops an event of 64 KiB or more; JSON may need six bytes for one.
_LONGEST_MESSAGE = 8 * 1024


def start_of_last(path: Path, lines: int) -> int:
    """Return where the last ``lines`` lines begin, in bytes."""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        end = position = file.tell()
        if lines <= 0:
            return end
        breaks = 0
        while position > 0:
            size = min(_BLOCK, position)
            position -= size
            file.seek(position)
            block = file.read(size)
            at = len(block)
            while (at := block.rfind(b"\n", 0, at)) >= 0:
                # The break at the very end closes the last line: it parts it from no other.
                if position + at + 1 == end:
                    continue
                breaks += 1
                if breaks == lines:
                    return position + at + 1
    return 0


async def events(path: Path, start: int) -> AsyncIterator[bytes]:
    """Give the lines from byte ``start`` on as server-sent events, those to come too, for ever.

    A file that has become shorter was begun anew: a task runner does so when it is full.
    """
    position, rest = start, b""
    spoke = time.monotonic()
    yield b": following\n\n"
    while True:
        chunk = await asyncio.to_thread(_read, path, position)
        if chunk is None:
            position, rest = 0, b""
        elif chunk:
            cursor = position - len(rest)
            position += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                cursor += len(line) + 1
                yield event(line, cursor, path.name)
            spoke = time.monotonic()
        elif time.monotonic() - spoke > _PING_SECONDS:
            yield b": ping\n\n"
            spoke = time.monotonic()
        else:
            await asyncio.sleep(_LOOK_SECONDS)


def _read(path: Path, position: int) -> bytes | None:
    """Return what follows ``position``; None when the file ends before it."""
    try:
        with open(path, "rb") as file:
            if file.seek(0, os.SEEK_END) < position:
                return None
            file.seek(position)
            return file.read(_BLOCK)
    except FileNotFoundError:
        return b""


def event(line: bytes, cursor: int, name: str) -> bytes:
    """Return one line as an event; ``cursor`` is the number of bytes up to its end."""
    text = line.decode("utf-8", "replace")
    parts = [text[i : i + _LONGEST_MESSAGE] for i in range(0, len(text), _LONGEST_MESSAGE)] or [""]
    out = []
    for part in parts:
        entry = {
            "fields": {"MESSAGE": part, "FILE": name},
            "cursor": str(cursor),
            "monotonic_timestamp": 0,
            "realtime_timestamp": time.time_ns() // 1000,
        }
        out.append(f"id: {cursor}\ndata: {json.dumps(entry)}\n\n")
    return "".join(out).encode()
