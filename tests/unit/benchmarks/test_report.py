"""What benchmarks/report.py leaves of a table whose figures were not all measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("report")


def test_a_row_stays_whose_figures_were_not_measured(report: ModuleType) -> None:
    figures = {
        f"{kind}_ratio_independent_2.21.0_{way}": 1.5
        for kind in ("start", "end")
        for way in ("own", "runs")
    }
    head = list(report.starts({}))
    other, old = (
        f"| `independent` | {version} | 1 | 1 | 1 | 1 |" for version in ("2.15.1", "2.21.0")
    )
    assert report.merged([*head, other, old], report.starts(figures), 2) == [
        *head,
        other,
        "| `independent` | 2.21.0 | 1.5 | 1.5 | 1.5 | 1.5 |",
    ]


def test_a_new_row_comes_behind_the_others(report: ModuleType) -> None:
    head = list(report.costs({}))
    now = report.costs({"start_cpu_user_seconds": 3.0})
    rows = report.merged([*head, "| guard | 0 s | 6 MB |"], now, 1)
    assert rows == [
        *head,
        "| guard | 0 s | 6 MB |",
        "| the four of the user, together | 3 s | |",
    ]
