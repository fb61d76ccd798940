"""The calls that benchmarks/scheduler/offers.py counts are those of a scheduler."""

import pytest

from benchmarks.scheduler import offers


@pytest.mark.parametrize(("tasks", "calls"), [(0, 1), (None, 1), (3, 4), (10, 10)])
def test_all_offers_of_an_event_are_answered(tasks: int | None, calls: int) -> None:
    assert offers.answered(10, tasks, 1).calls == calls
