"""How every test waits: until something is so, and never longer than a deadline.

Used instead of sleeping for as long as something should take: a test is as fast as what it waits
for, and on a slow machine it is slow rather than wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LOOK_SECONDS = 0.01


def eventually(
    condition: Callable[[], T], *, seconds: float = 20.0, what: str | Callable[[], str] = ""
) -> T:
    """Return the first true value of ``condition``.

    Raises:
        AssertionError: There was none within ``seconds``; tells ``what`` was waited for, and the
            last value. A function as ``what`` is asked at the end.

    """
    __tracebackhide__ = True
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            awaited = (what if isinstance(what, str) else what()) or "what is waited for"
            raise AssertionError(f"{awaited}: not within {seconds} s; at last {value!r}")
        time.sleep(LOOK_SECONDS)
    return value


def stays(condition: Callable[[], object], seconds: float) -> bool:
    """Say whether the condition holds all the time for so long: for what must not happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not condition():
            return False
        time.sleep(LOOK_SECONDS)
    return True
