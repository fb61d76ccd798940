"""The units of work: the trials of a sweep, the shards of a batch (``/v1/units``).

Its producer describes a unit, and is made of the units that the state has: of a job that has
ended, too.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

from dcos_tensorflow.api.errors import BadRequest, ElementNotFound
from dcos_tensorflow.core.model.report import unit_of
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.units import Unit, UnitPage, UnitState, UnitTable
from dcos_tensorflow.core.spec.service_spec import task_in
from dcos_tensorflow.core.spec.workload_spec import SweepSpec, WorkloadSpec
from dcos_tensorflow.workloads import producer_of
from dcos_tensorflow.workloads.producer import Producer, kept_in

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas

#: So many failed attempts of a trial are told.
_MOST_FAILURES = 5
#: A unit that waits for what becomes of it, while a slot works on it.
_RUNNING = "running"
STATES = (_RUNNING, *map(str, UnitState))


def counts(state: ServiceState) -> schemas.UnitCounts | None:
    """Return how many units there are in each state; None for a service without units."""
    kind, table = state.spec.units, state.units
    if kind is None:
        return None
    found = {str(each): table.count(each) for each in UnitState}
    found |= {str(UnitState.WAITING): table.waiting, _RUNNING: len(table.running)}
    work = state.spec.workload
    total = work.trials if isinstance(work, SweepSpec) and not table.last else table.in_all
    return {
        "kind": str(kind.kind),
        "total": total,
        "counts": {name: found[name] for name in STATES},
        "failure": _failure(table),
    }


def _failure(table: UnitTable) -> schemas.UnitFailure | None:
    found = table.newest_failure
    return None if found is None else {"number": found[1], "at": found[0], "why": found[2]}


class UnitsView:
    """The units as they are shown, to one request after the other, from any thread.

    What a producer has worked out of units that have ended is not worked out again: it is told what
    is new since the last time.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._workload: WorkloadSpec | None = None
        self._pages: tuple[UnitPage, ...] = ()
        self._producer: Producer | None = None

    def shown(self, state: ServiceState, wanted: str = "") -> schemas.Units:
        """Return the units, of one state where it is named.

        Raises ElementNotFound and BadRequest.
        """
        counted, work = counts(state), state.spec.workload
        if counted is None or work is None:
            raise ElementNotFound("units")
        if wanted and wanted not in STATES:
            raise BadRequest(f"state is one of {', '.join(STATES)}, not {wanted}")
        table = state.units
        objective: schemas.Objective | None = None
        if isinstance(work, SweepSpec):
            logs = [each.name for each in work.parameters if each.log]
            objective = {"metric": work.metric, "goal": str(work.goal), "logarithmic": logs}
        with self._guard:
            producer = self._told(state, work)
            found = [
                _unit(state, unit, producer.shown(unit.number))
                for unit in table
                if not wanted or _state_of(unit, table.running) == wanted
            ]
        document = {
            **counted,
            "objective": objective,
            "usual_seconds": table.usual_seconds or None,
            "units": found,
        }
        if objective is not None:
            from dcos_tensorflow.workloads.sweep.leaderboard import placed

            document["units"] = placed(document)
        return cast("schemas.Units", document)

    def _told(self, state: ServiceState, work: WorkloadSpec) -> Producer:
        """Return the producer that knows what the state does."""
        before, pages, producer = self._pages, state.units.pages, self._producer
        goes_on = work == self._workload and len(before) <= len(pages)
        if producer is None or not goes_on or not all(map(_is_later, before, pages)):
            producer, before = producer_of(work, last=True), ()
        for old, page in zip_longest(before, pages):
            for unit in kept_in(page) if page is not old else ():
                producer.keep(unit)
        self._workload, self._pages, self._producer = work, pages, producer
        for report in state.told.reports.values():
            told = unit_of(report)
            if told is not None and 0 <= told[0] < len(state.units):
                points: Sequence[Any] = told[2].get("measured") or ()
                producer.measured(told[0], points)
        return producer


def _is_later(before: UnitPage, page: UnitPage) -> bool:
    """Say whether a page is what has become of another: what is decided there stays so."""
    if before is page:
        return True
    same = all(map(operator.is_, before.payloads, page.payloads))
    kept = (
        old is new or not old.is_decided for old, new in zip(before.units, page.units, strict=False)
    )
    return same and len(before.units) <= len(page.units) and all(kept)


def _state_of(unit: Unit, running: Collection[int]) -> str:
    return _RUNNING if unit.number in running else str(unit.state)


def _unit(state: ServiceState, unit: Unit, shown: Mapping[str, Any]) -> dict[str, Any]:
    slots = state.units.running.get(unit.number, ())
    slot = next(iter(slots), unit.slot)
    gangs = (state.gangs[name] for name in slots if name in state.gangs)
    began = min((g.unit.begun_at for g in gangs if g.unit is not None), default=unit.begun_at)
    return {
        **shown,
        "number": unit.number,
        "state": _state_of(unit, state.units.running),
        "tries": unit.tries,
        "slots": list(slots),
        "task": task_in(slot, state.spec.decider) if slot else None,
        "begun_at": began or None,
        "ended_at": unit.ended_at or None,
        "why": unit.why or shown.get("why", ""),
        **({"failures": _failures(unit)} if isinstance(state.spec.workload, SweepSpec) else {}),
    }


def _failures(unit: Unit) -> list[dict[str, Any]]:
    """Return the newest failed attempts of a trial; of shards there are too many."""
    return [
        {"at": one.at, "why": one.summary, "kind": one.kind, "seconds": one.seconds or None}
        for one in unit.failures[-_MOST_FAILURES:]
    ]
