"""Gathers what a job says about itself, from any thread: its last lines and how far it is.

``runner`` hands it to the threads that read the job's output and asks it for the status.
``progress`` reads a line, and ``measured`` chooses the values of a unit of work that are kept.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Callable, Iterable, List, Mapping, Optional

from dcos_tensorflow.task.exits.exit_analysis import ANALYSED_LINES
from dcos_tensorflow.task.output import progress
from dcos_tensorflow.task.output.error_texts import ErrorTexts
from dcos_tensorflow.task.output.event_files import Scalar
from dcos_tensorflow.task.output.logs import ProgressFile, RecentLines
from dcos_tensorflow.task.output.measured import MeasuredCurve, Point

#: A line with numbers takes 50 us to understand: so many are, of a job that prints more ...
LOOKS_A_SECOND = 1000
#: ... and so many at once, of one that has printed less before.
MOST_LOOKS = 5000


class ProgressLog:
    """What one task has told, over all its starts."""

    def __init__(self) -> None:
        self._recent = RecentLines(ANALYSED_LINES)
        self._known = progress.Progress()
        self._lock = threading.Lock()
        self._file: Optional[ProgressFile] = None
        self._path = ""
        self._measured: Optional[MeasuredCurve] = None
        #: How many lines the job has printed, over all its starts.
        self.count = 0
        self._errors = ErrorTexts()
        #: How many lines may be looked at for numbers now.
        self._looks, self._looked_at = float(MOST_LOOKS), time.monotonic()

    @property
    def known(self) -> progress.Progress:
        """Return the newest numbers."""
        return self._known

    @property
    def points(self) -> Mapping[int, Point]:
        """Return what was measured of the unit of work that is under way, by its spans."""
        return self._measured.points if self._measured else {}

    @property
    def misses_its_metric(self) -> bool:
        """Say whether values of a metric are to be kept that the job has not told yet."""
        return self._measured is not None and self._measured.metric not in self._known.named

    def follow(self, path: str) -> None:
        """Read the progress file ``path`` from now on."""
        self._path, self._file = path, ProgressFile(path)

    def begin_start(self) -> None:
        """Forget the lines of the start before; its numbers stay until there are others."""
        self._recent.clear()
        with self._lock:
            self._errors = ErrorTexts()
            self._known = progress.begin_start(self._known)

    def begin_unit(
        self,
        measured: Optional[MeasuredCurve],
        goes_on: bool,
        log: Callable[[str], None],
        own_path: str = "",
    ) -> None:
        """Forget all that was told but by this unit's attempts before: a unit of work begins.

        Where the process ``goes_on`` it may have its progress file open, so that one stays.
        ``own_path`` is the unit's own progress file, if it has one: what an attempt before has left
        there counts, for its container may have ended before anybody had read it.
        """
        self._recent.clear()
        if goes_on:
            self.read_file(last=True)
        path = own_path or self._path
        with self._lock:
            self._known = measured.before if measured else progress.Progress()
            self._measured = measured
            if not path or goes_on:
                return
            for line in ProgressFile(own_path).close() if own_path else ():
                self._take(progress.read_record(self._known, line, time.time()), printed=False)
            if measured is not None:
                measured.keep(at_once=True)
            try:
                os.unlink(path)
            except FileNotFoundError:
                # Nothing was told there before.
                pass
            except OSError as error:
                log(f"{path} is in the way, and may hold another unit's progress: {error}")
            self._file = ProgressFile(path)

    def lines(self) -> List[str]:
        """Return the last lines of this start's output, oldest first."""
        return self._recent.lines()

    def read_block(self, block: bytes) -> None:
        """Take lines of the job's output, as ``logs.LineScanner`` cuts them.

        A job that prints numbers faster than anybody reads them must not wait for us: of those
        beyond ``LOOKS_A_SECOND`` the newest count.
        """
        self._recent.add(block)
        with self._lock:
            self.count += block.count(b"\n")
            block = self._errors.taken_out(block)
            now = time.monotonic()
            self._looks = min(MOST_LOOKS, self._looks + (now - self._looked_at) * LOOKS_A_SECOND)
            self._looked_at = now
            for line in progress.telling_lines(block, int(self._looks)):
                self._looks = max(0.0, self._looks - 1)
                self._take(progress.read_line(self._known, line, time.time()), printed=True)

    def read_event_step(self, step: Optional[int]) -> None:
        """Take the newest step of the event files."""
        with self._lock:
            self._known = progress.read_event_step(self._known, step, time.time())

    def read_scalars(self, scalars: Iterable[Scalar]) -> None:
        """Take scalars of the event files, oldest first."""
        with self._lock:
            for step, name, value in scalars:
                self._known = progress.read_scalar(self._known, name, value, time.time())
                if self._measured is not None and self._measured.metric == name:
                    self._measured.see_scalar(self._known, step, value)

    def read_file(self, last: bool = False) -> None:
        """Read what came into the progress file; with ``last`` a line without end as well.

        What is known then of a unit of work is kept.
        """
        if self._file is None:
            return
        with self._lock:
            file = self._file
            for line in file.close() if last else file.new_lines():
                self._take(progress.read_record(self._known, line, time.time()), printed=False)
            if self._measured is not None:
                self._measured.keep(at_once=last)

    def _take(self, known: progress.Progress, *, printed: bool) -> None:
        before, self._known = self._known, known
        if self._measured is not None and known is not before:
            self._measured.see(before, known, printed=printed)
