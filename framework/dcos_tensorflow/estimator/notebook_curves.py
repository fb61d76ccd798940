"""Curves of a training as a drawing in SVG: one chart for each metric, one line for each task.

Drawn by hand: a picture of a few lines that stands in a saved notebook needs no library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from html import escape
from pathlib import Path

from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.history import folder
from dcos_tensorflow.history.picture import metrics_of
from dcos_tensorflow.history.points import Points
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.svg import share, ticks

_WIDTH, _HEIGHT, _TOP, _BOTTOM, _RIGHT = 320, 160, 20, 140, 8
#: How wide a letter is, of fonts whose letters are all alike.
_LETTER = 6.2
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
#: A line with more points is drawn with every other one.
_MOST_POINTS = 500
_MOST_CHARTS = 6

#: Values by step.
Line = Mapping[float, float]


class NotebookCurves:
    """The curves of one run, as its scheduler keeps them in ``history``, the service's folder.

    A drawing (``notebook.Drawing``). Whatever the notebook missed while the job ran is in it.
    """

    def __init__(self, history: Path) -> None:
        self._history = history
        self._run = ""
        #: The folder and the age of the points that are drawn.
        self._seen: tuple[Path, int] | None = None
        self._drawn = ""

    def html(self, snapshot: Snapshot | None) -> str:
        """Return the charts beside each other; empty where there is no line to draw."""
        if snapshot is not None:
            self._run = str(snapshot.run)
        # A disk that fails costs the picture, and not the look at the job.
        with suppress(OSError, ValueError):
            runs = folder.runs_in(self._history)
            # Of a job that had ended at the first look it is the newest one.
            called = [r for r in runs if self._run in ("", str(folder.number_of(r.path.name)))]
            for run in called[:1]:
                seen = run.path, run.points_file.stat().st_mtime_ns
                if seen != self._seen:
                    self._drawn, self._seen = charts(run.points()), seen
        return self._drawn


def charts(points: Points) -> str:
    """Return a chart of each metric that a task told twice or more.

    It is over steps, and over seconds where a task told a value without a step.
    """
    drawn = []
    for name in metrics_of(points):
        told = {task: [p for p in of if name in p.metrics] for task, of in points.items()}
        has_steps = all(p.step is not None for of in told.values() for p in of)
        first = min(p.at for of in told.values() for p in of)
        lines = {
            task: _line_of(
                {float((p.step or 0) if has_steps else p.at - first): p.metrics[name] for p in of}
            )
            for task, of in told.items()
            if of
        }
        if any(len(line) > 1 for line in lines.values()):
            drawn.append(chart(name, lines))
    return "".join(drawn[:_MOST_CHARTS])


def _line_of(told: Line) -> Line:
    """Return what is drawn of it: numbers alone, and not too many; the ends stay."""
    line = sorted((x, y) for x, y in told.items() if math.isfinite(y))
    while len(line) > _MOST_POINTS:
        line = [*line[:-1:2], line[-1]]
    return dict(line)


def chart(name: str, lines: Mapping[str, Line]) -> str:
    """Return one chart: a line for each task, from the first step to the last."""
    points = [point for line in lines.values() for point in line.items()]
    across, upwards = _ends(x for x, _ in points), _ends(y for _, y in points)
    up, along = ticks(*upwards, 3), ticks(*across, 4)
    # Wide enough for the longest number, whatever it is.
    place = _Place(_LETTER * max(len(text) for _, text in up) + 10, across, upwards)
    drawn = "".join(_line(line, place, n) for n, line in enumerate(lines.values()))
    marks = [_label(place.left - 4, place.y(v) + 3, "end", text) for v, text in up]
    marks += [
        _label(place.x(v), _HEIGHT - 5, _anchor(place.x(v), place, len(text)), text)
        for v, text in along
    ]
    frame = f"M{place.left:.0f} {_TOP}V{_BOTTOM}H{_WIDTH - _RIGHT}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"'
        f' font-family="monospace" font-size="10" fill="gray">'
        f'<path d="{frame}" fill="none" stroke="gray" stroke-opacity="0.4"/>{drawn}'
        f"<title>{escape(', '.join(lines))}</title>{_label(_WIDTH / 2, 12, 'middle', name)}"
        f"{''.join(marks)}</svg>"
    )


@dataclass(frozen=True)
class _Place:
    """Where steps and values are in a chart: ``left`` of it is room for the numbers."""

    left: float
    across: tuple[float, float]
    upwards: tuple[float, float]

    def x(self, step: float) -> float:
        return self.left + (_WIDTH - _RIGHT - self.left) * share(step, *self.across)

    def y(self, value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * share(value, *self.upwards)


def _anchor(x: float, place: _Place, letters: int) -> str:
    """Return on which side of its place a number is written, so that it is whole."""
    half = letters * _LETTER / 2
    return "end" if x + half > _WIDTH else "start" if x - half < place.left - half else "middle"


def _ends(values: Iterable[float]) -> tuple[float, float]:
    known = list(values)
    return min(known), max(known)


def _line(line: Line, place: _Place, number: int) -> str:
    places = " ".join(f"{place.x(x):.1f},{place.y(y):.1f}" for x, y in sorted(line.items()))
    colour = _COLOURS[number % len(_COLOURS)]
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{places}"/>'


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
