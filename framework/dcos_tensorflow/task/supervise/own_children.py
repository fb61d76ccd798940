"""Processes that the runner starts for itself while the user's process runs.

An operator's command and the question to the GPUs' driver are its children like the user's process,
and are not the user's: ``process`` neither ends them nor takes their exit status, which the runner
waits for itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from typing import Any, List, Set

#: Held by the thread that takes a child's exit status: no other may read our children meanwhile.
reaping = threading.Lock()


class OwnChildren:
    """The children of one runner that are its own. From any thread."""

    def __init__(self) -> None:
        self._pids: Set[int] = set()

    def pids(self) -> Set[int]:
        """Return those that no other part may wait for or end."""
        return set(self._pids)

    def begin(self, words: List[str], **how: Any) -> "subprocess.Popen[bytes]":
        """Start a process in a session of its own. Raises OSError and ValueError."""
        # One that ends at once is known before others look.
        with reaping:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, start_new_session=True, **how
            )
            self._pids.add(process.pid)
        return process

    def wait(self, process: "subprocess.Popen[bytes]") -> None:
        """Return when a process has ended; its number stays its own until ``reap``."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    def reap(self, process: "subprocess.Popen[bytes]") -> int:
        """Return the exit status of a process that has ended."""
        with reaping:
            code = process.wait()
            self._pids.discard(process.pid)
        return code
