"""The measurements of a unit of work while it runs: its values, and their history.

The way is the values of one metric, the first in each span of steps. ``progress_log`` shows it
whatever the job tells. It lies beside the checkpoints: an attempt that goes on from them goes on
with it, too. So a trial is judged by the same values whatever ended its process in between, also
when that was after the last step, and the next attempt finds nothing left to do, or to tell.
"""

from __future__ import annotations

import bisect
import json
import time
from typing import Any, Callable, Dict, Iterable, Mapping, Tuple

from dcos_tensorflow.task.job_files import open_regular, replace_text
from dcos_tensorflow.task.output.progress import Progress, known_before
from dcos_tensorflow.task.unit_order import Measure, result_of

#: A step, and the metric's value there.
Point = Tuple[int, float]
FILE_NAME = "measured.json"
#: No file of ours is longer.
_MAX_BYTES = 64 * 1024
#: A job may tell thousands of values a second; each write is one of the file system.
WRITE_SECONDS = 0.1


class MeasuredCurve:
    """What is kept of one unit. ``path`` is where, empty for nowhere.

    ``before`` is what the attempts before this one have told.
    """

    def __init__(self, wanted: Measure, path: str, log: Callable[[str], None]) -> None:
        self._wanted = wanted
        self._path = path
        self._log = log
        self._kept: Mapping[str, Any] = _read(path) if path else {}
        self._points: Dict[int, Point] = self._by_span(self._kept.get("measured"))
        #: Spans whose value was printed, so that the progress file may know it better.
        self._printed: Dict[int, int] = {}
        self.before = known_before(self._kept.get("metrics"), self._kept.get("result"))
        self._known = self.before
        self._due = 0.0

    @property
    def points(self) -> Mapping[int, Point]:
        """Return the points by the number of their span."""
        return self._points

    @property
    def metric(self) -> str:
        """Return the name of what is measured."""
        return self._wanted.metric

    def see(self, before: Progress, known: Progress, *, printed: bool) -> None:
        """Take what was told: ``known`` after it, ``before`` it."""
        self._known = known
        self.keep(at_once=self._is_measured(before, known, printed))

    def keep(self, *, at_once: bool) -> None:
        """Write what is not written yet, if that is due or is to be ``at_once``."""
        now = time.monotonic()
        if not self._path or (now < self._due and not at_once):
            return
        self._due = now + WRITE_SECONDS
        told = result_of(self._known, self._points, self._wanted.metric)
        if told != self._kept:
            self._kept = told
            self._write()

    def _is_measured(self, before: Progress, known: Progress, printed: bool) -> bool:
        """Take the value that was told if it is one of those that are kept; say whether it is.

        A printed number is often a rounded one: the progress file's, of the same step, is taken in
        its place, whichever comes first.
        """
        value, step = known.newest.get(self._wanted.metric), known.start_step
        if known.newest is before.newest or value is None or step is None:
            return False
        return self._take(step, value, printed=printed)

    def see_scalar(self, known: Progress, step: int, value: float) -> None:
        """Take a scalar of an event file: ``known`` after it."""
        self._known = known
        self.keep(at_once=self._take(step, value, printed=False))

    def _take(self, step: int, value: float, *, printed: bool) -> bool:
        span = self._span(step)
        better = not printed and self._printed.get(span) == step
        if span < 0 or (span in self._points and not better):
            return False
        self._points = {**self._points, span: (step, value)}
        self._printed.pop(span, None)
        if printed:
            self._printed[span] = step
        return True

    def _span(self, step: int) -> int:
        """Return the number of the span of a step, -1 before the first."""
        return bisect.bisect_right(self._wanted.spans, step) - 1

    def _by_span(self, kept: Any) -> Dict[int, Point]:
        try:
            pairs: Iterable[Point] = [(int(step), float(value)) for step, value in kept or ()]
        except (ValueError, TypeError, OverflowError):
            return {}
        return {span: pair for pair in pairs if (span := self._span(pair[0])) >= 0}

    def _write(self) -> None:
        try:
            replace_text(self._path, json.dumps(self._kept))
        except OSError as error:
            self._log(f"{self._path} cannot be written: {error}")


def _read(path: str) -> Mapping[str, Any]:
    try:
        with open_regular(path) as file:
            document: Any = json.loads(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        # It is not ours, or is damaged: the unit measures anew.
        return {}
    return document if isinstance(document, dict) else {}
