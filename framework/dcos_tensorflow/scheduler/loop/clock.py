"""The scheduler's clock: unix seconds that only ever grow, as fast as time passes.

Used by the event loop and by all code that stamps times to compare them. A clock of the machine
that is set ahead and back would stop back-off, kills and reconciliation for as long as it was set
back. So the wall is read once, when the process starts; from then on only the passed time counts.
Times that other machines check (in a signed request) do not come from this clock.
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
