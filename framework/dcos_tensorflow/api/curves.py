"""What the training has reported, over time: the points of curves (``/v1/curves``).

The scheduler calls ``Curves.observe`` after each step, from its first one on; so this imports
nothing of what shows them. Points are kept in memory, as many as a picture can show, and begin
anew with each scheduler.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.model.report import Report
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import ServiceSpec, TaskRole
from dcos_tensorflow.core.recovery.outcome import deciding_tasks
from dcos_tensorflow.records import dataclass

#: Points of a curve. One with more is thinned out to half of them.
MOST_POINTS = 2000
#: Curves are kept of so many tasks: those that decide, then those that evaluate.
MOST_TASKS = 8
#: Metrics of a point; the runner keeps fifty beside loss and accuracy.
_MOST_METRICS = 52


@dataclass(frozen=True)
class Point:
    """What a task had reported at one moment."""

    #: Unix seconds, the task's clock.
    at: float
    #: The training step; None where the job tells none.
    step: int | None
    #: Loss, accuracy and what else the job tells, by name.
    metrics: Mapping[str, float]


class Curves:
    """The points of one service. ``observe`` is called by one thread, ``points`` by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: dict[str, list[Point]] = {}
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
            point = None if record is None else point_of(self._reports.get(record.task_id, {}))
            if point is not None:
                self._keep(name, point)

    def points(self) -> dict[str, tuple[Point, ...]]:
        """Return the points by task, oldest first."""
        with self._lock:
            return {name: tuple(points) for name, points in self._points.items()}

    def _keep(self, name: str, point: Point) -> None:
        with self._lock:
            points = self._points.setdefault(name, [])
            if points and points[-1] == point:
                return
            points.append(point)
            if len(points) > MOST_POINTS:
                # The newest stays: it is what the others lead to.
                del points[-2::-2]


def followed(spec: ServiceSpec) -> tuple[str, ...]:
    """Return the tasks whose curves are kept."""
    names = [n for r in spec.roles if r.role is TaskRole.EVALUATOR for n in r.task_names()]
    return tuple(dict.fromkeys([*deciding_tasks(spec), *names]))[:MOST_TASKS]


def point_of(report: Report) -> Point | None:
    """Return what a report tells of the training; None when it tells nothing."""
    told = report.get("progress")
    if not isinstance(told, Mapping):
        return None
    at, step = _number(told.get("at")), told.get("step")
    more = told.get("metrics")
    known = {
        **{name: told.get(name) for name in ("loss", "accuracy")},
        **(more if isinstance(more, Mapping) else {}),
    }
    numbers = {str(name): _number(value) for name, value in list(known.items())[:_MOST_METRICS]}
    metrics = {name: value for name, value in numbers.items() if value is not None}
    is_step = isinstance(step, int) and not isinstance(step, bool)
    if at is None or not (is_step or metrics):
        return None
    return Point(at, step if is_step else None, metrics)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None
