"""Which trials are stopped early: the rules of Optuna's pruners, over the values of others.

A trial is compared with the trials that were known when it was suggested, turn by turn: its first
value with their first values, its second with their second. So the answer is the same whatever runs
beside it. Optuna's own pruners look at all trials of a study as they are at that moment, running
ones too; the tests compare these rules with them. Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from dcos_tensorflow.core.spec.workload_spec import EarlyStopping, Goal, SweepSpec
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.workloads.sweep.trial import FACTOR, Point, Trial, worth

#: A median of fewer trials says nothing (Optuna: MedianPruner, n_startup_trials).
FEWEST_FOR_MEDIAN = 5


@dataclass(frozen=True)
class Stopped:
    """Where a trial is stopped: ``turn`` counts its values from 0."""

    turn: int
    step: int
    why: str


def stopped(spec: SweepSpec, trial: Trial, known: Sequence[Trial]) -> Stopped | None:
    """Return the first of a trial's values at which it is stopped; None when it goes on."""
    if spec.early_stopping is EarlyStopping.NONE:
        return None
    rule = _asha if spec.early_stopping is EarlyStopping.ASHA else _median
    points = trial.in_order
    for turn, point in enumerate(points):
        why = rule(spec, points[: turn + 1], known)
        if why:
            text = f"{spec.metric} {point.value:.4g} at step {point.step} {why}"
            return Stopped(turn, point.step, text)
    return None


def _asha(spec: SweepSpec, points: Sequence[Point], known: Sequence[Trial]) -> str:
    """Stop all but the best third (Optuna: SuccessiveHalvingPruner; one goes on in any case)."""
    turn, own = len(points) - 1, worth(spec.goal, points[-1].value)
    values = sorted((own, *_at(spec, turn, known)))
    kept = max(1, len(values) // FACTOR)
    if values[kept - 1] >= own:
        return ""
    return f"is not among the best {kept} of {len(values)}"


def _median(spec: SweepSpec, points: Sequence[Point], known: Sequence[Trial]) -> str:
    """Stop what has never been as good as the median of those that reached their end."""
    complete = [trial for trial in known if trial.value is not None]
    values = _at(spec, len(points) - 1, complete)
    if len(complete) < FEWEST_FOR_MEDIAN or not values:
        return ""
    best = min(worth(spec.goal, point.value) for point in points)
    middle = statistics.median(values)
    if middle >= best:
        return ""
    value = -middle if spec.goal is Goal.MAXIMIZE else middle
    return f"is worse than {value:.4g}, the median of {len(values)}"


def _at(spec: SweepSpec, turn: int, trials: Sequence[Trial]) -> list[float]:
    """Return what the others are worth at that turn: the smaller the better."""
    found = (trial.in_order for trial in trials)
    return [worth(spec.goal, points[turn].value) for points in found if turn < len(points)]
