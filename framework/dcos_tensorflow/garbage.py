"""When Python looks for garbage: seldom while a process starts, as usual in one that lives long.

Used by the command line and by the embedded cluster's process.
What is imported is no garbage, and to look through it again and again is a twentieth of a start.
"""

from __future__ import annotations

import gc

#: So many new objects come before the next look, while a process starts.
_AT_START = 100_000
#: Python's own numbers.
_USUAL = (700, 10, 10)


def look_seldom() -> None:
    """Look seldom from now on: this process starts."""
    gc.set_threshold(_AT_START)


def look_as_usual() -> None:
    """Look as often as Python does from now on, and never again through what there is."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
