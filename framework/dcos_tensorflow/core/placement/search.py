"""Ways to place a set of tasks when the first one does not work out.

``core.placement.place`` hands over the wanted tasks and takes the fullest packing. The most
constrained tasks come first, each to the agent that suits it best (``core.placement.packing``).
Such a greedy order can fail where another succeeds, so an incomplete packing is followed by a
bounded number of others: largest first, scarcest first, other values for rules such as
``rack:CLUSTER``, one agent for each task by bipartite matching, and failed tasks first.

All of them together do not find packings of several tasks per agent that need exact search
(bin packing is NP-hard), and spreads over several counted rules at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from dcos_tensorflow.core.placement.agents import GPUS, PORTS
from dcos_tensorflow.core.placement.columns import BoolArray, IntArray
from dcos_tensorflow.core.placement.packing import Kind, Packing, Problem
from dcos_tensorflow.core.spec.service_spec import PACKED, ConstraintOperator, TaskRole
from dcos_tensorflow.records import dataclass

Anchors = Mapping[tuple[TaskRole, str], int]

#: How many times tasks that failed are moved to the front and all is tried again.
_REPAIRS = 3
#: How many other values are tried for rules such as ``rack:CLUSTER``.
_CLUSTER_VALUES = 8
#: One agent per task is worked out for gangs up to this size.
_MATCHING_LIMIT = 200


@dataclass(frozen=True)
class Wish:
    """One task, and what it wants."""

    task: str
    preferred_port: int | None
    kind: Kind


@dataclass
class Packed:
    """What one packing came to: the row and ports of each wish (None: nowhere), in their order."""

    packing: Packing
    rows: list[int | None]
    ports: list[tuple[int, ...]]

    @property
    def complete(self) -> bool:
        """Say whether everything was placed."""
        return None not in self.rows

    def placed(self) -> int:
        """Return how many tasks were placed."""
        return sum(row is not None for row in self.rows)


class Search:
    """The ways to place ``wishes``. ``kinds`` are theirs, ``empty`` the agents before any of them.

    What only the second attempt needs is worked out when there is one.
    """

    def __init__(self, problem: Problem, wishes: Sequence[Wish]) -> None:
        self.problem = problem
        self.wishes = wishes
        self.kinds = tuple(dict.fromkeys(wish.kind for wish in wishes))

    @cached_property
    def empty(self) -> Packing:
        """Return the agents before anything is placed."""
        return Packing(self.problem)

    @cached_property
    def fitting(self) -> Mapping[Kind, BoolArray]:
        """Return for each kind the rows that hold one task of it, alone."""
        return {kind: self.empty.fits(kind) for kind in self.kinds}

    def fullest(self) -> Packed:
        """Try until all is placed or nothing is left to try; return the first of the fullest.

        Where what is preferred costs a task its place, tight packing is tried, too.
        """
        best = self._fullest()
        if best.complete or self.problem.preferred == PACKED or self._hopeless():
            return best
        tight = Search(replace(self.problem, preferred=PACKED), self.wishes)
        return _fuller(best, tight.fullest())

    def _fullest(self) -> Packed:
        first = {kind: _constrained_first(kind) for kind in self.kinds}
        wishes = self.wishes
        order = sorted(range(len(wishes)), key=lambda i: first[wishes[i].kind])
        anchors = list(self._anchors())
        best = self._pack(order, anchors[0])
        if best.complete or self._hopeless():
            return best
        for way in self._other_ways(order, anchors):
            best = _fuller(best, self._pack(*way))
            if best.complete:
                return best
        latest = best
        for _ in range(_REPAIRS):
            # Those first that had no place.
            rows = latest.rows
            order = sorted(order, key=lambda i: rows[i] is not None)
            latest = self._pack(order, anchors[0])
            best = _fuller(best, latest)
            if best.complete:
                return best
        return best

    def _hopeless(self) -> bool:
        """Say whether no way can place everything: too little of something, seen from above."""
        wanted = Counter(wish.kind for wish in self.wishes)
        total = sum(np.array(kind.need[:PORTS]) * count for kind, count in wanted.items())
        if (total > self.problem.table.free[:PORTS].sum(axis=1)).any():
            return True
        return any(
            self._room(kind, count)[self.fitting[kind]].sum() < count
            for kind, count in wanted.items()
        )

    def _room(self, kind: Kind, most: int) -> IntArray:
        """Return how many tasks of ``kind`` each row has resources for, ``most`` at the most."""
        room = np.full(len(self.problem.table), most, dtype=np.int64)
        for free, need in zip(self.problem.table.free[:PORTS], kind.need[:PORTS], strict=True):
            if need:
                room = np.minimum(room, free // need)
        return room

    def _other_ways(
        self, order: Sequence[int], anchors: Sequence[Anchors]
    ) -> Iterator[tuple[Sequence[int], Anchors, Sequence[int] | None]]:
        """Yield (order, anchors, pins) to try after the first packing, the most promising first."""
        wishes = self.wishes
        yield sorted(order, key=lambda i: -wishes[i].kind.size), anchors[0], None
        scarce = {kind: int(fits.sum()) for kind, fits in self.fitting.items()}
        yield sorted(order, key=lambda i: scarce[wishes[i].kind]), anchors[0], None
        for others in anchors[1:]:
            yield order, others, None
        if len(wishes) <= _MATCHING_LIMIT:
            pins = _one_agent_each(wishes, self.fitting)
            if pins is not None:
                yield order, anchors[0], pins

    def _pack(
        self, order: Iterable[int], anchors: Anchors, pins: Sequence[int] | None = None
    ) -> Packed:
        """Place the wishes in ``order``, each where it is pinned to, else where it suits best.

        What a rule that counts tasks refused is tried again for as long as that helps: GROUP_BY can
        allow later what it first refused. So at the end no failed task fits anywhere, and there is
        a reason for each.
        """
        count = len(self.wishes)
        packed = Packed(Packing(self.problem, anchors), [None] * count, [()] * count)
        waiting = list(order)
        while waiting:
            tried = len(waiting)
            failed = [number for number in waiting if not self._put(packed, number, pins)]
            waiting = [number for number in failed if self.wishes[number].kind.counted]
            if len(waiting) == tried:
                break
        return packed

    def _put(self, packed: Packed, number: int, pins: Sequence[int] | None) -> bool:
        """Place one wish; say whether there was a row for it."""
        wish, packing = self.wishes[number], packed.packing
        if pins is not None and packing.fits_on(wish.kind, pins[number]):
            row: int | None = pins[number]
        else:
            row = packing.best_row(wish.kind)
        if row is None:
            return False
        packed.rows[number] = row
        packed.ports[number] = packing.put(wish.kind, row, wish.task, wish.preferred_port)
        return True

    def _anchors(self) -> Iterator[Anchors]:
        """Yield values for the ``CLUSTER`` rules that no running task has decided, the best first.

        The best value is the one that holds all tasks of the role with the least to spare, counted
        in tasks of the first kind; after those that hold all come those that hold most.
        """
        ranked: dict[tuple[TaskRole, str], list[int]] = {}
        for kind in self.kinds:
            for constraint in kind.counted:
                key = (kind.role, constraint.field)
                clusters = constraint.operator is ConstraintOperator.CLUSTER
                if (
                    clusters
                    and key not in ranked
                    and not self.problem.counts[kind.role, constraint].any()
                ):
                    wanted = sum(wish.kind.role is kind.role for wish in self.wishes)
                    ranked[key] = self._values_by_room(kind, constraint.field, wanted)
        longest = max((len(values) for values in ranked.values()), default=1)
        for rank in range(min(max(longest, 1), _CLUSTER_VALUES)):
            yield {
                key: values[min(rank, len(values) - 1)] for key, values in ranked.items() if values
            }

    def _values_by_room(self, kind: Kind, name: str, wanted: int) -> list[int]:
        """Return the codes of a field's values, the one to try first in front."""
        column = self.problem.columns[name]
        usable = self.fitting[kind] & (column.codes >= 0)
        room = self._room(kind, wanted)[usable]
        total = np.bincount(column.codes[usable], weights=room, minlength=len(column.values))
        texts = column.values.texts
        return sorted(
            (int(code) for code in np.flatnonzero(total > 0)),
            key=lambda code: (total[code] < wanted, abs(total[code] - wanted), texts[code]),
        )


def _constrained_first(kind: Kind) -> tuple[object, ...]:
    return (-kind.need[GPUS], kind.required_port is None, -kind.rules, -kind.size)


def _fuller(one: Packed, other: Packed) -> Packed:
    return other if other.placed() > one.placed() else one


def _one_agent_each(wishes: Sequence[Wish], fitting: Mapping[Kind, BoolArray]) -> list[int] | None:
    """Return a row of its own for every wish, or None when there is no such way.

    Bipartite matching by augmenting paths. Of each kind's rows the first n are enough for n wishes.
    """
    rows_of = {key: np.flatnonzero(fits)[: len(wishes)].tolist() for key, fits in fitting.items()}
    owner: dict[int, int] = {}
    for wish in range(len(wishes)):
        if not _augment(wish, wishes, rows_of, owner):
            return None
    pins = [0] * len(wishes)
    for row, wish in owner.items():
        pins[wish] = row
    return pins


def _augment(
    wish: int, wishes: Sequence[Wish], rows_of: Mapping[Kind, Sequence[int]], owner: dict[int, int]
) -> bool:
    """Find ``wish`` a row, moving others along an augmenting path; breadth first."""
    came_from: dict[int, int] = {}
    queue, looked_up = [wish], set()
    for seeker in queue:
        kind = wishes[seeker].kind
        if kind in looked_up:
            continue
        looked_up.add(kind)
        for row in rows_of[kind]:
            if row in came_from:
                continue
            came_from[row] = seeker
            if row in owner:
                queue.append(owner[row])
                continue
            _hand_over(row, wish, came_from, owner)
            return True
    return False


def _hand_over(row: int, wish: int, came_from: Mapping[int, int], owner: dict[int, int]) -> None:
    """Give ``row`` to the wish that reached it, its old row to the next, back to ``wish``."""
    held = {owned: old for old, owned in owner.items()}
    while True:
        seeker = came_from[row]
        owner[row] = seeker
        if seeker == wish:
            return
        row = held[seeker]
