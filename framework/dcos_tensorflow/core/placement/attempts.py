"""Ways to place a set of tasks when the first one does not work out.

``core.placement.place`` hands over what is wanted and takes the fullest attempt. The most
constrained tasks come first, each to the agent that suits it best (``core.placement.packing``).
Such a greedy order can fail where another succeeds, so an incomplete attempt is followed by a
bounded number of others: largest first, scarcest first, other values for rules such as
``rack:CLUSTER``, one agent for each task by bipartite matching, and failed tasks first.

What all of them together do not find: packings of several tasks per agent that need exact search
(bin packing is NP-hard), and spreads over several counted rules at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.model.spec import ConstraintOperator, TaskRole
from dcos_tensorflow.core.placement.agent_table import GPUS
from dcos_tensorflow.core.placement.packing import Kind, Packing, Problem

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Anchors = Mapping[tuple[TaskRole, str], int]

#: How many times tasks that failed are moved to the front and all is tried again.
_REPAIRS = 3
#: How many other values are tried for rules such as ``rack:CLUSTER``.
_CLUSTER_VALUES = 8
#: One agent per task is worked out for gangs up to this size.
_MATCHING_LIMIT = 200


@dataclass(frozen=True)
class Wish:
    """One task beside its kind; ``size`` is its largest share of the largest agent."""

    task: str
    preferred_port: int | None
    rules: int
    kind: Kind
    size: float


@dataclass
class Attempt:
    """One packing: where each wish went (None: nowhere), in the order of the requests."""

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


def best_attempt(
    problem: Problem, wishes: Sequence[Wish], fitting: Mapping[int, BoolArray]
) -> Attempt:
    """Try until all is placed or nothing is left to try; return the fullest, the first of those."""
    order = sorted(range(len(wishes)), key=lambda i: _constrained_first(wishes[i]))
    anchors = list(_anchors(problem, wishes, fitting))
    best = _pack(problem, wishes, order, anchors[0])
    if best.complete or _hopeless(problem, wishes, fitting):
        return best
    for way in _other_ways(problem, wishes, fitting, order, anchors):
        best = _fuller(best, _pack(problem, wishes, *way))
        if best.complete:
            return best
    latest = best
    for _ in range(_REPAIRS):
        order = _failed_first(order, latest)
        latest = _pack(problem, wishes, order, anchors[0])
        best = _fuller(best, latest)
        if best.complete:
            return best
    return best


def _failed_first(order: Sequence[int], attempt: Attempt) -> list[int]:
    return sorted(order, key=lambda i: attempt.rows[i] is not None)


def _fuller(one: Attempt, other: Attempt) -> Attempt:
    return other if other.placed() > one.placed() else one


def _hopeless(problem: Problem, wishes: Sequence[Wish], fitting: Mapping[int, BoolArray]) -> bool:
    """Say whether no way at all can place everything: too little of something, seen from above."""
    total = np.sum([wish.kind.need for wish in wishes], axis=0)
    if (total > problem.table.free.sum(axis=1)).any():
        return True
    wanted = Counter(id(wish.kind) for wish in wishes)
    kinds = {id(wish.kind): wish.kind for wish in wishes}
    return any(
        _room(problem, kinds[key], count)[fitting[key]].sum() < count
        for key, count in wanted.items()
    )


def _room(problem: Problem, kind: Kind, most: int) -> IntArray:
    """Return how many tasks of ``kind`` each row has resources for, ``most`` at the most."""
    asked = kind.need > 0
    if not asked.any():
        return np.full(len(problem.table), most, dtype=np.int64)
    each = problem.table.free[asked] // kind.need[asked][:, np.newaxis]
    room: IntArray = np.minimum(each.min(axis=0), most)
    return room


def _other_ways(
    problem: Problem,
    wishes: Sequence[Wish],
    fitting: Mapping[int, BoolArray],
    order: Sequence[int],
    anchors: Sequence[Anchors],
) -> Iterator[tuple[Sequence[int], Anchors, Sequence[int] | None]]:
    """Yield (order, anchors, pins) to try after the first attempt, the most promising first."""
    yield sorted(order, key=lambda i: -wishes[i].size), anchors[0], None
    scarce = {key: int(fits.sum()) for key, fits in fitting.items()}
    yield sorted(order, key=lambda i: scarce[id(wishes[i].kind)]), anchors[0], None
    for others in anchors[1:]:
        yield order, others, None
    if len(wishes) <= _MATCHING_LIMIT:
        pins = _one_agent_each(wishes, fitting)
        if pins is not None:
            yield order, anchors[0], pins


def _constrained_first(wish: Wish) -> tuple[object, ...]:
    return (
        -int(wish.kind.need[GPUS]),
        wish.kind.required_port is None,
        -wish.rules,
        -wish.size,
    )


def _pack(
    problem: Problem,
    wishes: Sequence[Wish],
    order: Iterable[int],
    anchors: Anchors,
    pins: Sequence[int] | None = None,
) -> Attempt:
    """Place the wishes in ``order``, each where it is pinned to, else where it suits best.

    What failed is tried again for as long as that helps: GROUP_BY can allow later what it first
    refused. So at the end no failed task fits anywhere, and there is a reason for each.
    """
    attempt = Attempt(Packing(problem, anchors), [None] * len(wishes), [()] * len(wishes))
    waiting = list(order)
    while waiting:
        failed = [number for number in waiting if not _put(attempt, number, wishes, pins)]
        if len(failed) == len(waiting):
            break
        waiting = failed
    return attempt


def _put(attempt: Attempt, number: int, wishes: Sequence[Wish], pins: Sequence[int] | None) -> bool:
    """Place one wish; say whether there was a row for it."""
    wish, packing = wishes[number], attempt.packing
    if pins is not None and packing.fits(wish.kind)[pins[number]]:
        row: int | None = pins[number]
    else:
        row = packing.best_row(wish.kind)
    if row is None:
        return False
    attempt.rows[number] = row
    attempt.ports[number] = packing.put(wish.kind, row, wish.task, wish.preferred_port)
    return True


def _anchors(
    problem: Problem, wishes: Sequence[Wish], fitting: Mapping[int, BoolArray]
) -> Iterator[Anchors]:
    """Yield values for the ``CLUSTER`` rules that no running task has decided, the best first.

    The best value is the one that holds all tasks of the role with the least to spare, counted
    in tasks of the first kind; after those that hold all come those that hold most.
    """
    ranked: dict[tuple[TaskRole, str], list[int]] = {}
    for wish in wishes:
        for constraint in wish.kind.counted:
            key = (wish.kind.role, constraint.field)
            undecided = not problem.counts[key].any()
            clusters = constraint.operator is ConstraintOperator.CLUSTER
            if clusters and undecided and key not in ranked:
                wanted = sum(other.kind.role is wish.kind.role for other in wishes)
                ranked[key] = _values_by_room(
                    problem, wish.kind, constraint.field, fitting[id(wish.kind)], wanted
                )
    longest = max((len(values) for values in ranked.values()), default=1)
    for rank in range(min(max(longest, 1), _CLUSTER_VALUES)):
        yield {key: values[min(rank, len(values) - 1)] for key, values in ranked.items() if values}


def _values_by_room(
    problem: Problem, kind: Kind, name: str, fits: BoolArray, wanted: int
) -> list[int]:
    """Return the codes of a field's values, the one to try first in front."""
    column = problem.columns[name]
    usable = fits & (column.codes >= 0)
    room = _room(problem, kind, wanted)
    total = np.bincount(column.codes[usable], weights=room[usable], minlength=len(column.values))
    codes = [int(code) for code in np.flatnonzero(total > 0)]
    return sorted(codes, key=lambda code: (total[code] < wanted, abs(total[code] - wanted), code))


def _one_agent_each(wishes: Sequence[Wish], fitting: Mapping[int, BoolArray]) -> list[int] | None:
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
    wish: int,
    wishes: Sequence[Wish],
    rows_of: Mapping[int, Sequence[int]],
    owner: dict[int, int],
) -> bool:
    """Find ``wish`` a row, moving others along an augmenting path; breadth first."""
    came_from: dict[int, int] = {}
    queue, looked_up = [wish], set()
    for seeker in queue:
        kind = id(wishes[seeker].kind)
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
    """Give ``row`` to whoever reached it, that one's old row to the next, back to ``wish``."""
    held = {owned: old for old, owned in owner.items()}
    while True:
        seeker = came_from[row]
        owner[row] = seeker
        if seeker == wish:
            return
        row = held[seeker]
