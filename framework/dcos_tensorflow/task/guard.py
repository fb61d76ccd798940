"""A small process beside the runner that ends the user's processes when the runner is killed.

``process`` starts it with a pipe whose other end only the runner holds. When the runner is gone,
by SIGKILL too, the pipe closes, and the guard kills everything that carries the runner's mark, and
removes the files of its secrets. It never looks at anything else.
"""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Callable, List, Mapping

from dcos_tensorflow.task import process_table, secret_files


def main(mark: str) -> int:
    """Wait for the end of standard input, then kill what carries ``mark``."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    process_table.kill_all(lambda: process_table.marked(mark, {os.getpid()}))
    secret_files.remove(os.environ)
    return 0


class Guard:
    """Starts the guard process, looks after it, and lets it go.

    ``environment`` must hold neither the token nor the mark.
    """

    def __init__(self, command: List[str], environment: Mapping[str, str]) -> None:
        self._command = command
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
