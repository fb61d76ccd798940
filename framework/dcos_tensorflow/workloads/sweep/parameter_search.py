"""The parameters of the next trial, by Optuna's samplers. Pure: the same question, the same answer.

Each suggestion asks a study of its own, which holds the results known at that point and nothing
else, and draws from a seed of its own. So it depends on no order of events, and on no other
suggestion.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Iterable, Sequence

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState, create_trial

from dcos_tensorflow.core.spec.workload_spec import (
    Goal,
    Parameter,
    ParameterKind,
    ParameterValue,
    SearchMethod,
    SweepSpec,
)
from dcos_tensorflow.workloads.sweep.trial import FACTOR, Trial, seed_of, worth

#: A suggestion looks at so many trials, the best and the newest, of all that it may know: what it
#: costs does not grow with the sweep. TPE tells at most 25 good ones from the rest.
BEST, NEWEST = 100, 400

# It tells of each study that is made, and of each way to sample that its own user may not expect.
optuna.logging.set_verbosity(optuna.logging.ERROR)


def suggested(
    spec: SweepSpec, number: int, known: Sequence[Trial], running: Iterable[Trial]
) -> dict[str, ParameterValue]:
    """Return the parameters of trial ``number``.

    ``known`` are trials that have ended, by their numbers; ``running`` are those of which the
    parameters count and nothing else.
    """
    seed = seed_of(spec, number)
    if spec.method is SearchMethod.TPE:
        sampler: optuna.samplers.BaseSampler = optuna.samplers.TPESampler(seed=seed)
        ended = ((finished, trial) for trial in _looked_at(spec, known))
        told = (*ended, *((_running, trial) for trial in running))
        shown = [seen for see, trial in told if (seen := _if_possible(see, spec, trial))]
    else:
        sampler, shown = optuna.samplers.RandomSampler(seed=seed), []
    study = optuna.create_study(direction=spec.goal.value, sampler=sampler)
    study.add_trials(shown)
    found = study.ask(_space(spec)).params
    return {p.name: _told(p, found[p.name]) for p in spec.parameters}


def _looked_at(spec: SweepSpec, known: Sequence[Trial]) -> list[Trial]:
    """Return the best and the newest, in the order of their numbers."""
    older, newest = known[:-NEWEST], known[-NEWEST:]
    valued = [
        (worth(spec.goal, trial.value), trial.number) for trial in older if trial.value is not None
    ]
    best = {number for _, number in heapq.nsmallest(BEST, valued)}
    return [*(trial for trial in older if trial.number in best), *newest]


def finished(spec: SweepSpec, trial: Trial) -> FrozenTrial:
    """Return a trial that has ended as Optuna sees it."""
    points = {FACTOR**turn: _seen(spec, p.value) for turn, p in enumerate(trial.in_order)}
    if trial.stopped_at is not None:
        state = TrialState.PRUNED
    elif trial.value is not None:
        state = TrialState.COMPLETE
    else:
        state = TrialState.FAIL
    return create_trial(
        state=state,
        value=_seen(spec, trial.value or 0.0) if state is TrialState.COMPLETE else None,
        params=_params(trial),
        distributions=_space(spec),
        intermediate_values=points,
    )


def _seen(spec: SweepSpec, value: float) -> float:
    """Return a value as Optuna may see it: it knows infinity, and takes NaN for none."""
    infinity = -math.inf if spec.goal is Goal.MAXIMIZE else math.inf
    return value if math.isfinite(value) else infinity


def _if_possible(
    see: Callable[[SweepSpec, Trial], FrozenTrial], spec: SweepSpec, trial: Trial
) -> FrozenTrial | None:
    """Return a trial as Optuna sees it; None where other options had other parameters for it."""
    try:
        return see(spec, trial)
    except ValueError:
        return None


def _running(spec: SweepSpec, trial: Trial) -> FrozenTrial:
    return create_trial(state=TrialState.RUNNING, params=_params(trial), distributions=_space(spec))


def _as_choice(value: object) -> bool | float | str | None:
    """Return a choice as Optuna knows it: it has no lists."""
    return f"list {json.dumps(value)}" if isinstance(value, list | tuple) else value  # type: ignore[return-value]


def _params(trial: Trial) -> dict[str, bool | float | str | None]:
    return {name: _as_choice(value) for name, value in trial.parameters.items()}


def _told(parameter: Parameter, value: ParameterValue) -> ParameterValue:
    """Return a value that Optuna has suggested as a trial has it."""
    return next((one for one in parameter.choices if _as_choice(one) == value), value)


def _space(spec: SweepSpec) -> dict[str, BaseDistribution]:
    return {parameter.name: _distribution(parameter) for parameter in spec.parameters}


def _distribution(parameter: Parameter) -> BaseDistribution:
    low, high = parameter.low, parameter.high
    if parameter.kind is ParameterKind.CHOICE:
        return CategoricalDistribution([_as_choice(value) for value in parameter.choices])
    if parameter.kind is ParameterKind.INT:
        step = int(parameter.step) or 1
        return IntDistribution(int(low), int(high), log=parameter.log, step=step)
    return FloatDistribution(low, high, log=parameter.log, step=parameter.step or None)
