"""The leaderboard of a sweep, of the document that the API has at ``/v1/units``.

Used by all that show one. The document says of the service ``kind`` (trial), ``total``, ``counts``
by state and ``objective`` (metric and goal), and lists ``units``. Each has the core's fields
(number, state, tries, begun_at, ended_at, why) and those of ``Sweep.shown``. Pure.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from dcos_tensorflow.core.json_numbers import as_number
from dcos_tensorflow.core.spec.workload_spec import Goal, ParameterValue
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.workloads.sweep.trial import worth

Document = Mapping[str, Any]

#: Fewer trials may well tell the same by chance.
_FEW = 3
#: The order of those without a rank; of the stopped ones the best comes first.
_WORDS = ("finished", "stopped", "running", "waiting", "no value", "failed")


@dataclass(frozen=True)
class Row:
    """One trial on the board."""

    number: int
    #: finished, stopped, running, waiting, no value (it ended without its metric) or failed.
    state: str
    parameters: Mapping[str, ParameterValue]
    #: From 1; None for those that have not come to their end.
    rank: int | None = None
    #: What it counts with; of one that has not finished the last value measured.
    value: float | None = None
    #: The step of that last value; None for one that has finished.
    step: int | None = None
    #: How long its last attempt took; None where it has not ended.
    seconds: float | None = None
    tries: int = 0
    why: str = ""


@dataclass(frozen=True)
class Board:
    """All trials of a sweep, the best first."""

    metric: str
    goal: Goal
    rows: tuple[Row, ...] = ()
    total: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def finished(self) -> tuple[Row, ...]:
        """Return those that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)

    @property
    def best(self) -> Row | None:
        """Return the best trial; None while none has finished with a finite value."""
        finished = (row for row in self.finished if math.isfinite(row.value or 0.0))
        return next(finished, None)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.parameters))

    @property
    def doubt(self) -> str:
        """Return what is to be said of trials that have all told the same; empty for nothing."""
        values = {row.value for row in self.finished}
        if len(self.finished) < _FEW or len(values) > 1:
            return ""
        value = f"{self.metric} {self.finished[0].value:.4g}"
        return (
            f"all {len(self.finished)} trials told the same {value}: the code may not read its"
            " parameters (context, JOB_CONTEXT, PARAM_<NAME>, or arguments)"
        )

    def best_so_far(self) -> list[tuple[int, float]]:
        """Return for each finished trial, by its number, the best value up to it.

        It is not finite until one is.
        """
        found: list[tuple[int, float]] = []
        for row in sorted(self.finished, key=lambda row: row.number):
            value = row.value or 0.0
            if found:
                value = min(found[-1][1], value, key=functools.partial(worth, self.goal))
            found.append((row.number, value))
        return found


def board_of(document: Document) -> Board:
    """Return the board that a document tells of."""
    goal = Goal(document["objective"]["goal"])

    def place(row: Row) -> tuple[int, float, int]:
        counts = row.value is not None and row.state != "running"
        return _WORDS.index(row.state), worth(goal, row.value or 0.0) if counts else 0.0, row.number

    rows = sorted((_row(unit) for unit in document["units"]), key=place)
    ranks = (rank for rank, _ in enumerate(rows, 1))
    ranked = (
        Row(**{**vars(row), "rank": next(ranks)}) if row.state == "finished" else row
        for row in rows
    )
    return Board(
        metric=document["objective"]["metric"],
        goal=goal,
        rows=tuple(ranked),
        total=document["total"],
        counts=document["counts"],
    )


def placed(document: Document) -> list[Mapping[str, Any]]:
    """Return the units of a document, each with its ``place`` on the board, from 0, and ``word``.

    So a page shows the board of the command line, and needs no rule of its own.
    """
    rows = board_of(document).rows
    found = {row.number: {"place": place, "word": row.state} for place, row in enumerate(rows)}
    return [{**unit, **found[unit["number"]]} for unit in document["units"]]


def _row(unit: Mapping[str, Any]) -> Row:
    measured = unit.get("measured") or {}
    value = as_number(unit.get("value"))
    began, ended = unit.get("begun_at") or 0.0, unit.get("ended_at") or 0.0
    return Row(
        number=unit["number"],
        state=_word(unit),
        parameters=unit["parameters"],
        value=as_number(measured.get("value")) if value is None else value,
        step=measured.get("step") if value is None else None,
        seconds=ended - began if ended and began else None,
        tries=unit.get("tries", 0),
        why=unit.get("why", ""),
    )


def _word(unit: Mapping[str, Any]) -> str:
    if unit["state"] in ("waiting", "running", "failed"):
        return str(unit["state"])
    if unit.get("value") is not None:
        return "finished"
    return "no value" if unit.get("stopped_at") is None else "stopped"
