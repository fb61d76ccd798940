"""How every test waits: until something is so, and never longer than a deadline.

Used instead of sleeping for as long as something should take: a test is as fast as what it waits
for, and on a slow machine it is slow rather than wrong.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LOOK_SECONDS = 0.01
#: A look that takes long is followed by a pause so many times as long, up to the longest one: who
#: waits leaves the machine to whom it waits for.
PAUSE_PER_LOOK = 9.0
LONGEST_PAUSE_SECONDS = 0.5


def eventually(
    condition: Callable[[], T | None], *, seconds: float = 20.0, what: str | Callable[[], str] = ""
) -> T:
    """Return the first true value of ``condition``.

    Raises:
        AssertionError: There was none within ``seconds``; tells ``what`` was waited for, and the
            last value. A function as ``what`` is asked at the end.

    """
    __tracebackhide__ = True
    began = time.monotonic()
    deadline = began + seconds
    while not (value := condition()):
        looked = time.monotonic()
        if looked > deadline:
            awaited = (what if isinstance(what, str) else what()) or "what is waited for"
            raise AssertionError(f"{awaited}: not within {seconds} s; at last {value!r}")
        pause = max(LOOK_SECONDS, PAUSE_PER_LOOK * (looked - began))
        time.sleep(min(pause, LONGEST_PAUSE_SECONDS))
        began = time.monotonic()
    return value


def stays(condition: Callable[[], object], seconds: float) -> bool:
    """Say whether the condition holds all the time for so long: for what must not happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not condition():
            return False
        time.sleep(LOOK_SECONDS)
    return True


async def end_others() -> None:
    """End all other tasks of this event loop, whose servers are closed.

    A connection that was accepted a moment ago is served first: a task that is cancelled before
    its first line leaves it open.
    """
    for _ in range(5):
        await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
