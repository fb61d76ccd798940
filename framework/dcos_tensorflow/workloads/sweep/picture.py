"""A sweep as one picture of its finished trials: the best so far, and parallel coordinates.

SVG that can be read on a light and on a dark page. Pure.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import cast

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.spec.workload_spec import ParameterValue
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.svg import BLUE, ORANGE, framed, level, share, ticks, upright, words
from dcos_tensorflow.workloads.sweep.leaderboard import Board, Row

_WIDTH, _LEFT, _RIGHT = 900, 90, 60
#: Where each of the two parts begins and ends, from above.
_CURVE, _LINES = (60, 280), (360, 620)
_HEIGHT = 660
_BEST, _PLAIN = ORANGE, BLUE
#: More lines than that are one surface.
_MOST_LINES = 500
#: Numbers that differ by more than that are spread by their logarithm.
_WIDE = 100.0


def picture(board: Board, title: str) -> str:
    """Return the picture of a sweep; with an empty frame while no trial has finished."""
    parts = [*_curve(board), *_coordinates(board)]
    return framed(title, _WIDTH, _HEIGHT, _LEFT, parts)


def _curve(board: Board) -> Iterator[str]:
    """Yield the finished trials as dots, and the best so far as a line of steps."""
    top, bottom = _CURVE
    title = f"{board.metric}: each finished trial, and the best so far"
    yield words(_LEFT, top - 10, title, "start")
    yield f'<path class="axis" d="M{_LEFT} {top}V{bottom}H{_WIDTH - _RIGHT}" fill="none"/>'
    rows = [row for row in board.finished if math.isfinite(row.value or 0.0)]
    if len(rows) < len(board.finished):
        told = f"{counted(len(board.finished) - len(rows), 'trial')} ended with NaN or infinity"
        yield words(_WIDTH - _RIGHT, top - 10, told, "end")
    if not rows:
        return
    values = [row.value or 0.0 for row in rows]
    low, high = min(values), max(values)
    last = max(row.number for row in rows)

    def x(number: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (number / last if last else 0.5)

    def y(value: float) -> float:
        return bottom - (bottom - top) * share(value, low, high)

    for row in rows:
        place = f'cx="{x(row.number):.1f}" cy="{y(row.value or 0.0):.1f}"'
        yield f'<circle {place} r="3" fill="{_PLAIN}" fill-opacity=".6"/>'
    path = ""
    for number, value in board.best_so_far():
        if not math.isfinite(value):
            continue
        path += f"H{x(number):.1f}V{y(value):.1f}" if path else f"M{x(number):.1f} {y(value):.1f}"
    yield f'<path d="{path}" fill="none" stroke="{_BEST}" stroke-width="2.5"/>'
    yield from upright(_LEFT, [(y(value), text) for value, text in ticks(low, high)])
    whole = [(place, text) for place, text in ticks(0, last, 8) if float(place).is_integer()]
    yield from level(bottom, [(x(place), text) for place, text in whole])
    yield words(_WIDTH - _RIGHT, bottom + 36, "trial", "end")


@dataclass(frozen=True)
class _Axis:
    """One parameter, or the objective: where each value is, from 0 at the foot to 1."""

    name: str
    values: Sequence[ParameterValue]

    @functools.cached_property
    def numbers(self) -> list[float]:
        """Return all values as numbers; none where some are words."""
        plain = [v for v in self.values if isinstance(v, int | float) and not isinstance(v, bool)]
        return [float(value) for value in plain] if len(plain) == len(self.values) else []

    @functools.cached_property
    def words(self) -> list[str]:
        return sorted({str(value) for value in self.values})

    def place(self, value: ParameterValue) -> float:
        numbers = self.numbers
        if not numbers:
            return self.words.index(str(value)) / max(1, len(self.words) - 1)
        low, high, number = min(numbers), max(numbers), float(cast("float", value))
        if low > 0 and high / low > _WIDE:
            low, high, number = math.log(low), math.log(high), math.log(number)
        return share(number, low, high)

    def marks(self) -> Iterator[tuple[float, str]]:
        """Yield what is written beside the axis, and where."""
        numbers = self.numbers
        if numbers:
            for number in sorted({min(numbers), max(numbers)}):
                yield self.place(number), f"{number:.4g}"
        else:
            for word in self.words[:12]:
                yield self.place(word), word[:16]


def _coordinates(board: Board) -> Iterator[str]:
    """Yield an axis for each parameter and for the objective, and a line for each trial."""
    top, bottom = _LINES
    if board.best is None or not board.best.parameters:
        return
    # Under other options trials may have had other parameters.
    names = tuple(board.best.parameters)
    finite = (row for row in board.finished if math.isfinite(row.value or 0.0))
    alike = [row for row in finite if row.parameters.keys() == set(names)]
    rows = alike[:_MOST_LINES]
    axes = [_Axis(name, [row.parameters[name] for row in rows]) for name in names]
    axes.append(_Axis(board.metric, [row.value or 0.0 for row in rows]))
    apart = (_WIDTH - _LEFT - _RIGHT) / max(1, len(axes) - 1)

    def path(row: Row) -> str:
        values = (*(row.parameters[name] for name in names), row.value or 0.0)
        spots = (
            f"{_LEFT + apart * turn:.1f} {bottom - (bottom - top) * axis.place(value):.1f}"
            for turn, (axis, value) in enumerate(zip(axes, values, strict=True))
        )
        return "M" + "L".join(spots)

    # The best one lies above the others.
    for row in reversed(rows):
        strong = max(0.12, 0.7 * (1 - (row.rank or 1) / (len(rows) + 1)))
        line = f'stroke="{_PLAIN}" stroke-opacity="{strong:.2f}"'
        if row is rows[0]:
            line = f'stroke="{_BEST}" stroke-width="3"'
        yield f'<path d="{path(row)}" fill="none" {line}/>'
    for turn, axis in enumerate(axes):
        x = _LEFT + apart * turn
        yield f'<path class="axis" d="M{x:.1f} {top}V{bottom}"/>'
        # The outer names reach inwards: however long they are, they are whole.
        anchor = "start" if turn == 0 else "end" if turn == len(axes) - 1 else "middle"
        yield words(x, top - 12, axis.name, anchor)
        for place, mark in axis.marks():
            yield words(x + 6, bottom - (bottom - top) * place + 4, mark, "start", 11)
