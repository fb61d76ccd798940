"""Requests of this process to the kernel: to get orphans, and not to be read by others.

The task runner asks before it starts anything: its later forks are as unreadable. So do the
processes that know the secrets of others: the scheduler, the embedded cluster and its executors.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import List

#: prctl(2).
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37


def shield_runner() -> List[str]:
    """Make this process the parent of orphans below it, and unreadable to the user's code.

    The second keeps the token in ``/proc/<pid>/environ`` from processes of the same user. Returns
    what could not be done, as lines for the log: not every kernel or sandbox allows it.
    """
    wishes = (
        (PR_SET_CHILD_SUBREAPER, 1, "adopt orphaned processes"),
        (PR_SET_DUMPABLE, 0, "hide its environment from the user's process"),
    )
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return [f"cannot {wish}: there is no prctl here" for _, _, wish in wishes]
    failed = []
    for option, value, wish in wishes:
        if prctl(option, value, 0, 0, 0) != 0:
            failed.append(f"cannot {wish}: {os.strerror(ctypes.get_errno())}")
    return failed


def keep_memory_private() -> None:
    """Leave no core dump, and keep memory and environment from other processes of this user.

    Tasks of the embedded cluster are such processes. A fork from here is as private; a program that
    is started from here is as others are. A limit of zero for core files would be that of the
    user's processes, too, and none for a handler to which the kernel gives them. Where the kernel
    has no such thing, nothing is different.
    """
    try:
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        return


@functools.lru_cache(maxsize=None)
def adopts_orphans() -> bool:
    """Say whether this process is the parent of orphans below it; it never changes."""
    answer = ctypes.c_int(0)
    try:
        asked = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    except (OSError, AttributeError):
        return False
    return asked == 0 and answer.value == 1


def call_this_process(name: str) -> None:
    """Let lists of processes show ``name``, of at most 15 bytes, where the kernel allows it."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    except (OSError, AttributeError):
        # It is listed by the name of its program.
        return
