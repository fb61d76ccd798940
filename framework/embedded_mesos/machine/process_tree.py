"""Ends a process and everything it has started. Linux.

Used by ``executor`` for its task, by ``host`` for an executor that died, and by
``background_process``. The walk through /proc is ``untrusted_input.process_table``.
"""

from __future__ import annotations

import os
import signal

from untrusted_input.process_table import below, kill_all, read_processes


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the process group that ``pid`` leads, if it is still there."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def group_lives(pid: int) -> bool:
    """Say whether anything is left of the process group that ``pid`` led.

    Its dead are reaped where they are children of this process (the executor).
    """
    try:
        while os.waitpid(-pid, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def signal_process(pid: int, number: int) -> None:
    """Send a signal to one process, if it is still there."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def kill_tree(pid: int, *, itself: bool = True) -> None:
    """SIGKILL everything below ``pid``, again until nothing of it lives, then ``pid`` itself."""
    kill_all(lambda: tuple(one for one in below(read_processes(), pid) if not one.ended))
    if itself:
        signal_group(pid, signal.SIGKILL)
        signal_process(pid, signal.SIGKILL)
