"""A scheduler whose two loops are timed: ``timed_scheduler.py FIGURES COMMAND-LINE...``.

Every second it writes to FIGURES, as JSON lines, how late the API's event loop was each time it was
to wake (seconds), and how long each step of the scheduler's own loop took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.scheduler.loop.event_loop import EventLoop
from untrusted_input import asgi_server

#: Seconds between two wake-ups that are timed.
PAUSE = 0.01

late: list[float] = []
steps: list[float] = []
_startup = asgi_server._Server.startup
_handle = EventLoop._handle


async def _timed() -> None:
    while True:
        wanted = time.monotonic() + PAUSE
        await asyncio.sleep(PAUSE)
        late.append(time.monotonic() - wanted)


async def startup(self: Any, sockets: Any = None) -> None:
    await _startup(self, sockets)
    self.timed = asyncio.create_task(_timed())


def handle(self: EventLoop, events: Sequence[Event]) -> None:
    began = time.monotonic()
    try:
        _handle(self, events)
    finally:
        steps.append(time.monotonic() - began)


def write(file: Path) -> None:
    with file.open("a") as out:
        while True:
            time.sleep(1)
            slow, taken = late[:], steps[:]
            del late[: len(slow)], steps[: len(taken)]
            out.write(json.dumps({"at": time.time(), "late": slow, "steps": taken}) + "\n")
            out.flush()


if __name__ == "__main__":
    asgi_server._Server.startup = startup  # type: ignore[method-assign]
    EventLoop._handle = handle  # type: ignore[method-assign]
    threading.Thread(target=write, args=(Path(sys.argv[1]),), daemon=True).start()
    sys.exit(run_command_line(sys.argv[2:]))
