"""How much memory processes have: read from /proc, in bytes.

``runner`` asks for the user's processes when a client asks for the status. Memory that processes
share (TensorFlow's libraries, forked data) is counted once where the kernel tells so.
"""

from __future__ import annotations

import os
from typing import Iterable, Optional

_KIB = 1024


def resident_bytes(pids: Iterable[int]) -> Optional[int]:
    """Return the memory of ``pids`` together; None when there is none to be read.

    The proportional set size (each shared page divided by its users) where it can be read, else
    the resident set size, which counts shared pages of each process again.
    """
    sizes = [size for size in map(_resident_bytes, pids) if size is not None]
    return sum(sizes) if sizes else None


def _resident_bytes(pid: int) -> Optional[int]:
    proportional = _proportional_bytes(pid)
    if proportional is not None:
        return proportional
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        # It has ended in between.
        return None


def _proportional_bytes(pid: int) -> Optional[int]:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * _KIB
    except (OSError, IndexError, ValueError):
        return None
    return None
