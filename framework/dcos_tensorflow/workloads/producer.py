"""The interface between a scheduler and the producer of its service's units.

A scheduler asks for the next units when the core wants some, tells the outcome of each once that is
stored, and passes on the measurements of trials. All of it may be said again, late, or by another
scheduler after a crash: a unit's number says which one is meant, and its known outcome stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from dcos_tensorflow.core.model import units
from dcos_tensorflow.records import dataclass

#: Pairs of a step and the value of the objective's metric, in the order of the steps.
Points = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Unit:
    """One unit to be worked on.

    ``payload`` is JSON and small (``MAX_PAYLOAD``). Of it the task runner reads ``env`` (variables
    of the process), ``context`` (laid over JOB_CONTEXT), ``directory`` (a folder of its own, below
    those for checkpoints and output), ``shard``, ``output``, and ``measure``: of the metric it
    names, the first value is kept whose step is in each of the spans that begin at ``spans``. The
    scheduler reads ``shape``: into which slots it goes. The rest is the producer's own.
    """

    number: int
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class KeptUnit:
    """A unit as the state has it: None for an outcome that is not known yet.

    ``result`` is what the task runner told at the end: ``metrics`` (the last value of each),
    ``result`` (what the job printed as its result), ``measured`` (``Points``) and
    ``seconds``; each of them may be missing.
    """

    number: int
    payload: Mapping[str, Any]
    outcome: units.UnitState | None = None
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """Units that come next. ``last``: there are none behind them."""

    units: tuple[Unit, ...] = ()
    last: bool = False


@dataclass(frozen=True)
class Stop:
    """A unit is to be stopped: ``why``, and the result to be kept with it, as in ``KeptUnit``."""

    why: str
    result: Mapping[str, Any]


class WorkloadError(Exception):
    """The units of a service cannot be made as its options say; the text says why."""


class Producer(ABC):
    """Makes the units of one service, numbered from 0."""

    #: Whether it matters to it how units went: else it is not told.
    learns = True

    @property
    @abstractmethod
    def total(self) -> int:
        """How many units there are in all."""

    @abstractmethod
    def next(self, first: int, count: int) -> Given:
        """Return at most ``count`` units from number ``first`` on.

        ``first`` is how many are kept. None without ``last``: others must end before. A unit that
        was given and is not kept is given again, as it was. Raises WorkloadError.
        """

    @abstractmethod
    def keep(self, unit: KeptUnit) -> None:
        """Hear of a unit that the state has: the next one that it knows none of, or one it does."""

    @abstractmethod
    def ended(self, number: int, outcome: units.UnitState, result: Mapping[str, Any]) -> None:
        """Hear how a unit went, once that is kept."""

    @abstractmethod
    def measured(self, number: int, points: Points) -> Stop | None:
        """Hear what a running unit has measured so far; return how it is to be stopped, if it is.

        ``points`` are all that it has measured since its first attempt began, as ``measure`` of its
        payload asks for them: the task runner keeps them beside the checkpoints.
        """

    @abstractmethod
    def shown(self, number: int) -> Mapping[str, Any]:
        """Return what people see of a unit beside its state, as JSON."""


def outcome_of(unit: units.Unit) -> units.UnitState | None:
    """Return how a unit has ended; None for one that has not."""
    return unit.state if unit.is_decided else None


def kept_units(table: units.UnitTable) -> Iterator[KeptUnit]:
    """Yield all units of a state, by their numbers."""
    for page in table.pages:
        yield from kept_in(page)


def kept_in(page: units.UnitPage) -> Iterator[KeptUnit]:
    """Yield the units of a page."""
    for unit, payload in zip(page.units, page.payloads, strict=True):
        yield KeptUnit(unit.number, payload, outcome_of(unit), unit.result)
