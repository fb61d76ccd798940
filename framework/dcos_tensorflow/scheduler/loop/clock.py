"""The scheduler's clock: unix seconds that only ever grow, as fast as time passes.

Used by the event loop and by whatever stamps what it will compare. A clock of the machine that is
set ahead and back would stop back-off, kills and reconciliation for as long as it was set back. So
the wall is read once, when the process starts; from then on only what has passed counts. What is
agreed upon with other machines (the time in a signed request) is not this clock's business.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def _passed() -> float:
    """Return seconds since the machine has started, those in which it slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def steady(
    wall: Callable[[], float] = time.time, passed: Callable[[], float] = _passed
) -> Callable[[], float]:
    """Return a clock that shows ``wall`` as it is now, and from then on what has passed."""
    began = wall() - passed()
    return lambda: began + passed()


#: This process's clock.
steady_time = steady()
