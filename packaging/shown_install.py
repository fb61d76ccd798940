"""Runs pip and shows in one line how far it is: ``make demo`` downloads for minutes.

``python packaging/shown_install.py WHAT PYTHON -m pip ARGUMENTS``. On a terminal the line is
written anew each second; elsewhere it comes when something else is done, and every 15 seconds. What
pip has to complain of is shown as it is, and its exit code is this one's.
"""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import TextIO

_COMES = re.compile(r"\s*(Downloading|Using cached) (\S+?)(?:-\d\S*)? \((.+)\)")
_INSTALLS = re.compile(r"Installing collected packages: (.+)")
_EVERY_SECONDS, _ON_A_TERMINAL_SECONDS = 15.0, 1.0


class Shown:
    """The line. ``now`` is what is being done; from any thread."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what = what
        self._stream = stream
        self._terminal = stream.isatty()
        self._began = time.monotonic()
        self._now = "asking which packages there are"
        self._lock = threading.Lock()

    @property
    def seconds_between(self) -> float:
        """Return how often it is shown though nothing else is done."""
        return _ON_A_TERMINAL_SECONDS if self._terminal else _EVERY_SECONDS

    def now(self, doing: str) -> None:
        """Show something else that is done."""
        self._now = doing
        self.show()

    def show(self) -> None:
        """Show what is done, and since when all of it."""
        text = f"  {self._what}: {self._now} ({time.monotonic() - self._began:.0f} s)"
        with self._lock:
            before, end = ("\r\x1b[K", "") if self._terminal else ("", "\n")
            print(f"{before}{text}", end=end, file=self._stream, flush=True)

    def end(self, done: str) -> None:
        """Show that it is over."""
        self.now(done)
        if self._terminal:
            print(file=self._stream, flush=True)


def run(what: str, command: Sequence[str], stream: TextIO) -> int:
    """Run pip, show how far it is, and return its exit code."""
    shown = Shown(what, stream)
    over = threading.Event()

    def tell() -> None:
        while not over.wait(shown.seconds_between):
            shown.show()

    shown.show()
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if comes := _COMES.match(line):
                shown.now(f"{comes[1].lower()} {comes[2]} ({comes[3]})")
            elif installs := _INSTALLS.match(line):
                shown.now(f"installing {len(installs[1].split(','))} packages")
    over.set()
    teller.join()
    shown.end("installed" if process.returncode == 0 else f"pip ended with {process.returncode}")
    return process.returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:], sys.stdout))
