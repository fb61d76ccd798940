"""Whether the kernel has killed for want of memory: what tells an OOM kill from any other SIGKILL.

``runner`` takes a count when it starts a process and again when that one was killed. The
container's own cgroup counts its kills (kernel documentation: cgroup-v2 ``memory.events``,
cgroup-v1 ``memory.oom_control``); where it cannot be read, ``/proc/vmstat`` counts the machine's.
"""

from __future__ import annotations

from typing import Iterator, Optional

_COUNTER = "oom_kill"


def kills(proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> Optional[int]:
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
                if name == _COUNTER and value.strip().isdigit():
                    return int(value)
    except OSError:
        # Not this kernel's, or not to be seen from here: the next place may tell.
        return None
    return None
