"""Gathers what a job says about itself, from any thread: its last lines and how far it is.

``runner`` hands it to the threads that read the job's output and asks it for the status. What a
line means is ``progress``'s to say.
"""

from __future__ import annotations

import threading
import time
from typing import List, Optional

from dcos_tensorflow.task import progress
from dcos_tensorflow.task.exit_analysis import ANALYSED_LINES
from dcos_tensorflow.task.logs import ProgressFile, RecentLines


class ProgressLog:
    """What one task has told, over all its starts."""

    def __init__(self) -> None:
        self._recent = RecentLines(ANALYSED_LINES)
        self._known = progress.Progress()
        self._lock = threading.Lock()
        self._file: Optional[ProgressFile] = None
        #: How many lines the job has printed, over all its starts.
        self.count = 0

    @property
    def known(self) -> progress.Progress:
        """Return the newest numbers."""
        return self._known

    def follow(self, path: str) -> None:
        """Read the progress file ``path`` from now on."""
        self._file = ProgressFile(path)

    def begin_start(self) -> None:
        """Forget the lines of the start before; its numbers stay until there are others."""
        self._recent.clear()
        with self._lock:
            self._known = progress.begin_start(self._known)

    def lines(self) -> List[str]:
        """Return the last lines of this start's output, oldest first."""
        return self._recent.lines()

    def read_line(self, line: str) -> None:
        """Take one line of the job's output."""
        self._recent.add(line)
        self.count += 1
        with self._lock:
            self._known = progress.read_line(self._known, line, time.time())

    def read_event_step(self, step: Optional[int]) -> None:
        """Take the newest step of the event files."""
        with self._lock:
            self._known = progress.read_event_step(self._known, step, time.time())

    def read_file(self, last: bool = False) -> None:
        """Read what came into the progress file; with ``last`` a line without end as well."""
        if self._file is None:
            return
        with self._lock:
            file = self._file
            for line in file.close() if last else file.new_lines():
                self._known = progress.read_record(self._known, line, time.time())
