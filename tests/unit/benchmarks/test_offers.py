"""The calls that benchmarks/offers.py counts are those of a scheduler."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("offers")


@pytest.mark.parametrize(("tasks", "calls"), [(0, 1), (None, 1), (3, 4), (10, 10)])
def test_all_offers_of_an_event_are_answered(
    offers: ModuleType, tasks: int | None, calls: int
) -> None:
    assert offers.answered(10, tasks, 1).calls == calls
