"""Which values of a unit of work are kept while it runs: of one metric the first in each span.

``progress_log`` shows it whatever the job tells. What was measured lies beside the checkpoints: an
attempt that goes on from them goes on with it, too, so that a trial is judged by the same values
whatever ended its process in between.
"""

from __future__ import annotations

import bisect
import json
import os
from typing import Any, Callable, Dict, Mapping, Tuple

from dcos_tensorflow.task.progress import Progress
from dcos_tensorflow.task.units import Measure

#: A step, and the metric's value there.
Point = Tuple[int, float]
FILE_NAME = "measured.json"
#: No file of ours is longer.
_MAX_BYTES = 64 * 1024


class Measured:
    """What was measured of one unit. ``path`` is where it is kept, empty for nowhere."""

    def __init__(self, wanted: Measure, path: str, log: Callable[[str], None]) -> None:
        self._wanted = wanted
        self._path = path
        self._log = log
        self._points: Dict[int, Point] = _read(path) if path else {}
        #: Spans whose value was printed, so that the progress file may know it better.
        self._printed: Dict[int, int] = {}

    @property
    def points(self) -> Mapping[int, Point]:
        """Return the points by the number of their span."""
        return self._points

    @property
    def metric(self) -> str:
        """Return the name of what is measured."""
        return self._wanted.metric

    def see(self, before: Progress, known: Progress, *, printed: bool) -> None:
        """Take what was told: ``known`` after it, ``before`` it.

        A printed number is often a rounded one: the progress file's, of the same step, is taken in
        its place, whichever comes first.
        """
        value, step = known.newest.get(self._wanted.metric), known.start_step
        if known.newest is not before.newest and value is not None and step is not None:
            self._see(step, value, printed=printed)

    def see_scalar(self, step: int, value: float) -> None:
        """Take a scalar of an event file."""
        self._see(step, value, printed=False)

    def _see(self, step: int, value: float, *, printed: bool) -> None:
        span = bisect.bisect_right(self._wanted.spans, step) - 1
        better = not printed and self._printed.get(span) == step
        if span < 0 or (span in self._points and not better):
            return
        self._points = {**self._points, span: (step, value)}
        self._printed.pop(span, None)
        if printed:
            self._printed[span] = step
        if self._path:
            self._write()

    def _write(self) -> None:
        try:
            with open(f"{self._path}.new", "w", encoding="utf-8") as file:
                json.dump(self._points, file)
            os.replace(f"{self._path}.new", self._path)
        except OSError as error:
            self._log(f"{self._path} cannot be written: {error}")


def _read(path: str) -> Dict[int, Point]:
    try:
        with open(path, encoding="utf-8") as file:
            document: Any = json.loads(file.read(_MAX_BYTES))
        return {int(span): (int(step), float(value)) for span, (step, value) in document.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError):
        # It is not ours, or is damaged: the unit measures anew.
        return {}
