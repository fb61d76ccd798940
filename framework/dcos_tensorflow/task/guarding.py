"""The runner's end of its guard: starts it, looks after it, and lets it go.

``runner`` makes one ``Guard`` before it starts anything of the user's. What the other process does
is ``guard``.
"""

from __future__ import annotations

import subprocess
from typing import Callable, List, Mapping

from dcos_tensorflow.task import process_table
from dcos_tensorflow.task.program import GUARD_FLAG


class Guard:
    """One guard process for ``mark``; ``program`` is how this program starts itself again.

    ``environment`` must hold neither the token nor the mark.
    """

    def __init__(self, program: List[str], mark: str, environment: Mapping[str, str]) -> None:
        # -S: what the user's Python loads at its start is none of the guard's business.
        self._command = [program[0], "-S", *program[1:], GUARD_FLAG, mark]
        self._environment = dict(environment)
        self._missing = False
        self._process = self._start()

    @property
    def pid(self) -> int:
        """Return the process id of the guard."""
        return self._process.pid

    def keep(self, log: Callable[[str], None]) -> None:
        """Start the guard again if someone has killed it; say once when that cannot be now."""
        if self._process.poll() is None:
            return
        self._close_pipe()
        try:
            self._process = self._start()
            self._missing = False
        except OSError as error:
            if not self._missing:
                log(f"the guard is gone and cannot be started again now: {error}")
            self._missing = True

    def dismiss(self) -> None:
        """Let the guard end; what still carries the mark ends with it."""
        self._close_pipe()
        try:
            self._process.wait(process_table.END_SECONDS + 1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _close_pipe(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()

    def _start(self) -> "subprocess.Popen[bytes]":
        # Its own session: signals to the runner's group are not for it.
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            cwd="/",
            start_new_session=True,
        )
