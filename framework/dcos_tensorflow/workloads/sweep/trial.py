"""One trial: its parameters, its measurements, and its value in the end. Pure."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from dcos_tensorflow.core.json_numbers import as_json, as_number
from dcos_tensorflow.core.spec.workload_spec import Goal, ParameterValue, SweepSpec
from dcos_tensorflow.records import dataclass

#: A trial is judged once in each span of steps, each so many times as long as the one before.
FACTOR = 3
#: No training has more steps.
_MOST_STEPS = 10**9


@dataclass(frozen=True)
class Point:
    """The first value of the objective's metric in a span of steps, and its step."""

    step: int
    value: float


@dataclass(frozen=True)
class Trial:
    """A trial of a sweep.

    ``known`` is how many trials, those of the lowest numbers, it was suggested and is judged by;
    ``without`` are the numbers of those among them that had not ended then, and do not count.
    ``points`` are by the number of their span. ``ended`` says that its outcome is known: then
    ``value`` is what it counts with (NaN and infinity are the worst: ``worth``), None where it has
    none, and ``stopped_at`` the step at which
    it counts as stopped early, whether it was stopped in time or had reached its end meanwhile.
    ``why`` says in words why it was stopped or counts for nothing.
    """

    number: int
    parameters: Mapping[str, ParameterValue]
    known: int
    points: Mapping[int, Point] = field(default_factory=dict)
    ended: bool = False
    value: float | None = None
    stopped_at: int | None = None
    why: str = ""
    without: frozenset[int] = frozenset()

    def with_points(self, spec: SweepSpec, told: object) -> Trial:
        """Return the trial with these measured values (``Points``); what is none is passed over."""
        points: dict[int, Point] = {}
        for step, value in _pairs(told):
            span = span_of(spec, step)
            if span is not None:
                points.setdefault(span, Point(step, value))
        return replace(self, points=points)

    @functools.cached_property
    def in_order(self) -> tuple[Point, ...]:
        """Return the points by their steps."""
        return tuple(self.points[span] for span in sorted(self.points))

    def measured(self) -> list[list[float | str]]:
        """Return the points as they are kept."""
        return [[point.step, as_json(point.value)] for point in self.in_order]


def span_of(spec: SweepSpec, step: int) -> int | None:
    """Return in which span of steps this one is; None before the first."""
    found = None
    for span, begin in enumerate(spans(spec)):
        if step < begin:
            break
        found = span
    return found


def spans(spec: SweepSpec) -> Iterator[int]:
    """Yield the first step of each span."""
    begin = max(1, spec.min_steps)
    while begin <= _MOST_STEPS:
        yield begin
        begin *= FACTOR


def worth(goal: Goal, value: float) -> float:
    """Return a number that is the smaller the better a value of the objective is.

    What is not finite is the worst, whatever the goal: the training has diverged.
    """
    if not math.isfinite(value):
        return math.inf
    return -value if goal is Goal.MAXIMIZE else value


def _pairs(told: object) -> Iterator[tuple[int, float]]:
    for pair in told if isinstance(told, list | tuple) else ():
        if isinstance(pair, list | tuple) and len(pair) == 2:
            step, value = map(as_number, pair)
            if step is not None and value is not None and math.isfinite(step):
                yield int(step), value


def combinations(spec: SweepSpec) -> list[dict[str, ParameterValue]]:
    """Return the parameters of each trial: no order of the axes, so that the first say something.

    Every parameter has an end of values: options with others are refused.
    """
    names = [parameter.name for parameter in spec.parameters]
    points = list(itertools.product(*(parameter.values() or () for parameter in spec.parameters)))
    order = sorted(range(len(points)), key=lambda index: seed_of(spec, index))
    return [dict(zip(names, points[index], strict=True)) for index in order[: spec.trials]]


def seed_of(spec: SweepSpec, number: int) -> int:
    """Return a seed of 32 bits, as numpy takes them, for one of many draws."""
    text = f"{spec.seed}/{number}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
