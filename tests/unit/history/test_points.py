"""Points of curves: fewer of them, as lines and back."""

import itertools
import math
from typing import Any

import pytest

from dcos_tensorflow.history.points import (
    MOST_VALUES,
    Point,
    line_of,
    lines_of,
    points_in,
    thinned,
)


def as_it_is(told: Any) -> Any:
    return told


def points(*steps: int) -> list[Point]:
    return [Point(float(n), step, {"loss": 1.0 / (n + 1)}) for n, step in enumerate(steps)]


def test_thinning_out_keeps_the_first_and_the_newest_point() -> None:
    fewer = thinned(points(*range(100)))
    assert (fewer[0].step, fewer[-1].step) == (0, 99)


@pytest.mark.parametrize("count", [3, 4, 50, 2001])
def test_thinning_out_takes_a_fifth_or_more_away(count: int) -> None:
    assert len(thinned(points(*range(count)))) <= max(2, count * 0.8)


def test_a_curve_that_grows_for_long_stays_as_dense_at_its_begin_as_later_on() -> None:
    kept: list[Point] = []
    for point in points(*range(50_000)):
        kept.append(point)
        if len(kept) > 1000:
            kept = thinned(kept)
    quarters = [sum(1 for p in kept if q <= p.at / 12_500 < q + 1) for q in range(4)]
    # The newest part is denser: it waits to be thinned out.
    assert min(quarters) * 1.2 > max(quarters[:3])
    assert min(quarters) > 100


def test_what_was_replayed_after_a_restart_stays_behind_what_it_replays() -> None:
    told = points(*range(100), *range(60, 160))
    steps = [point.step or 0 for point in thinned(told)]
    assert [b - a < 0 for a, b in itertools.pairwise(steps)].count(True) == 1


def test_points_are_the_same_when_they_are_read_again() -> None:
    told = {"worker-0": points(1, 2), "evaluator-0": [Point(0.5, None, {"auc": 0.5})]}
    assert points_in(lines_of(told, as_it_is)) == told


def test_a_loss_that_is_no_number_is_kept_as_such() -> None:
    (read,) = points_in([line_of("worker-0", Point(1.0, 1, {"loss": math.nan}), as_it_is)])[
        "worker-0"
    ]
    assert math.isnan(read.metrics["loss"])


@pytest.mark.parametrize(
    "line",
    [
        '{"task":"worker-0","at":1.0,"step":1,"metr',
        "[]",
        "null",
        '{"task":"worker-0","at":"x","step":1,"metrics":{}}',
        '{"task":"worker-0","at":NaN,"step":1,"metrics":{}}',
        '{"task":"worker-0","at":1.0,"step":1,"metrics":[]}',
        '{"task":"worker-0","at":1%s,"step":1,"metrics":{}}' % ("0" * 400),
    ],
)
def test_what_is_no_whole_line_of_ours_is_no_point(line: str) -> None:
    whole = line_of("worker-0", points(7)[0], as_it_is)
    assert points_in([whole, line]) == {"worker-0": points(7)}


def test_what_was_masked_is_no_number() -> None:
    line = line_of(
        "worker-0",
        Point(1.0, 1, {"a": 1.0, "b": 2.0}),
        lambda told: told | {"metrics": {"a": "<redacted>", "b": 2.0}},
    )
    assert points_in([line]) == {"worker-0": [Point(1.0, 1, {"b": 2.0})]}


def test_a_number_beyond_all_floats_is_left_out() -> None:
    line = '{"task":"worker-0","at":1.0,"step":1,"metrics":{"a":1%s,"b":2.0}}' % ("0" * 400)
    assert points_in([line]) == {"worker-0": [Point(1.0, 1, {"b": 2.0})]}


def test_more_than_a_run_of_ours_has_is_not_read() -> None:
    told = {"worker-0": points(*range(2 * MOST_VALUES + 9))}
    (read,) = points_in(lines_of(told, as_it_is)).values()
    assert len(read) == 2 * MOST_VALUES
