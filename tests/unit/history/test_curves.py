"""Curves are bounded, whatever is told."""

import math
from collections.abc import Iterator

import pytest

from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.points import MOST_VALUES, Point
from samples.states import a_record, a_role, a_spec, a_state, changed, running


def reports(evaluators: int, steps: int, metrics: int) -> Iterator[ServiceState]:
    """Yield a service's states: all of its evaluators tell as many metrics with each step."""
    records = [a_record(f"evaluator-{n}") for n in range(evaluators)]
    roles = (a_role(TaskRole.WORKER, 1), a_role(TaskRole.EVALUATOR, evaluators))
    plain = a_state(records=[*records, a_record("worker-0")], spec=a_spec(roles=roles))
    for step in range(steps):
        told = {"step": step, "at": float(step), "metrics": {f"m{n}": 1.0 for n in range(metrics)}}
        yield with_reports(plain, {r.task_id: {"progress": told} for r in records})


def with_reports(state: ServiceState, told: dict) -> ServiceState:
    return changed(state, reports=told)


def test_all_curves_of_a_run_together_have_fifty_thousand_values_at_most() -> None:
    curves = Curves()
    for state in reports(evaluators=4, steps=600, metrics=50):
        curves.observe(state)
    kept = curves.points()
    assert sum(len(p.metrics) for points in kept.values() for p in points) <= MOST_VALUES
    assert [points[-1].step for points in kept.values()] == [599] * 4


def test_a_metric_of_an_earlier_step_is_one_point_of_that_step() -> None:
    record = a_record("worker-0")
    state = a_state(records=[record], spec=a_spec(roles=(a_role(TaskRole.WORKER, 1),)))
    curves = Curves()
    for step, told_at in ((10, {}), (12, {"val_loss": 10}), (14, {"val_loss": 10}), (20, {})):
        value = 0.25 if step == 20 else 0.5
        told = {"step": step, "at": float(step), "loss": 1.0, "metrics": {"val_loss": value}}
        report = {"progress": {**told, "told_at": told_at}}
        curves.observe(with_reports(state, {record.task_id: report}))
    points = curves.points()["worker-0"]
    told = [(p.step, p.metrics["val_loss"]) for p in points if "val_loss" in p.metrics]
    assert told == [(10, 0.5), (20, 0.25)]
    assert [p.step for p in points] == [10, 12, 14, 20]


def test_a_metric_that_was_told_between_two_reports_is_a_point_of_its_step() -> None:
    record = a_record("worker-0")
    state = a_state(records=[record], spec=a_spec(roles=(a_role(TaskRole.WORKER, 1),)))
    told = {"step": 12, "at": 1.0, "metrics": {"val_loss": 0.5}, "told_at": {"val_loss": 10}}
    curves = Curves()
    curves.observe(with_reports(state, {record.task_id: {"progress": told}}))
    points = curves.points()["worker-0"]
    assert [(p.step, dict(p.metrics)) for p in points] == [(10, {"val_loss": 0.5}), (12, {})]


def test_the_best_value_is_a_point_though_it_came_and_went_between_two_reports() -> None:
    record = a_record("worker-0")
    state = a_state(records=[record], spec=a_spec(roles=(a_role(TaskRole.WORKER, 1),)))
    curves = Curves()
    for at, extremes in ((1.0, [[2, 0.1], [1, 0.9]]), (2.0, [[2, 0.1], [1, 0.9]]), (3.0, [])):
        told = {"step": 5, "at": at, "loss": 0.5, "extremes": {"loss": extremes}}
        curves.observe(with_reports(state, {record.task_id: {"progress": told}}))
    points = [(p.at, p.step, p.metrics["loss"]) for p in curves.points()["worker-0"]]
    assert points[:3] == [(1.0, 2, 0.1), (1.0, 1, 0.9), (1.0, 5, 0.5)]
    assert [value for _, _, value in points[3:]] == [0.5, 0.5]


@pytest.mark.parametrize("earlier_comes_first", [True, False])
def test_a_scheduler_that_takes_over_tells_no_earlier_step_again(earlier_comes_first: bool) -> None:
    record = a_record("worker-0")
    state = a_state(records=[record], spec=a_spec(roles=(a_role(TaskRole.WORKER, 1),)))
    told = {"at": 1.0, "metrics": {"val_loss": 0.5}, "told_at": {"val_loss": 10}}
    first, second = Curves(), Curves()
    now = {"progress": {**told, "step": 12, "loss": 0.8, "extremes": {"loss": [[1, 0.9]]}}}
    first.observe(with_reports(state, {record.task_id: now}))
    later = {"progress": {**now["progress"], "at": 2.0, "step": 14, "loss": 0.7}}
    if earlier_comes_first:
        second.begin_with(first.points())
    second.observe(with_reports(state, {record.task_id: later}))
    if not earlier_comes_first:
        second.begin_with(first.points())
    assert [point.step for point in second.points()["worker-0"]] == [1, 10, 12, 14]


@pytest.mark.parametrize(
    "extremes", [1, {"loss": 1}, {"loss": [1, [1], [1, "hidden"], [{}, None]]}, {1: [[1, 2]]}]
)
def test_extremes_that_are_none_are_passed_over(extremes: object) -> None:
    record = a_record("worker-0")
    state = a_state(records=[record], spec=a_spec(roles=(a_role(TaskRole.WORKER, 1),)))
    told = {"step": 5, "at": 1.0, "loss": 0.5, "extremes": extremes}
    curves = Curves()
    curves.observe(with_reports(state, {record.task_id: {"progress": told}}))
    assert [point.step for point in curves.points()["worker-0"]] == [5]


def test_what_is_new_is_taken_once() -> None:
    curves = Curves()
    for state in reports(evaluators=1, steps=2, metrics=1):
        curves.observe(state)
    new, everything = curves.take(anew=False)
    assert ([point.step for _, point in new], everything) == ([0, 1], None)
    assert curves.take(anew=False) == ([], None)


def test_points_of_before_come_first_and_none_twice() -> None:
    curves = Curves()
    for state in reports(evaluators=1, steps=3, metrics=1):
        curves.observe(state)
    curves.begin_with({"evaluator-0": [Point(-1.0, 7, {}), Point(0.0, 0, {"m0": 1.0})]})
    assert [point.step for point in curves.points()["evaluator-0"]] == [7, 0, 1, 2]


@pytest.mark.parametrize(
    "progress",
    [
        {"step": 1, "at": 10**400, "loss": 1.0},
        {"step": 1, "at": math.inf, "loss": 1.0},
        {"at": 1.0, "loss": 10**400},
        {"step": 10**400, "at": 1.0},
        {"at": 1.0, "metrics": {"m" * 101: 1.0}},
    ],
)
def test_what_no_runner_of_ours_says_is_no_point(progress: dict) -> None:
    curves, state = Curves(), running()
    curves.observe(with_reports(state, {state.tasks["worker-0"].task_id: {"progress": progress}}))
    assert curves.points() == {}
