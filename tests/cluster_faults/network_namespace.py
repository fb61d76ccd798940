"""Runs something in a network namespace, as if it had a machine of its own. Linux, and root.

Agents in namespaces have addresses of their own, and a cut of the link of one lets a machine
vanish without closing a connection. Namespaces are entered here; others make them (``ip netns``).
"""

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
    a thread that is not used afterwards.

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
