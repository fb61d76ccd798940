"""Lets an agent and its tasks live in a network namespace, as if they had a machine of their own.

Used by ``cluster`` for the agent's listening socket and by ``host`` for the executors. It enters
namespaces and makes none: who configures an agent with one has made it (``ip netns add``) and may
cut its link, which is how a machine vanishes without closing a connection. Linux, and root.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

#: setns(2): the descriptor is that of a network namespace.
_CLONE_NEWNET = 0x40000000


def run_inside(path: str, action: Callable[[], T]) -> T:
    """Return what ``action`` returns in the network namespace at ``path``.

    A socket stays in the namespace that it was made in. Namespaces belong to threads, so this takes
    a thread that nobody uses afterwards.

    Raises:
        OSError: there is no such namespace, or this process may not enter it.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(_enter_and_run, path, action).result()


def _enter_and_run(path: str, action: Callable[[], T]) -> T:
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if library.setns(descriptor, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)
    return action()


def prefix(path: str) -> list[str]:
    """Return what stands before a command that is to run in the namespace; [] for none.

    nsenter(1) becomes the command, so that the process id is the command's own.
    """
    return ["nsenter", f"--net={path}", "--"] if path else []
