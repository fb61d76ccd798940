"""The numbers at the axes of a picture: round, whole, and none like the next one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.svg import ticks


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0, 1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (3, 1000, ["200", "400", "600", "800", "1000"]),
        (0.99991, 0.99999, ["0.99992", "0.99994", "0.99996", "0.99998"]),
        (-3, 7, ["-2", "0", "2", "4", "6"]),
        (1e-9, 2e-9, ["1e-09", "1.2e-09", "1.4e-09", "1.6e-09", "1.8e-09", "2e-09"]),
        (0.123456, 0.123456, ["0.1235"]),
    ],
)
def test_an_axis_has_round_numbers_in_whole(low: float, high: float, marks: list[str]) -> None:
    assert [mark for _, mark in ticks(low, high)] == marks


FINITE = st.floats(-1e300, 1e300, allow_nan=False)


@given(FINITE, FINITE, st.integers(3, 8))
def test_numbers_lie_within_and_are_few_and_different(one: float, other: float, count: int) -> None:
    low, high = sorted((one, other))
    found = ticks(low, high, count)
    space = 1e-9 * max(abs(low), abs(high), high - low)
    assert all(low - space <= value <= high + space for value, _ in found)
    assert 1 <= len(found) <= 3 * count
    assert len({value for value, _ in found}) == len(found)
    assert all(math.isfinite(float(mark)) for _, mark in found)
