"""What is known of a run beside its curves."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.history.points import Point
from dcos_tensorflow.history.record import (
    MOST_INCIDENTS,
    best,
    joined,
    known,
    record_of,
    with_points,
)
from samples.states import NOW, an_incident, failed, running, with_job


def points(*losses: float) -> list[Point]:
    return [Point(float(n), n, {"loss": loss}) for n, loss in enumerate(losses)]


def test_a_run_is_known_by_its_number_and_by_what_no_other_run_has() -> None:
    state = replace(running(), run=3, instance="4c632903-1111-2222")
    assert record_of(state, {}, {})["id"] == "3-4c632903"


def test_how_a_run_ended_is_known() -> None:
    record = record_of(failed(), {}, {})
    assert (record["outcome"], record["phase"]) == ("failed", JobPhase.DONE)


def test_incidents_that_the_state_has_forgotten_are_known_still() -> None:
    before = record_of(with_job(running(), incidents=(an_incident(at=NOW),)), {}, {})
    later = with_job(running(), incidents=(an_incident(at=NOW + 9),))
    times = [each["at"] for each in record_of(later, {}, before)["incidents"]]
    assert times == [NOW, NOW + 9]


def test_of_very_many_incidents_the_newest_are_kept() -> None:
    many = tuple(an_incident(at=NOW + n) for n in range(MOST_INCIDENTS + 5))
    kept = record_of(with_job(running(), incidents=many), {}, {})["incidents"]
    assert (len(kept), kept[-1]["at"]) == (MOST_INCIDENTS, NOW + MOST_INCIDENTS + 4)


def test_the_least_and_the_most_of_a_metric_are_those_of_all_points() -> None:
    record = with_points(with_points({}, points(2.0, 0.5)), points(0.7))
    assert record["metrics"] == {"loss": {"least": 0.5, "most": 2.0, "newest": 0.7}}


def test_what_is_no_number_is_no_best_value() -> None:
    assert best(with_points({}, points(0.5, math.nan)), "loss") == ("loss", 0.5)


def test_a_metric_that_was_never_finite_is_kept_by_the_name_of_its_newest_value() -> None:
    record = with_points({}, points(math.inf, math.nan))
    assert record["metrics"]["loss"] == {"least": None, "most": None, "newest": "NaN"}
    assert best(record) is None
    again = with_points(record, points(0.5))
    assert again["metrics"]["loss"] == {"least": 0.5, "most": 0.5, "newest": 0.5}


@pytest.mark.parametrize(
    ("metric", "value"),
    [("val_accuracy", 9.0), ("roc_auc", 9.0), ("val_loss", 1.0), ("mae", 1.0), ("perplexity", 1.0)],
)
def test_of_some_metrics_more_is_better_and_of_the_others_less(metric: str, value: float) -> None:
    told = {metric: {"least": 1.0, "most": 9.0, "newest": 5.0}}
    assert best({"metrics": told}) == (metric, value)


def test_a_run_that_told_nothing_has_no_best_value() -> None:
    assert best(record_of(running(), {}, {})) is None


def test_what_two_machines_know_of_one_run_is_joined() -> None:
    mine = with_points({"incidents": [{"at": 2.0, "task": "a"}]}, points(1.0, 0.5, 0.7))
    its = with_points({"incidents": [{"at": 1.0, "task": "a"}]}, points(3.0))
    both = joined(mine, its)
    assert both["metrics"]["loss"] == {"least": 0.5, "most": 3.0, "newest": 0.7}
    assert ([each["at"] for each in both["incidents"]], both["step"]) == ([1.0, 2.0], 2)


def test_what_was_kept_is_known_again() -> None:
    state = with_job(running(), incidents=(an_incident(at=NOW),))
    kept = with_points(record_of(state, {"service": {}}, {}), points(2.0))
    assert known(json.loads(json.dumps(kept))) == kept


@pytest.mark.parametrize(
    "other",
    [
        {"id": 5},
        {"run": "3"},
        {"started_at": 1e300},
        {"finished_at": 10**400},
        {"step": "many"},
        {"step": 10**400},
        {"metrics": [1]},
        {"metrics": {"loss": 1.0}},
        {"metrics": {"loss": {"least": 1, "most": 2, "newest": 10**400}}},
        {"incidents": [{"at": 1.0, "task": [], "kind": "x", "summary": "x"}]},
        {"incidents": [{"task": "worker-0", "kind": "x", "summary": "x"}]},
        {"units": 3},
        {"units": {"best": [1]}},
        {"units": {"best": {"metric": "loss", "value": "low"}}},
    ],
)
def test_a_document_that_is_none_of_ours_is_not_known(other: dict[str, Any]) -> None:
    assert known({**record_of(running(), {}, {}), **other}) == {}
