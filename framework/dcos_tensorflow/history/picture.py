"""Runs laid over each other as one picture of a metric, over steps or over time.

Used by ``dcos-tensorflow plot``. A line is drawn in the order in which it was told: where a restart
has gone back to a checkpoint, so does the line. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from dcos_tensorflow.history.points import Points
from dcos_tensorflow.history.record import Record
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.svg import BLUE, GREEN, ORANGE, framed, level, share, ticks, upright, words

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 900, 90, 30, 60, 360
#: Numbers below the picture.
_ALONG = 8
#: Below the picture: a line for each curve, then for each incident.
_UNDER, _ROW = 416, 20
_COLOURS = (BLUE, ORANGE, GREEN, "#8e5bd0", "#c23b6b", "#1f9aa8", "#8a8a1f", "#a0622d")
_RED = "#d0342c"
_MOST_INCIDENTS = 8
_MOST_LETTERS = 100
_UNITS = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))

#: A place along and a value; None where the line is broken, for what is no number.
_Corner = tuple[float, float] | None


@dataclass(frozen=True)
class Drawn:
    """A run that is drawn."""

    #: What it is called in the picture.
    name: str
    record: Record
    points: Points


@dataclass(frozen=True)
class _Line:
    """What one task of a run told."""

    name: str
    run: int
    corners: Sequence[_Corner]
    newest: float

    @property
    def places(self) -> list[tuple[float, float]]:
        return [corner for corner in self.corners if corner is not None]


@dataclass(frozen=True)
class _Frame:
    first: float
    last: float
    low: float
    high: float

    def x(self, place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * share(place, self.first, self.last)

    def y(self, value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * share(value, self.low, self.high)


def metrics_of(points: Points) -> list[str]:
    """Return the names of the metrics that there are curves of, loss and accuracy first."""
    told = (name for found in points.values() for point in found for name in point.metrics)
    names = dict.fromkeys(told)
    first = [name for name in ("loss", "accuracy") if name in names]
    return list(dict.fromkeys([*first, *names]))


def picture(runs: Sequence[Drawn], metric: str, *, over_time: bool = False) -> str:
    """Return the picture of a metric; with an empty frame where no run has it.

    Over steps it is drawn where all runs that told it told steps, too.
    """
    over_time = over_time or not all(_tells_steps(run.points, metric) for run in runs)
    lines = [
        line
        for number, run in enumerate(runs)
        for line in _lines(run, number, metric, over_time=over_time)
    ]
    places = [place for line in lines for place in line.places]
    frame = _frame(places)
    marks = [
        (run, mark)
        for number, run in enumerate(runs)
        for mark in _incidents(run, over_time=over_time)
    ]
    height = _UNDER + _ROW * (len(lines) + min(len(marks), _MOST_INCIDENTS + 1))
    title = f"{metric} of {', '.join(run.name for run in runs)}"
    parts = [
        *_axes(frame, bool(places), over_time=over_time),
        *_marked(frame, [place for _, (place, _) in marks]),
        *_drawn(frame, lines, by_run=len(runs) > 1),
        *_told(marks, _UNDER + _ROW * len(lines), named=len(runs) > 1),
    ]
    return framed(title, _WIDTH, height, _LEFT, parts)


def _tells_steps(points: Points, metric: str) -> bool:
    told = [p for found in points.values() for p in found if metric in p.metrics]
    return all(point.step is not None for point in told)


def _began(run: Drawn) -> float:
    """Return the moment from which time is counted; unix seconds."""
    started = run.record.get("started_at")
    first = min((point.at for found in run.points.values() for point in found[:1]), default=0.0)
    # Tasks and scheduler have clocks of their own.
    return min(first, float(started)) if isinstance(started, int | float) else first


def _lines(run: Drawn, number: int, metric: str, *, over_time: bool) -> Iterator[_Line]:
    began = _began(run)
    for task, points in run.points.items():
        told = [point for point in points if metric in point.metrics]
        corners: list[_Corner] = []
        for point in told:
            value = point.metrics[metric]
            place = point.at - began if over_time else float(point.step or 0)
            corners.append((place, value) if math.isfinite(value) else None)
        if told:
            yield _Line(f"{run.name} {task}", number, corners, told[-1].metrics[metric])


def _frame(places: Sequence[tuple[float, float]]) -> _Frame:
    along, values = [place for place, _ in places] or [0.0], [value for _, value in places] or [0.0]
    return _Frame(min(along), max(along), min(values), max(values))


def _axes(frame: _Frame, told: bool, *, over_time: bool) -> Iterator[str]:
    right = _WIDTH - _RIGHT
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{_BOTTOM}H{right}" fill="none"/>'
    if not told:
        return
    yield from upright(_LEFT, [(frame.y(v), text) for v, text in ticks(frame.low, frame.high)])
    unit, size = "step", 1.0
    if over_time:
        long = frame.last
        unit, size = next((u for u in _UNITS if long >= 2 * u[1]), _UNITS[-1])
    along = ticks(frame.first / size, frame.last / size, _ALONG)
    yield from level(_BOTTOM, [(frame.x(place * size), text) for place, text in along])
    yield words(right, _BOTTOM + 36, unit, "end")


def _drawn(frame: _Frame, lines: Sequence[_Line], *, by_run: bool) -> Iterator[str]:
    """Yield each line, and below the picture what it is of and where it ended."""
    for number, line in enumerate(lines):
        colour = _COLOURS[(line.run if by_run else number) % len(_COLOURS)]
        # Of several tasks of one run the others are drawn weaker.
        first = not by_run or number == 0 or lines[number - 1].run != line.run
        look = f'fill="none" stroke="{colour}" stroke-opacity="{1 if first else 0.5}"'
        ahead, back = _paths(frame, line.corners)
        yield f'<path d="{ahead}" {look} stroke-width="2" stroke-linejoin="round"/>'
        if back:
            yield f'<path class="back" d="{back}" {look} stroke-width="1" stroke-dasharray="3 3"/>'
        y = _UNDER + _ROW * number
        yield f'<path d="M{_LEFT} {y - 4}h24" {look} stroke-width="3"/>'
        values = [value for _, value in line.places]
        told = f"{line.name}: {line.newest:.4g}"
        if values:
            told += f", between {min(values):.4g} and {max(values):.4g}"
        yield words(_LEFT + 34, y, told, "start")


def _paths(frame: _Frame, corners: Sequence[_Corner]) -> tuple[str, str]:
    """Return the line, and the ways back to a checkpoint, as paths."""
    ahead, back, pen = [], [], False
    for before, corner in pairwise([None, *corners]):
        if corner is None:
            pen = False
            continue
        spot = f"{frame.x(corner[0]):.1f} {frame.y(corner[1]):.1f}"
        if pen and before is not None and corner[0] < before[0]:
            back.append(f"M{frame.x(before[0]):.1f} {frame.y(before[1]):.1f}L{spot}")
            pen = False
        # A point between two that are no numbers is a dot.
        ahead.append(f"L{spot}" if pen else f"M{spot}h.1")
        pen = True
    return "".join(ahead), "".join(back)


def _incidents(run: Drawn, *, over_time: bool) -> Iterator[tuple[float, str]]:
    """Yield where along the incidents are, and what happened."""
    began = _began(run)
    told = sorted((point for found in run.points.values() for point in found), key=lambda p: p.at)
    for incident in run.record.get("incidents") or ():
        at, step = float(incident["at"]), incident.get("step")
        if not over_time and step is None:
            before = [p.step for p in told if p.at <= at and p.step is not None]
            step = before[-1] if before else None
        place = at - began if over_time else step
        if place is not None:
            what, task = str(incident["summary"]), str(incident["task"])
            yield float(place), what if what.startswith(task) else f"{task}: {what}"


def _marked(frame: _Frame, places: Iterable[float]) -> Iterator[str]:
    """Yield a line across for each incident, with its number where these are few."""
    written = -math.inf
    for number, place in enumerate(places, 1):
        if frame.first <= place <= frame.last:
            x = frame.x(place)
            look = f'stroke="{_RED}" stroke-dasharray="5 4" stroke-opacity=".8"'
            yield f'<path class="incident" d="M{x:.1f} {_TOP}V{_BOTTOM}" {look}/>'
            if number <= _MOST_INCIDENTS:
                # Runs that failed at the same step have their numbers beside each other.
                written = max(x, written + 10) if x >= written - 10 else x
                yield words(written, _TOP - 6, str(number), "middle", 11)


def _told(
    marks: Sequence[tuple[Drawn, tuple[float, str]]], y: float, *, named: bool
) -> Iterator[str]:
    """Yield what the incidents were, by their numbers."""
    for number, (run, (_, text)) in enumerate(marks[:_MOST_INCIDENTS], 1):
        whole = f"{number}  {run.name} {text}" if named else f"{number}  {text}"
        short = whole if len(whole) <= _MOST_LETTERS else f"{whole[:_MOST_LETTERS]}..."
        yield words(_LEFT, y + _ROW * (number - 1), short, "start")
    if len(marks) > _MOST_INCIDENTS:
        more = f"and {len(marks) - _MOST_INCIDENTS} more"
        yield words(_LEFT, y + _ROW * _MOST_INCIDENTS, more, "start")
