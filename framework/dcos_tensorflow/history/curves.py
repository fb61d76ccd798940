"""The values of the training over time: the points of the curves of the present run.

The scheduler calls ``Curves.observe`` after each step, from its first one on; so this imports
nothing of the code that shows them (``/v1/curves``) or keeps them (``keeper``). Long curves are
thinned out.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from dcos_tensorflow.core.model.report import Report, unit_of
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.restarts.outcome import deciding_tasks
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, TaskRole
from dcos_tensorflow.core.spec.workload_spec import SweepSpec
from dcos_tensorflow.history.points import (
    MOST_POINTS,
    MOST_VALUES,
    Point,
    Points,
    point_of,
    thinned,
)

#: Curves are kept of so many tasks: those that decide, then those that evaluate.
MOST_TASKS = 8
#: Of a sweep they are kept of so many trials, the first ones.
MOST_TRIALS = 1000
#: So many new points wait for their keeper; after more he takes all points again.
_MOST_NEW = 10_000
#: Of so many metrics of a task the least and the most are known: a report has fewer.
_MOST_NAMES = 200
#: Fewer points are no curve, however many metrics each has.
_FEWEST = 3


class Curves:
    """The points of one run. ``observe`` is called by one thread, all else by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: dict[str, list[Point]] = {}
        #: Of each task how many values its points have.
        self._values: dict[str, int] = {}
        #: What no keeper has taken yet, and whether more has changed than that.
        self._new: list[tuple[str, Point]] = []
        self._changed = False
        #: Of each task the step at which each of its metrics was told last.
        self._told_at: dict[str, dict[str, int]] = defaultdict(dict)
        #: Of each task the least and the most value of each metric that a point has had.
        self._ends: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
        #: Of each task the points of steps before that of the report that told them.
        self._between: dict[str, deque[Point]] = defaultdict(lambda: deque(maxlen=MOST_POINTS))
        self._reports: Mapping[str, Report] = {}
        self._spec: ServiceSpec | None = None
        self._tasks: tuple[str, ...] = ()

    def observe(self, state: ServiceState) -> None:
        """Keep what is new since the last call; with no new report it costs nothing."""
        if state.told.reports is self._reports:
            return
        self._reports = state.told.reports
        if state.spec is not self._spec:
            self._spec, self._tasks = state.spec, followed(state.spec)
        for name in self._tasks:
            record = state.tasks.get(name)
            if record is None:
                continue
            self._take(name, self._reports.get(record.task_id, {}))
        for name, report in trials(state):
            self._take(name, report)

    @property
    def has_new(self) -> bool:
        """Say whether there is something that no keeper has taken yet."""
        return bool(self._new) or self._changed

    def points(self) -> dict[str, tuple[Point, ...]]:
        """Return the points by task, oldest first."""
        with self._lock:
            return self._all()

    def take(self, *, anew: bool) -> tuple[list[tuple[str, Point]], Points | None]:
        """Return what is new since the last call, and all points of the same moment.

        Those are None where nothing else has changed, unless ``anew`` asks for them.
        """
        with self._lock:
            new, everything = self._new, self._all() if anew or self._changed else None
            self._new, self._changed = [], False
            return new, everything

    def begin_with(self, earlier: Points) -> None:
        """Add the points that a scheduler of before has kept of this run."""
        with self._lock:
            for name, points in earlier.items():
                double = [point for point in self._between[name] if _have(points, point)]
                both = [*points, *(p for p in self._points.get(name, ()) if p not in double)]
                known = {(point.at, point.step): point for point in both}
                self._points[name] = sorted(known.values(), key=lambda point: point.at)
                self._values[name] = sum(point.values for point in known.values())
                for point in points:
                    _widen(self._ends[name], point)
            self._changed = True
            self._bound()

    def _all(self) -> dict[str, tuple[Point, ...]]:
        return {name: tuple(points) for name, points in self._points.items()}

    def _take(self, name: str, report: Report) -> None:
        told, ends = report.get("progress"), self._ends[name]
        if not isinstance(told, Mapping):
            return
        points = list(_told(told, self._told_at[name]))
        for point in points:
            _widen(ends, point)
        # What came and went between two reports: the best value may be one of them.
        for point in (*_extremes(told, ends), *points):
            self._keep(name, point, is_newest=point.step == told.get("step"))

    def _keep(self, name: str, point: Point, *, is_newest: bool) -> None:
        with self._lock:
            _widen(self._ends[name], point)
            points = self._points.setdefault(name, [])
            if points and points[-1] == point:
                return
            if not is_newest:
                if _have(points, point):
                    return
                self._between[name].append(point)
            points.append(point)
            self._values[name] = self._values.get(name, 0) + point.values
            self._new.append((name, point))
            if len(self._new) > _MOST_NEW:
                self._new, self._changed = [], True
            self._bound()

    def _bound(self) -> None:
        for name, points in self._points.items():
            while len(points) > MOST_POINTS:
                self._thin(name)
        while sum(self._values.values()) > MOST_VALUES:
            longest = max(self._values, key=self._values.__getitem__)
            if len(self._points[longest]) <= _FEWEST:
                return
            self._thin(longest)

    def _thin(self, name: str) -> None:
        points = self._points[name]
        points[:] = thinned(points)
        self._values[name] = sum(point.values for point in points)
        self._changed = True


def followed(spec: ServiceSpec) -> tuple[str, ...]:
    """Return the tasks whose curves are kept."""
    names = [n for r in spec.roles if r.role is TaskRole.EVALUATOR for n in r.task_names()]
    return tuple(dict.fromkeys([*deciding_tasks(spec), *names]))[:MOST_TASKS]


def trials(state: ServiceState) -> Iterator[tuple[str, Report]]:
    """Yield what each slot tells of the trial that it has or had, and how its curve is called."""
    if not isinstance(state.spec.workload, SweepSpec):
        return
    decider = deciding_tasks(state.spec)[0]
    for slot, gang in state.gangs.items():
        record = gang.tasks.get(f"{slot}-{decider}")
        report = state.told.reports.get(record.task_id, {}) if record is not None else {}
        told = unit_of(report)
        if told is not None and 0 <= told[0] < MOST_TRIALS:
            yield f"trial-{told[0]}", report


def _have(points: Iterable[Point], one: Point) -> bool:
    """Say whether there is a point of the same step that tells as much."""
    return any(p.step == one.step and one.metrics.items() <= p.metrics.items() for p in points)


def _widen(ends: dict[str, tuple[float, float]], point: Point) -> None:
    """Take the values of a point into the least and the most of each metric."""
    for name, value in point.metrics.items():
        if math.isfinite(value) and (name in ends or len(ends) < _MOST_NAMES):
            least, most = ends.get(name, (value, value))
            ends[name] = (min(least, value), max(most, value))


def _extremes(told: Mapping[str, Any], ends: Mapping[str, tuple[float, float]]) -> list[Point]:
    """Return the least and the most that a report tells of metrics, where no point had them."""
    given = told.get("extremes")
    found: dict[int | None, dict[str, float]] = defaultdict(dict)
    for name, values in islice(given.items(), _MOST_NAMES) if isinstance(given, Mapping) else ():
        least, most = ends.get(name, (math.inf, -math.inf))
        for each in values if isinstance(values, list) else ():
            if not (isinstance(each, list) and len(each) == 2):
                continue
            point = point_of(told.get("at"), each[0], {name: each[1]})
            value = None if point is None else point.metrics.get(name)
            if point is not None and value is not None and not least <= value <= most:
                found[point.step].update(point.metrics)
    points = (point_of(told.get("at"), step, metrics) for step, metrics in found.items())
    return [point for point in points if point is not None]


def _told(told: Mapping[str, Any], before: dict[str, int]) -> Iterator[Point]:
    """Yield what a report's progress tells anew of the training.

    A report carries all that is known. A metric that was told at an earlier step is a point of that
    step, once: a validation between epochs is no line of stairs. ``before`` holds the step at which
    each metric was told last, and is kept up.
    """
    named = {name: told[name] for name in ("loss", "accuracy") if name in told}
    more, earlier = told.get("metrics"), told.get("told_at")
    known = {**named, **(more if isinstance(more, Mapping) else {})}
    late: dict[int, dict[str, Any]] = defaultdict(dict)
    for name, step in earlier.items() if isinstance(earlier, Mapping) else ():
        if name in known and isinstance(step, int):
            value = known.pop(name)
            if before.get(name) != step:
                before[name] = step
                late[step][name] = value
    newest = told.get("step")
    if isinstance(newest, int):
        before.update(dict.fromkeys(known, newest))
    for step, metrics in (*sorted(late.items()), (newest, known)):
        point = point_of(told.get("at"), step, metrics)
        if point is not None:
            yield point
