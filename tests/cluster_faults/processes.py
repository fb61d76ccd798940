"""Signals to a process and all below it, for faults."""

import signal

from embedded_mesos.machine.process_tree import signal_process
from untrusted_input.process_table import below, read_processes


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes below ``pid``, parents before children."""
    return [process.pid for process in below(read_processes(), pid)]


def signal_tree(pid: int, number: int, *, itself: bool = True) -> None:
    """Send a signal to everything below ``pid`` and to itself, each once, new ones included."""
    told: set[int] = set()
    while True:
        found = [one for one in ([pid] if itself else []) + descendants(pid) if one not in told]
        if not found:
            return
        for one in found:
            signal_process(one, number)
        told.update(found)


def kill_from_top(pid: int) -> None:
    """SIGKILL ``pid`` before anything below it, which then has no parent to tell of its end."""
    signal_tree(pid, signal.SIGSTOP)
    below = descendants(pid)
    signal_process(pid, signal.SIGKILL)
    for one in below:
        signal_process(one, signal.SIGKILL)
