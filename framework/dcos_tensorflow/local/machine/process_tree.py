"""Ends, stops and continues a process and everything it has started. Linux: reads /proc.

Used by ``executor`` for its task, and by ``host`` for an executor that died.
"""

from __future__ import annotations

import os
import signal


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes below ``pid``, parents before children."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(int(name))
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child)
    return found


def _stat(pid: int) -> list[bytes]:
    """Return proc(5)'s ``stat`` from its third field on; empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The command in parentheses may hold anything: what follows its last one is fixed.
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when there is none.

    With it a process id that was given to another process is not mistaken for the first. A
    zombie is no process.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in (b"Z", b"X") else None


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the process group that ``pid`` leads, if it is still there."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def signal_process(pid: int, number: int) -> None:
    """Send a signal to one process, if it is still there."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def kill_tree(pid: int, *, itself: bool = True) -> None:
    """SIGKILL everything below ``pid``, again until nothing is left, then ``pid`` itself."""
    for _ in range(10):
        below = descendants(pid)
        if not below:
            break
        for one in below:
            signal_process(one, signal.SIGKILL)
        _reap()
    if itself:
        signal_group(pid, signal.SIGKILL)
        signal_process(pid, signal.SIGKILL)


def _reap() -> None:
    # Only does something where the dead are children of this process (the executor).
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
