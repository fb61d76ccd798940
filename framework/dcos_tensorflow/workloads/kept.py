"""The units of a service's state as their producer has them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dcos_tensorflow.core.model.units import Unit, UnitPage, UnitState, UnitTable
from dcos_tensorflow.workloads.producer import KeptUnit, UnitOutcome

_OUTCOMES = {
    UnitState.SUCCEEDED: UnitOutcome.SUCCEEDED,
    UnitState.FAILED: UnitOutcome.FAILED,
    UnitState.PRUNED: UnitOutcome.PRUNED,
}


def outcome_of(unit: Unit) -> UnitOutcome | None:
    """Return how a unit has ended; None for one that has not."""
    return _OUTCOMES.get(unit.state)


def kept_units(table: UnitTable) -> Iterator[KeptUnit]:
    """Yield all units of a state, by their numbers."""
    for page in table.pages:
        yield from kept_in(page)


def kept_in(page: UnitPage) -> Iterator[KeptUnit]:
    """Yield the units of a page."""
    for unit, payload in zip(page.units, page.payloads, strict=True):
        yield KeptUnit(unit.number, payload, outcome_of(unit), unit.result)
