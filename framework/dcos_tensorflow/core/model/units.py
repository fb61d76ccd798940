"""Units of work: trials of a sweep, shards of a batch, and the outcome of each.

A unit is taken by a slot: a gang whose containers outlive it (``core.model.gang``). The
producer makes the payload of a unit: the core passes it on and never looks into it.
The table has pages, so that a change costs a page and not the table, in memory and in the store.
The gangs say which unit runs where (``Gang.unit``); the table holds that as an index.
``core.work.assignment`` changes it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from enum import StrEnum
from typing import Any

from dcos_tensorflow.core.json_numbers import as_number
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.spec.service_spec import Shape, TaskRole
from dcos_tensorflow.records import dataclass

#: So many units are one value of the store, which is written whole when one of them changes.
PAGE = 16
#: Of so many of the newest successes the time counts for what a unit usually takes.
TIMES_KEPT = 101


class UnitState(StrEnum):
    """What became of a unit. One that runs waits still for what becomes of it."""

    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: Its producer has stopped it: it would not have been a good one.
    PRUNED = "pruned"


@dataclass(frozen=True)
class UnitFailure:
    """An attempt that failed by the unit's own fault, as far as was known then."""

    #: Where.
    agent_id: str
    #: One of the words of ``core.failures.causes``.
    kind: str
    #: One sentence.
    summary: str
    #: Unix seconds.
    at: float
    exit_code: int | None = None
    #: The exception of the user's code that it was, if it was one.
    error: OwnError | None = None
    #: How long the attempt had run by then.
    seconds: float = 0.0

    def is_like(self, other: UnitFailure) -> bool:
        """Say whether the two are the same failure, wherever they happened."""
        if (self.kind, self.exit_code) != (other.kind, other.exit_code):
            return False
        return self.error is other.error or (
            self.error is not None and self.error.is_like(other.error)
        )


def number_told(result: Mapping[str, Any], name: str) -> float | None:
    """Return a number of a unit's result, NaN included; None where there is none of the name.

    What the job calls its result goes before the last value on the way.
    """
    for part in ("result", "metrics"):
        told = result.get(part)
        value = told.get(name) if isinstance(told, Mapping) else None
        number = as_number(value)
        if number is not None:
            return number
    return None


@dataclass(frozen=True)
class Unit:
    """One unit. Times are unix seconds."""

    #: Its place in the order in which the producer gave them, from 0.
    number: int
    state: UnitState = UnitState.WAITING
    #: Attempts that are over.
    tries: int = 0
    #: How many of them in a row ended by no fault of the unit.
    interruptions: int = 0
    #: The newest ones, at most ``bounds.FAILURES_OF_A_UNIT``.
    failures: tuple[UnitFailure, ...] = ()
    #: What the attempt that counts has left, or what was known when it was stopped.
    result: Mapping[str, Any] = field(default_factory=dict)
    #: When the attempt that counts began ...
    begun_at: float = 0.0
    #: ... and when this was decided.
    ended_at: float = 0.0
    #: Why it failed, or was stopped; empty for neither.
    why: str = ""
    #: How many failures there were before those that are kept.
    more_failures: int = 0
    #: The slot whose attempt counts: what was printed lies in the sandboxes of its tasks.
    slot: str = ""

    @property
    def is_decided(self) -> bool:
        """Say whether nothing of it is to be run any more."""
        return self.state is not UnitState.WAITING

    @functools.cached_property
    def kept(self) -> Mapping[str, Any]:
        """Return it as it is kept: without what is as at its beginning. There are thousands."""
        mine = {name: getattr(self, name) for name in _FIRST}
        changed = {name: value for name, value in mine.items() if value != _FIRST[name]}
        return {"number": self.number, **changed}


#: What is so of a unit that was just given.
_FIRST = {f.name: getattr(Unit(0), f.name) for f in fields(Unit) if f.name != "number"}


@dataclass(frozen=True)
class UnitRun:
    """A unit in a slot."""

    number: int
    #: Counts the attempts of the unit, from 1.
    attempt: int
    #: When the slot took it, in unix seconds.
    begun_at: float
    #: Its attempt is over; it is kept from others until no process of the slot works on it.
    is_over: bool = False


@dataclass(frozen=True)
class UnitPage:
    """Units that follow each other, and what each of them is."""

    units: tuple[Unit, ...] = ()
    #: The producer's: small JSON objects.
    payloads: tuple[Mapping[str, Any], ...] = ()

    @functools.cached_property
    def undecided(self) -> tuple[int, ...]:
        """Return the numbers of those that wait or run."""
        return tuple(unit.number for unit in self.units if not unit.is_decided)

    @functools.cached_property
    def newest_failure(self) -> tuple[float, int, str] | None:
        """Return the failure that was last, final or not: when, of which unit, and why."""
        failed = (
            (failure.at, unit.number, failure.summary)
            for unit in self.units
            for failure in unit.failures[-1:]
        )
        return max(failed, default=None)


@dataclass(frozen=True)
class UnitTable:
    """All units of a service that were given so far."""

    pages: tuple[UnitPage, ...] = ()
    #: No more will come.
    last: bool = False
    #: How many there will be in all, as their producer says; 0 until it has.
    total: int = 0
    #: What keeps the producer from giving more, in words; empty for nothing. May pass.
    trouble: str = ""
    #: How many there are in each state.
    counts: Mapping[UnitState, int] = field(default_factory=dict)
    #: Number of a unit -> the slots that run it: two of them at most.
    running: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    #: How long the newest successes took (seconds), at most TIMES_KEPT.
    seconds: tuple[float, ...] = ()
    #: When the producer was last asked for more, in unix seconds; 0 when what it knows has changed.
    asked_at: float = 0.0

    @classmethod
    def of(
        cls, pages: Iterable[UnitPage], last: bool, runs: Iterable[tuple[str, UnitRun]]
    ) -> UnitTable:
        """Return the table of what was kept. ``runs`` are the slots, each with what it runs."""
        table = cls(tuple(pages), last)
        counts: dict[UnitState, int] = {}
        times: list[tuple[float, float]] = []
        for unit in table:
            counts[unit.state] = counts.get(unit.state, 0) + 1
            if unit.state is UnitState.SUCCEEDED:
                times.append((unit.ended_at, unit.ended_at - unit.begun_at))
        newest = tuple(seconds for _, seconds in sorted(times)[-TIMES_KEPT:])
        table = replace(table, counts=counts, seconds=newest)
        for gang, run in runs:
            if run.number < len(table) and not table[run.number].is_decided:
                table = table.taken(run.number, gang)
        return table

    def __len__(self) -> int:
        return sum(self.counts.values()) or sum(len(page.units) for page in self.pages)

    def __getitem__(self, number: int) -> Unit:
        return self.pages[number // PAGE].units[number % PAGE]

    def __iter__(self) -> Iterator[Unit]:
        return (unit for page in self.pages for unit in page.units)

    def payload(self, number: int) -> Mapping[str, Any]:
        """Return what a unit is."""
        return self.pages[number // PAGE].payloads[number % PAGE]

    def shape(self, number: int) -> Shape:
        """Return which slots a unit goes to."""
        told = self.payload(number).get("shape")
        return tuple((TaskRole(role), name, value) for role, name, value in told) if told else ()

    def count(self, state: UnitState) -> int:
        """Return how many units are in a state."""
        return self.counts.get(state, 0)

    @property
    def waiting(self) -> int:
        """Return how many wait for a slot."""
        return self.count(UnitState.WAITING) - len(self.running)

    @property
    def in_all(self) -> int:
        """Return how many there will be, as far as that is known."""
        return len(self) if self.last else max(self.total, len(self))

    @property
    def is_complete(self) -> bool:
        """Say whether all units are decided, and no more will come."""
        return self.last and not self.count(UnitState.WAITING)

    @property
    def has_decided(self) -> bool:
        """Say whether some unit is decided already."""
        return any(count for state, count in self.counts.items() if state is not UnitState.WAITING)

    @property
    def newest_failure(self) -> tuple[float, int, str] | None:
        """Return the failure that was last, as a page has it; None for none."""
        return max(filter(None, (page.newest_failure for page in self.pages)), default=None)

    def numbers_waiting(self) -> Iterator[int]:
        """Yield the numbers of those that wait for a slot, those first that were given first."""
        for page in self.pages:
            yield from (number for number in page.undecided if number not in self.running)

    @property
    def usual_seconds(self) -> float:
        """Return the median of what successes take; 0 for none."""
        # Fractions and decimals come with it, and only a batch is asked.
        from statistics import median

        return median(self.seconds) if self.seconds else 0.0

    # Changes.

    def given(self, payloads: Iterable[Mapping[str, Any]], *, last: bool) -> UnitTable:
        """Return the table with more units behind those that it has."""
        pages, number = list(self.pages), len(self)
        first = number
        for payload in payloads:
            if number % PAGE == 0:
                pages.append(UnitPage())
            page = pages[-1]
            pages[-1] = UnitPage((*page.units, Unit(number)), (*page.payloads, payload))
            number += 1
        counts = dict(self.counts)
        if number > first:
            waiting = counts.get(UnitState.WAITING, 0)
            counts[UnitState.WAITING] = waiting + number - first
        return replace(self, pages=tuple(pages), counts=counts, last=self.last or last, trouble="")

    def renewed(self, number: int, payload: Mapping[str, Any]) -> UnitTable:
        """Return the table with another unit in the place of one that does not run."""
        table, (place, index) = self.put(Unit(number)), divmod(number, PAGE)
        page = table.pages[place]
        payloads = (*page.payloads[:index], payload, *page.payloads[index + 1 :])
        pages = (*table.pages[:place], replace(page, payloads=payloads), *table.pages[place + 1 :])
        return replace(table, pages=pages)

    def put(self, unit: Unit) -> UnitTable:
        """Return the table with a unit in place of what it was before."""
        place, index = divmod(unit.number, PAGE)
        page, before = self.pages[place], self[unit.number]
        units = (*page.units[:index], unit, *page.units[index + 1 :])
        pages = (*self.pages[:place], replace(page, units=units), *self.pages[place + 1 :])
        if unit.state is before.state:
            return replace(self, pages=pages)
        counts = dict(self.counts)
        counts[before.state] -= 1
        counts[unit.state] = counts.get(unit.state, 0) + 1
        running = {k: v for k, v in self.running.items() if k != unit.number}
        seconds = self.seconds
        if unit.state is UnitState.SUCCEEDED:
            seconds = (*seconds, max(unit.ended_at - unit.begun_at, 0.0))[-TIMES_KEPT:]
        return replace(
            self, pages=pages, counts=counts, running=running, seconds=seconds, asked_at=0.0
        )

    def taken(self, number: int, gang: str) -> UnitTable:
        """Return the table when a slot runs a unit."""
        runs = {**self.running, number: (*self.running.get(number, ()), gang)}
        return replace(self, running=runs)

    def released(self, number: int, gang: str) -> UnitTable:
        """Return the table when a slot runs a unit no more."""
        left = tuple(name for name in self.running.get(number, ()) if name != gang)
        runs = {k: v for k, v in self.running.items() if k != number}
        return replace(self, running={**runs, number: left} if left else runs)
