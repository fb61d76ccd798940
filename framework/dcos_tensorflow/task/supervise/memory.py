"""How much memory processes have, in bytes, and whether the kernel has killed for want of it.

``observer`` asks for the user's processes when the status is asked for. Memory that processes
share (TensorFlow's libraries, forked data) is counted once where the kernel tells so. ``starts``
counts the kernel's kills before and after a process: that tells an OOM kill from any other SIGKILL.
The container's own cgroup counts its kills (kernel documentation: cgroup-v2 ``memory.events``,
cgroup-v1 ``memory.oom_control``); where it cannot be read, ``/proc/vmstat`` counts the machine's.
"""

from __future__ import annotations

import os
from typing import Iterable, Iterator, Optional

_KIB = 1024
_KILLS = "oom_kill"


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


def kernel_kills(proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> Optional[int]:
    """Return how many processes were killed for want of memory so far; None if it is not known."""
    for path in _files(proc, cgroups):
        count = _counter(path)
        if count is not None:
            return count
    return None


def _files(proc: str, cgroups: str) -> Iterator[str]:
    """Yield where the count may be, the most exact first."""
    for controllers, path in _own_cgroups(proc):
        if "memory" in controllers.split(","):
            # Inside a container the path of the machine is often not there, and the root is ours.
            yield f"{cgroups}/memory{path.rstrip('/')}/memory.oom_control"
            yield f"{cgroups}/memory/memory.oom_control"
        elif not controllers:
            yield f"{cgroups}{path.rstrip('/')}/memory.events"
            yield f"{cgroups}/memory.events"
    yield f"{proc}/vmstat"


def _own_cgroups(proc: str) -> Iterator["tuple[str, str]"]:
    try:
        with open(f"{proc}/self/cgroup", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        yield controllers, path


def _counter(path: str) -> Optional[int]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(" ")
                if name == _KILLS and value.strip().isdigit():
                    return int(value)
    except OSError:
        # Not this kernel's, or not to be seen from here: the next place may tell.
        return None
    return None
