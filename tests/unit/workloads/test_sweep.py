"""The trials of a sweep: the same whatever happens on the way."""

import functools
import json
import math
import subprocess
import sys
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import FrozenTrial

from dcos_tensorflow.core.kept.codec import decode, encode
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.workload_spec import (
    EarlyStopping,
    Goal,
    Parameter,
    ParameterKind,
    SearchMethod,
    SweepSpec,
)
from dcos_tensorflow.workloads import producer_of
from dcos_tensorflow.workloads.producer import KeptUnit
from dcos_tensorflow.workloads.sweep import parameter_search
from dcos_tensorflow.workloads.sweep.parameter_search import finished
from dcos_tensorflow.workloads.sweep.stopping import stopped
from dcos_tensorflow.workloads.sweep.trial import FACTOR, Trial
from jobs.worked_sweep import STEPS, Slots, a_sweep, quality

METHODS = st.sampled_from([SearchMethod.RANDOM, SearchMethod.TPE])
STOPPING = st.sampled_from(list(EarlyStopping))


@functools.cache
def without_faults(
    method: SearchMethod, early_stopping: EarlyStopping, seed: int
) -> tuple[Trial, ...]:
    return Slots(a_sweep(20, method, early_stopping, seed=seed), seed=0, parallel=1).work().trials


@settings(deadline=None)
@given(METHODS, STOPPING, st.integers(0, 3), st.integers(0, 10**6), st.integers(1, 5))
def test_the_same_seed_gives_the_same_trials_after_any_crash_and_in_any_order(
    method: SearchMethod, early_stopping: EarlyStopping, seed: int, order: int, parallel: int
) -> None:
    """As far as no trial was suggested without a straggler."""
    spec = a_sweep(20, method, early_stopping, seed=seed)
    found = Slots(spec, order, parallel, crashes=0.1).work().trials
    alike = next((trial.number for trial in found if trial.without), len(found))
    assert found[:alike] == without_faults(method, early_stopping, seed)[:alike]


@settings(deadline=None)
@given(METHODS, STOPPING, st.integers(0, 10**6))
def test_what_trials_count_as_follows_from_what_is_kept_of_them_stragglers_or_not(
    method: SearchMethod, early_stopping: EarlyStopping, order: int
) -> None:
    slots = Slots(a_sweep(20, method, early_stopping, lag=2), order, parallel=2, crashes=0.1)
    trials = slots.work().trials
    assert slots.producer().trials == trials


def test_another_seed_gives_other_trials() -> None:
    first, other = (Slots(a_sweep(8, seed=seed), 0).work().trials for seed in (1, 2))
    assert not {t.parameters["rate"] for t in first} & {t.parameters["rate"] for t in other}


def test_as_many_trials_as_the_lag_are_under_way() -> None:
    sweep = producer_of(a_sweep(10, lag=4))
    assert [unit.number for unit in sweep.next(0, 10).units] == [0, 1, 2, 3]
    sweep.ended(0, UnitState.SUCCEEDED, {"metrics": {"score": 1.0}})
    assert [unit.number for unit in sweep.next(4, 10).units] == [4]


def test_a_trial_is_suggested_without_the_straggler_that_it_would_have_known() -> None:
    sweep = producer_of(a_sweep(10, lag=4))
    sweep.next(0, 4)
    for number in (1, 2, 3):
        sweep.ended(number, UnitState.SUCCEEDED, {"metrics": {"score": 1.0}})
    given_units = sweep.next(4, 2).units
    assert [unit.payload.get("without") for unit in given_units] == [[0], [0]]


@pytest.mark.parametrize("early_stopping", EarlyStopping)
def test_a_trial_that_takes_twenty_times_as_long_holds_up_no_other(
    early_stopping: EarlyStopping,
) -> None:
    """60 trials in 4 slots, the first takes 20 turns, the others one each."""
    sweep = producer_of(a_sweep(60, early_stopping=early_stopping, lag=8))
    ends: dict[int, int] = {}  # When each trial that runs ends, by its number.
    given_so_far, turn = 0, 0
    while given_so_far < 60 or ends:
        for unit in sweep.next(given_so_far, 4 - len(ends)).units:
            ends[unit.number] = turn + (20 if unit.number == 0 else 1)
            given_so_far += 1
        turn = min(ends.values())
        for number in [number for number, end in ends.items() if end == turn]:
            sweep.ended(number, UnitState.SUCCEEDED, {"metrics": {"score": float(number)}})
            del ends[number]
    assert turn <= 21


def test_a_suggestion_looks_at_the_best_and_the_newest_trials_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []

    def counted(spec: SweepSpec, trial: Trial) -> FrozenTrial:
        looked_at.append(trial.number)
        return finished(spec, trial)

    monkeypatch.setattr(parameter_search, "finished", counted)
    many = [ended_trial(number, [-float(number)], complete=True) for number in range(4000)]
    parameter_search.suggested(a_sweep(5000), 4000, many, ())
    best, newest = range(parameter_search.BEST), range(4000 - parameter_search.NEWEST, 4000)
    assert looked_at == [*best, *newest]


def test_no_trial_waits_for_others_where_trials_do_not_depend_on_them() -> None:
    given_units = producer_of(a_sweep(10, SearchMethod.RANDOM)).next(0, 100)
    assert len(given_units.units) == 10
    assert given_units.last


def test_a_unit_that_was_given_and_not_kept_is_given_again() -> None:
    sweep = producer_of(a_sweep(6, lag=6))
    assert sweep.next(0, 4).units[2:] == sweep.next(2, 2).units


def test_a_sweep_that_goes_on_with_another_lag_keeps_what_each_trial_knows() -> None:
    slots = Slots(a_sweep(8, lag=2), 0)
    slots.work()
    slots.spec = a_sweep(8, lag=8)
    assert slots.producer().trials == slots.sweep.trials


def test_trials_of_other_options_are_passed_over() -> None:
    slots = Slots(a_sweep(14, lag=2), 0)
    slots.work()
    other = (Parameter("rate", ParameterKind.FLOAT, 1.0, 2.0), *a_sweep().parameters[2:])
    slots.spec = a_sweep(16, lag=2, parameters=other)
    again = slots.producer().next(14, 2)
    assert [set(unit.payload["context"]) for unit in again.units] == [{"rate", "layers"}] * 2
    slots.spec = a_sweep(10, lag=2)
    assert slots.producer().next(14, 2).last


def test_a_trial_finds_its_parameters_in_its_context_and_its_environment() -> None:
    spec = a_sweep(
        1,
        SearchMethod.GRID,
        parameters=(
            Parameter("learning-rate", ParameterKind.CHOICE, choices=(0.5,)),
            Parameter("deep", ParameterKind.CHOICE, choices=(True,)),
            Parameter("kind", ParameterKind.CHOICE, choices=("adam",)),
        ),
    )
    payload = producer_of(spec).next(0, 1).units[0].payload
    assert payload["context"] == {"learning-rate": 0.5, "deep": True, "kind": "adam"}
    assert payload["env"] == {
        "PARAM_LEARNING_RATE": "0.5",
        "PARAM_DEEP": "true",
        "PARAM_KIND": "adam",
    }
    assert payload["directory"].startswith("trial-0-")


def test_a_parameter_that_is_an_option_of_a_role_says_which_slots_a_trial_goes_to() -> None:
    names = ("worker.cpus", "parameter_server.count", "rate")
    parameters = tuple(Parameter(name, ParameterKind.CHOICE, choices=(2,)) for name in names)
    payload = producer_of(a_sweep(1, SearchMethod.GRID, parameters=parameters)).next(0, 1)
    given = payload.units[0].payload
    assert given["shape"] == [["ps", "count", 2], ["worker", "cpus", 2]]
    assert given["env"]["PARAM_WORKER_CPUS"] == "2"


def test_a_trial_finds_what_one_of_the_same_parameters_has_left_and_no_other() -> None:
    def directory(rate: float, metric: str = "score") -> str:
        rates = (Parameter("rate", ParameterKind.CHOICE, choices=(rate,)),)
        sweep = a_sweep(1, SearchMethod.GRID, parameters=rates, metric=metric)
        return str(producer_of(sweep).next(0, 1).units[0].payload["directory"])

    assert directory(0.5) == directory(0.5)
    assert len({directory(0.5), directory(0.25), directory(0.5, "loss")}) == 3


def test_a_grid_has_each_combination_once() -> None:
    axes = (
        Parameter("a", ParameterKind.INT, 1, 5, step=2),
        Parameter("b", ParameterKind.FLOAT, 0.1, 0.3, step=0.1),
        Parameter("c", ParameterKind.CHOICE, choices=("x", "y")),
    )
    given_units = producer_of(a_sweep(18, SearchMethod.GRID, parameters=axes)).next(0, 99)
    found = {tuple(unit.payload["context"].values()) for unit in given_units.units}
    assert found == {(a, b, c) for a in (1, 3, 5) for b in (0.1, 0.2, 0.3) for c in "xy"}
    assert given_units.last


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"metrics": {"score": 2.0}}, 2.0),
        ({"metrics": {"score": 2.0}, "result": {"score": 3}}, 3.0),
        ({"metrics": {"score": "x"}}, None),
        ({"metrics": {"score": True}}, None),
        ({"metrics": None, "result": [1]}, None),
        ({}, None),
    ],
)
def test_the_objective_is_the_result_or_else_the_last_value(
    result: dict[str, object], value: float | None
) -> None:
    sweep = producer_of(a_sweep(2))
    sweep.next(0, 1)
    sweep.ended(0, UnitState.SUCCEEDED, result)
    assert sweep.shown(0)["value"] == value


@pytest.mark.parametrize("told", [math.nan, "NaN", math.inf, "-Infinity"])
def test_an_objective_that_is_not_finite_is_a_value(told: float | str) -> None:
    sweep = producer_of(a_sweep(2))
    sweep.next(0, 1)
    sweep.ended(0, UnitState.SUCCEEDED, {"result": {"score": told}, "metrics": {"score": 1.0}})
    shown = sweep.shown(0)
    assert str(shown["value"]) == str(float(told))
    assert not shown["why"]


@pytest.mark.parametrize("goal", list(Goal))
@pytest.mark.parametrize("told", ["NaN", "Infinity", "-Infinity"])
def test_a_value_that_is_not_finite_is_the_worst_to_the_search(goal: Goal, told: str) -> None:
    """TPE keeps away from where trials have diverged, as from where they were very bad."""
    bad = 1e30 if goal is Goal.MINIMIZE else -1e30

    def suggestions(value: float | str) -> list[Any]:
        sweep = producer_of(a_sweep(40, lag=1, goal=goal))
        for number in range(30):
            sweep.next(number, 1)
            diverges = number % 3 == 0
            score = value if diverges else number
            sweep.ended(number, UnitState.SUCCEEDED, {"metrics": {"score": score}})
        return [unit.payload["context"] for unit in sweep.next(30, 1).units]

    assert suggestions(told) == suggestions(bad)


@pytest.mark.parametrize("rule", [EarlyStopping.ASHA, EarlyStopping.MEDIAN])
def test_a_trial_that_diverges_is_stopped_among_others_that_do_not(rule: EarlyStopping) -> None:
    sweep = producer_of(a_sweep(20, lag=1, early_stopping=rule))
    for number in range(6):
        sweep.next(number, 1)
        told = {"measured": [[1, 1.0]], "metrics": {"score": 1.0}}
        sweep.ended(number, UnitState.SUCCEEDED, told)
    sweep.next(6, 1)
    stop = sweep.measured(6, [[1, "NaN"]])
    assert stop is not None
    assert stop.why.startswith("score nan at step 1 is")
    assert stop.result == {"measured": [[1, "NaN"]]}


def test_a_trial_whose_metric_never_came_says_what_it_told_instead() -> None:
    sweep = producer_of(a_sweep(2))
    sweep.next(0, 1)
    sweep.ended(0, UnitState.SUCCEEDED, {"metrics": {"loss": 1.0, "accuracy": 0.5}})
    why = "its metric score never came; it told accuracy, loss"
    assert sweep.shown(0)["why"] == why


def test_trials_that_fail_do_not_end_a_sweep() -> None:
    sweep = producer_of(a_sweep(20, early_stopping=EarlyStopping.ASHA, lag=1))
    for number in range(20):
        assert [unit.number for unit in sweep.next(number, 1).units] == [number]
        sweep.ended(number, UnitState.FAILED, {})
    assert sweep.next(20, 1).last


def test_a_trial_that_ran_past_its_stop_counts_as_stopped() -> None:
    spec = a_sweep(12, SearchMethod.RANDOM, EarlyStopping.ASHA, lag=1)
    sweep = producer_of(spec)
    for number, value in enumerate((1.0, 0.0)):
        sweep.next(number, 1)
        told = {"metrics": {"score": 9.0}, "measured": [[1, value], [3, 9.0]]}
        sweep.ended(number, UnitState.SUCCEEDED, told)
    assert sweep.shown(0)["value"] == 9.0
    assert sweep.shown(1) | {"parameters": {}} == {
        "parameters": {},
        "value": None,
        "measured": {"step": 1, "value": 0.0},
        "points": [[1, 0.0]],
        "stopped_at": 1,
        "without": [],
        "why": "score 0 at step 1 is not among the best 1 of 2",
    }


def test_no_trial_is_stopped_before_its_first_steps() -> None:
    spec = a_sweep(4, SearchMethod.RANDOM, EarlyStopping.ASHA, lag=1, min_steps=100)
    sweep = producer_of(spec)
    for number, value in enumerate((1.0, 0.0)):
        payload = sweep.next(number, 1).units[0].payload
        assert payload["measure"]["spans"][:3] == [100, 300, 900]
        assert sweep.measured(number, [[99, value]]) is None
        stop = sweep.measured(number, [[99, value], [120, value]])
        assert (stop is None) == (number == 0)
        sweep.ended(number, UnitState.SUCCEEDED, {"measured": [[120, value]]})


def ended_trial(number: int, values: list[float], complete: bool) -> Trial:
    points = [[FACTOR**turn, value] for turn, value in enumerate(values)]
    return Trial(
        number,
        {},
        0,
        Trial(number, {}, 0).with_points(a_sweep(), points).points,
        ended=True,
        value=values[-1] if complete else None,
        stopped_at=None if complete else 1,
    )


VALUES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0]), min_size=1, max_size=4)


@settings(deadline=None)
@given(
    st.lists(st.tuples(VALUES, st.booleans()), max_size=9),
    VALUES,
    st.sampled_from([EarlyStopping.ASHA, EarlyStopping.MEDIAN]),
    st.sampled_from(list(Goal)),
)
def test_trials_are_stopped_by_the_rules_of_optuna(
    others: list[tuple[list[float], bool]],
    values: list[float],
    early_stopping: EarlyStopping,
    goal: Goal,
) -> None:
    spec = a_sweep(early_stopping=early_stopping, goal=goal, parameters=())
    known = [ended_trial(number, *other) for number, other in enumerate(others)]
    if early_stopping is EarlyStopping.ASHA:
        pruner: optuna.pruners.BasePruner = optuna.pruners.SuccessiveHalvingPruner(
            min_resource=1, reduction_factor=FACTOR
        )
    else:
        pruner = optuna.pruners.MedianPruner()
    study = optuna.create_study(direction=goal.value, pruner=pruner)
    for trial in known:
        seen = finished(spec, trial)
        # What Optuna's pruner keeps with each trial that it has judged.
        rungs = {f"completed_rung_{n}": p.value for n, p in enumerate(trial.in_order)}
        study.add_trial(
            optuna.create_trial(
                state=seen.state,
                value=seen.value,
                intermediate_values=seen.intermediate_values,
                system_attrs=rungs,
            )
        )
    asked, expected = study.ask(), None
    for turn, value in enumerate(values):
        asked.report(value, FACTOR**turn)
        if asked.should_prune():
            expected = turn
            break
    own = ended_trial(len(known), values, complete=True)
    found = stopped(spec, own, known)
    assert (found and found.turn) == expected


def test_a_search_that_learns_finds_better_ones_than_one_that_does_not() -> None:
    best = {
        method: [
            max(t.value for t in Slots(a_sweep(40, method, seed=s), 0).work().trials if t.value)
            for s in range(2)
        ]
        for method in (SearchMethod.TPE, SearchMethod.RANDOM)
    }
    assert sum(best[SearchMethod.TPE]) > sum(best[SearchMethod.RANDOM])


def test_the_trials_that_run_are_looked_at_for_their_parameters_alone() -> None:
    """What runs beside a trial may have measured anything."""
    spec = a_sweep(16, early_stopping=EarlyStopping.MEDIAN, lag=8)
    quiet, loud = producer_of(spec), producer_of(spec)
    for number in range(8):
        for sweep in (quiet, loud):
            sweep.next(number, 1)
        loud.measured(number, [[step, 100.0] for step in STEPS])
    for sweep in (quiet, loud):
        sweep.ended(0, UnitState.SUCCEEDED, {"metrics": {"score": 1.0}})
    assert quiet.next(8, 1) == loud.next(8, 1)


def test_nothing_but_a_sweep_loads_optuna() -> None:
    code = (
        "import sys, dcos_tensorflow.workloads, dcos_tensorflow.workloads.sweep.sweep,"
        "dcos_tensorflow.workloads.batch.batch, dcos_tensorflow.scheduler.scheduler,"
        "dcos_tensorflow.cli.commands.run; sys.exit('optuna' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_best_of_a_long_sweep_is_near_what_is_best() -> None:
    trials = Slots(a_sweep(60, early_stopping=EarlyStopping.ASHA), 5).work().trials
    values = [trial for trial in trials if trial.value is not None]
    best = max(values, key=lambda trial: trial.value or -math.inf)
    assert quality(best.parameters) > -0.6
    assert len(values) < 40


@pytest.mark.parametrize("method", list(SearchMethod))
def test_lists_and_null_are_choices(method: SearchMethod) -> None:
    """After a crash, too: what is stored of a list is one again."""
    choices = (None, (64, 32), (64,), "[64]")
    layers = Parameter("layers", ParameterKind.CHOICE, choices=choices)
    trials = 4 if method is SearchMethod.GRID else 30
    spec = decode(SweepSpec, encode(a_sweep(trials, method, lag=2, parameters=(layers,))))
    assert spec.parameters == (layers,)
    kept: list[KeptUnit] = []
    for number in range(trials):
        (unit,) = producer_of(spec, kept).next(number, 1).units
        payload = json.loads(json.dumps(unit.payload))
        score = {"metrics": {"score": float(len(payload["context"]["layers"] or ()))}}
        kept.append(KeptUnit(number, payload, UnitState.SUCCEEDED, score))
    tried = [unit.payload["context"]["layers"] for unit in kept]
    assert all(one in [None, [64, 32], [64], "[64]"] for one in tried)
    assert [64, 32] in tried
    assert None in tried


def test_a_grid_that_has_more_values_goes_on_with_those_that_were_not_tried() -> None:
    def of(*choices: int) -> SweepSpec:
        layers = Parameter("layers", ParameterKind.CHOICE, choices=choices)
        return a_sweep(len(choices), SearchMethod.GRID, parameters=(layers,))

    first = producer_of(of(1, 2, 3)).next(0, 9).units
    kept = [KeptUnit(unit.number, unit.payload, UnitState.SUCCEEDED) for unit in first]
    more = producer_of(of(1, 2, 3, 4, 5), kept).next(3, 9).units
    assert sorted(unit.payload["context"]["layers"] for unit in (*first, *more)) == [1, 2, 3, 4, 5]
