"""Points of curves: a task's report of its training at one moment; fewer of them; as a line.

Used by all of this room, and by ``api.views.curves``, which shows them. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dcos_tensorflow.core.contract import METRIC_NAME_LENGTH, MOST_METRICS, MOST_STEPS
from dcos_tensorflow.core.json_numbers import as_json
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

#: Points of a task's curves. One with more is thinned out.
MOST_POINTS = 2000
#: Values of a run, over all tasks and metrics. With more, the longest curves are thinned out.
MOST_VALUES = 50_000
#: Metrics of a point: loss and accuracy have places of their own in a report.
_MOST_METRICS = MOST_METRICS + 2
#: What is read is no more than this: what is appended before a curve is thinned out, twice over.
_MOST_READ = 2 * MOST_VALUES
#: No line of ours has more letters.
_MOST_LINE = 16_384


#: Takes secrets out of what is kept.
Clean = Callable[[Any], Any]


@dataclass(frozen=True)
class Point:
    """What a task had reported at one moment."""

    #: Unix seconds, the task's clock.
    at: float
    #: The training step; None where the job tells none.
    step: int | None
    #: Loss, accuracy and what else the job tells, by name.
    metrics: Mapping[str, float]

    @property
    def values(self) -> int:
        """Return how many values it counts for."""
        return len(self.metrics) or 1


#: The points of a run by task, each task's in the order in which it told them.
Points = Mapping[str, Sequence[Point]]


def thinned(points: Sequence[Point]) -> list[Point]:
    """Return a quarter of the points less, or more; the first and the newest stay.

    Those go whose neighbours are nearest in time: however often a curve is thinned out, its begin
    is as dense as what comes later, but for what is newest.
    """
    between = zip(points, points[2:], strict=False)
    gaps = [after.at - before.at for before, after in between]
    if not gaps:
        return list(points)
    near, kept, dropped = sorted(gaps)[len(gaps) // 2], [points[0]], False
    for point, gap in zip(points[1:-1], gaps, strict=True):
        dropped = gap <= near and not dropped
        if not dropped:
            kept.append(point)
    return [*kept, points[-1]]


def line_of(task: str, point: Point, clean: Clean) -> str:
    """Return a point as a line."""
    metrics = {name: as_json(value) for name, value in point.metrics.items()}
    told = {"task": task, "at": point.at, "step": point.step, "metrics": metrics}
    return json.dumps(clean(told), allow_nan=False, separators=(",", ":")) + "\n"


def lines_of(points: Points, clean: Clean) -> list[str]:
    """Return all points as lines, the oldest first."""
    told = [(point.at, task, point) for task, found in points.items() for point in found]
    ordered = sorted(told, key=lambda each: each[0])
    return [line_of(task, point, clean) for _, task, point in ordered]


def point_of(at: Any, step: Any, metrics: Any) -> Point | None:
    """Return the point that a report tells, without what is none of it; None where nothing is."""
    moment = _number(at)
    if moment is None or not math.isfinite(moment) or not isinstance(metrics, Mapping):
        return None
    read = ((str(name), _number(value)) for name, value in metrics.items())
    told = [(n, v) for n, v in read if v is not None and len(n) <= METRIC_NAME_LENGTH]
    is_step = isinstance(step, int) and not isinstance(step, bool) and abs(step) <= MOST_STEPS
    if not is_step and not told:
        return None
    return Point(moment, step if is_step else None, dict(told[:_MOST_METRICS]))


def points_in(lines: Iterable[str]) -> dict[str, list[Point]]:
    """Return the points by task; what is no whole line of ours, or too much, is left out."""
    found: dict[str, list[Point]] = {}
    values = 0
    for line in lines:
        if len(line) > _MOST_LINE:
            continue
        try:
            told = read_json(line)
            task, point = str(told["task"]), point_of(told["at"], told["step"], told["metrics"])
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
        if point is None:
            continue
        values += point.values
        if values > _MOST_READ:
            break
        found.setdefault(task, []).append(point)
    return found


def _number(value: Any) -> float | None:
    # What was masked is no number, and no float is as large as an integer can be.
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
