"""Curves of a training as a drawing in SVG: one chart for each metric, one line for each task.

Drawn by hand: a picture of a few lines that stands in a saved notebook needs no library. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape

from dcos_tensorflow.client.snapshot import Snapshot, TaskLine
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.svg import share, ticks

_WIDTH, _HEIGHT, _TOP, _BOTTOM, _RIGHT = 320, 160, 20, 140, 8
#: How wide a letter is, of fonts whose letters are all alike.
_LETTER = 6.2
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
#: A line with more points is drawn with every other one from then on.
_MOST_POINTS = 500
_MOST_CHARTS = 6

Points = Mapping[float, float]


class NotebookCurves:
    """What was seen of a training, by metric and task; of a step that came twice the newer one.

    A drawing (``notebook.Drawing``).
    """

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, dict[float, float]]] = {}

    def add(self, task: TaskLine) -> None:
        """Take what a task tells now."""
        step = task.step if task.step is not None else task.epoch
        if step is None:
            return
        known = {"loss": task.loss, "accuracy": task.accuracy, **task.metrics}
        for name, value in known.items():
            if value is not None and math.isfinite(value):
                points = self._seen.setdefault(name, {}).setdefault(task.name, {})
                points[float(step)] = float(value)
                if len(points) > _MOST_POINTS:
                    for each in sorted(points)[1::2]:
                        del points[each]

    def html(self, snapshot: Snapshot | None) -> str:
        """Return the charts beside each other; empty where there is no line to draw."""
        for task in snapshot.tasks if snapshot is not None else ():
            self.add(task)
        drawn = [
            chart(name, lines)
            for name, lines in list(self._seen.items())[:_MOST_CHARTS]
            if any(len(points) > 1 for points in lines.values())
        ]
        return "".join(drawn)


def chart(name: str, lines: Mapping[str, Points]) -> str:
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


def _line(line: Points, place: _Place, number: int) -> str:
    places = " ".join(f"{place.x(x):.1f},{place.y(y):.1f}" for x, y in sorted(line.items()))
    colour = _COLOURS[number % len(_COLOURS)]
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{places}"/>'


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
