"""A bill as one picture over time: how many machines there were, and their cost.

Drawn from ``bill.document``, so that every reader of the bill can draw it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.svg import BLUE, GREEN, ORANGE, framed, words

_WIDTH, _LEFT, _RIGHT, _HEIGHT = 900, 90, 60, 590
#: Of the two parts: where it begins and ends, from above.
_MACHINES, _PAID = (80, 260), (340, 540)
#: Time is told in the first of these that fits into it twice; seconds.
_UNITS = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 0.0))
#: A corner of a line, in dots.
_Corner = tuple[float, float]


@dataclass(frozen=True)
class _Part:
    top: float
    bottom: float
    #: The first and the last moment; seconds.
    first: float
    last: float
    #: The largest value that is drawn.
    most: float

    def x(self, at: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (at - self.first) / max(
            1, self.last - self.first
        )

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * (value / self.most if self.most else 0.0)

    def steps(self, values: Sequence[tuple[float, float]]) -> list[_Corner]:
        """Return the corners of a line that keeps its height until the next moment."""
        found = []
        for (at, value), (until, _) in pairwise(values):
            found += [(self.x(at), self.y(value)), (self.x(until), self.y(value))]
        return found

    def axes(self, mark: str) -> Iterator[str]:
        right = _WIDTH - _RIGHT
        yield f'<path class="axis" d="M{_LEFT} {self.top}V{self.bottom}H{right}" fill="none"/>'
        yield words(_LEFT - 8, self.bottom + 4, "0", "end")
        if self.most:
            yield words(_LEFT - 8, self.top + 4, mark, "end")
        long = self.last - self.first
        unit, seconds = next(unit for unit in _UNITS if long >= 2 * unit[1])
        yield words(_LEFT, self.bottom + 18, "0", "middle")
        yield words(right, self.bottom + 18, f"{long / (seconds or 1):.3g} {unit}", "middle")


def picture(told: Mapping[str, Any], title: str) -> str:
    """Return the picture of a bill's document; with empty frames where nothing was bought."""
    moments = told["over_time"]
    first, last = (moments[0]["at"], moments[-1]["at"]) if moments else (0.0, 0.0)
    most = max((each["spot"] + each["on_demand"] for each in moments), default=0)
    paid = max((float(each["paid"]) for each in moments), default=0.0)
    machines = _Part(*_MACHINES, first, last, most)
    cost = _Part(*_PAID, first, last, paid)
    parts = [
        *machines.axes(str(most)),
        *_counted(machines, moments),
        *cost.axes(f"{paid:.2f}"),
        words(_LEFT, _PAID[0] - 12, "paid", "start"),
        *_grown(cost, moments),
    ]
    return framed(title, _WIDTH, _HEIGHT, _LEFT, parts)


def _counted(part: _Part, moments: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the machines as two surfaces of steps, the spot ones below."""
    foot = part.steps([(each["at"], 0) for each in moments])
    spot = part.steps([(each["at"], each["spot"]) for each in moments])
    whole = part.steps([(each["at"], each["spot"] + each["on_demand"]) for each in moments])
    surfaces = (("spot machines", GREEN, foot, spot), ("on-demand machines", BLUE, spot, whole))
    for number, (name, colour, below, above) in enumerate(surfaces):
        if above != below:
            line = _line([*above, *reversed(below)])
            yield f'<path d="{line}Z" fill="{colour}" fill-opacity=".75"/>'
        x, y = _LEFT + number * 150, part.top - 12
        yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/>'
        yield words(x + 18, y, name, "start")


def _grown(part: _Part, moments: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what had been paid as a line."""
    if moments:
        line = _line([(part.x(each["at"]), part.y(float(each["paid"]))) for each in moments])
        yield f'<path d="{line}" fill="none" stroke="{ORANGE}" stroke-width="2.5"/>'


def _line(corners: Sequence[_Corner]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
