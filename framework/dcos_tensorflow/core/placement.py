"""Which task goes to which agent, and why a task goes nowhere.

``core.service`` calls :func:`place` with what is wanted, the offers it holds and what already
runs. The answer is a value: assignments, misfits each with its reason, and which offers are worth
holding. Nothing is accepted, declined or remembered here. Made for 10,000 agents: agents are
columns (``core.agent_table``), a task costs a few vector operations (``core.packing``).

The most constrained tasks come first, each to the agent that suits it best. Such a greedy order
can fail where another succeeds, so an incomplete attempt is followed by a bounded number of
others (:func:`_other_ways`): largest first, scarcest first, failed tasks first, other values for
``CLUSTER`` rules, and at last one agent for each task, by bipartite matching. What all of them
together do not find: packings of several tasks per agent that need exact search (bin packing is
NP-hard), and spreads over several counted rules at once. They are reported as misfits; with other
offers the next call starts afresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core import misfits as explanation
from dcos_tensorflow.core.agent_table import GPUS, AgentTable, as_vector, table_of
from dcos_tensorflow.core.constraints import depends_on_counts, field_value
from dcos_tensorflow.core.offers import AttributeValue, Offer
from dcos_tensorflow.core.packing import Kind, Packing, Problem, columns_for, static_check
from dcos_tensorflow.core.resources import Resources
from dcos_tensorflow.core.spec import ConstraintOperator, PlacementConstraint, TaskRole

BoolArray = NDArray[np.bool_]
_Anchors = Mapping[tuple[TaskRole, str], int]

#: How many times tasks that failed are moved to the front and all is tried again.
_REPAIRS = 3
#: How many other values are tried for rules such as ``rack:CLUSTER``.
_CLUSTER_VALUES = 8
#: One agent per task is worked out for gangs up to this size.
_MATCHING_LIMIT = 200


@dataclass(frozen=True)
class TaskRequest:
    """One task that is to be placed.

    ``port_count`` ports are taken from the offer. The first of them is ``required_port`` (DNS
    addressing: nothing else will do), else ``preferred_port`` when it is offered and free. An
    empty ``region`` means any.
    """

    name: str
    role: TaskRole
    resources: Resources
    port_count: int
    preferred_port: int | None = None
    required_port: int | None = None
    constraints: tuple[PlacementConstraint, ...] = ()
    region: str = ""


@dataclass(frozen=True)
class PlacedTask:
    """A task that already runs. Constraints count it; its resources are in no offer."""

    name: str
    role: TaskRole
    agent_id: str
    hostname: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    zone: str | None = None
    region: str | None = None


@dataclass(frozen=True)
class Assignment:
    """A task and the agent it goes to.

    ``offer_ids`` are all offers of that agent and Mesos role: one ACCEPT takes all assignments
    with the same ``offer_ids``. ``ports`` begins with the required or preferred port.
    """

    task: str
    role: TaskRole
    agent_id: str
    hostname: str
    address: str
    mesos_role: str
    offer_ids: tuple[str, ...]
    ports: tuple[int, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    zone: str | None = None
    region: str | None = None

    def placed(self) -> PlacedTask:
        """Return the task as one that runs."""
        return PlacedTask(
            self.task,
            self.role,
            self.agent_id,
            self.hostname,
            self.attributes,
            self.zone,
            self.region,
        )


@dataclass(frozen=True)
class Misfit:
    """A task that went nowhere: one sentence why, and the number of agents per reason."""

    task: str
    reason: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """The answer to one call of :func:`place`.

    ``assignments`` and ``misfits`` are in the order of the requests; of a gang that is not
    complete the assignments show what would go where, and nothing of it may be launched.
    ``useful_offers`` could hold at least one requested task, alone; ``useless_offers`` none, each
    with the reason.
    """

    assignments: tuple[Assignment, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    useful_offers: frozenset[str] = frozenset()
    useless_offers: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Say whether every requested task was placed."""
        return not self.misfits


@dataclass(frozen=True)
class _Wish:
    """A request beside its kind; ``size`` is its largest share of the largest agent."""

    request: TaskRequest
    kind: Kind
    size: float


@dataclass
class _Attempt:
    """One packing: where each wish went (None: nowhere), in the order of the requests."""

    packing: Packing
    rows: list[int | None]
    ports: list[tuple[int, ...]]

    @property
    def complete(self) -> bool:
        return None not in self.rows

    def placed(self) -> int:
        return sum(row is not None for row in self.rows)


def place(
    requests: Sequence[TaskRequest],
    offers: Sequence[Offer],
    placed: Sequence[PlacedTask] = (),
    avoid: Mapping[str, str] | None = None,
    salt: str = "",
) -> Placement:
    """Decide where the requested tasks go.

    ``avoid`` names agents that are to get nothing, each with the reason (agent id -> reason).
    ``salt`` spreads the choice of ports: pass the service's name, and something else with it
    when a port turned out to be taken. The result does not depend on the order of the offers.
    Raises ValueError for a constraint that ``constraints.problem_with`` refuses.
    """
    table = table_of(offers)
    problem = _problem(table, requests, placed, salt)
    wishes = _wishes(table, requests, avoid or {})
    kinds = list({id(wish.kind): wish.kind for wish in wishes}.values())
    start = Packing(problem)
    fitting = {id(kind): start.fits(kind) for kind in kinds}
    best = _best_attempt(problem, wishes, fitting)
    useful = np.logical_or.reduce([np.zeros(len(table), dtype=np.bool_), *fitting.values()])
    useless = explanation.useless_rows(start, kinds, useful, avoid or {})
    return Placement(
        assignments=tuple(_assignments(table, wishes, best)),
        misfits=tuple(_misfits(wishes, best, avoid or {})),
        useful_offers=frozenset(
            offer for row in np.flatnonzero(useful) for offer in table.offer_ids[row]
        ),
        useless_offers={
            offer: reason for row, reason in useless.items() for offer in table.offer_ids[row]
        },
    )


def _problem(
    table: AgentTable,
    requests: Sequence[TaskRequest],
    placed: Sequence[PlacedTask],
    salt: str,
) -> Problem:
    """Collect what all attempts share: columns and counts for the rules, ports spoken for."""
    counted = {
        (request.role, constraint.field)
        for request in requests
        for constraint in request.constraints
        if depends_on_counts(constraint)
    }
    values = {
        key: [_value_of(task, key[1]) for task in placed if task.role is key[0]] for key in counted
    }
    more: dict[str, frozenset[str]] = {}
    for (_, name), found in values.items():
        more[name] = more.get(name, frozenset()) | {v for v in found if v is not None}
    columns = columns_for(table, (name for _, name in counted), more)
    counts = {}
    for role, name in sorted(counted):
        known = columns[name].values
        code = {value: number for number, value in enumerate(known)}
        codes = [code[value] for value in values[role, name] if value is not None]
        counts[role, name] = np.bincount(
            np.array(codes, dtype=np.int64), minlength=len(known)
        ).astype(np.int64)
    required = {r.required_port for r in requests if r.required_port is not None}
    preferred = {r.preferred_port for r in requests if r.preferred_port is not None}
    return Problem(
        table, columns, counts, frozenset(required), frozenset(required | preferred), salt
    )


def _value_of(task: PlacedTask, name: str) -> str | None:
    return field_value(name, task.hostname, task.attributes, task.zone, task.region)


def _wishes(
    table: AgentTable, requests: Sequence[TaskRequest], avoid: Mapping[str, str]
) -> list[_Wish]:
    """Pair every request with its kind; requests that want the same share one."""
    allowed = np.array([offer.agent_id not in avoid for offer in table.offers], dtype=np.bool_)
    kinds: dict[object, Kind] = {}
    largest = np.maximum(table.free.max(axis=1), 1) if len(table) else np.ones(4)
    checks: dict[PlacementConstraint, tuple[str, BoolArray]] = {}
    for request in requests:
        for constraint in request.constraints:
            if constraint not in checks and not depends_on_counts(constraint):
                checks[constraint] = static_check(constraint, table)
    wishes = []
    for request in requests:
        key = (
            request.role,
            request.resources,
            request.port_count,
            request.required_port,
            request.constraints,
            request.region,
        )
        kind = kinds.get(key)
        if kind is None:
            eligible = [(explanation.AVOIDED, allowed)] if avoid else []
            if request.region:
                eligible.append(_region_check(table, request.region))
            eligible += [checks[c] for c in request.constraints if c in checks]
            ports = max(request.port_count, int(request.required_port is not None))
            kind = kinds[key] = Kind(
                request.role,
                as_vector(request.resources),
                ports,
                request.required_port,
                tuple(eligible),
                tuple(c for c in request.constraints if depends_on_counts(c)),
            )
        wishes.append(_Wish(request, kind, float((kind.need / largest).max())))
    return wishes


def _region_check(table: AgentTable, region: str) -> tuple[str, BoolArray]:
    there = np.array([offer.region == region for offer in table.offers], dtype=np.bool_)
    return f"not in region {region}", there


def _best_attempt(
    problem: Problem, wishes: Sequence[_Wish], fitting: Mapping[int, BoolArray]
) -> _Attempt:
    """Try until all is placed or nothing is left to try; return the fullest, the first of those."""
    order = sorted(range(len(wishes)), key=lambda i: _constrained_first(wishes[i]))
    anchors = list(_anchors(problem, wishes, fitting))
    best = _pack(problem, wishes, order, anchors[0])
    hopeless = any(not fits.any() for fits in fitting.values()) or _too_much(problem, wishes)
    if best.complete or hopeless:
        return best
    for way in _other_ways(problem, wishes, fitting, order, anchors):
        best = _fuller(best, _pack(problem, wishes, *way))
        if best.complete:
            return best
    for _ in range(_REPAIRS):
        order = sorted(order, key=lambda i: best.rows[i] is not None)
        best = _fuller(best, _pack(problem, wishes, order, anchors[0]))
        if best.complete:
            return best
    return best


def _fuller(one: _Attempt, other: _Attempt) -> _Attempt:
    return other if other.placed() > one.placed() else one


def _too_much(problem: Problem, wishes: Sequence[_Wish]) -> bool:
    """Say whether all agents together have too little of some resource."""
    if not wishes:
        return False
    total = np.sum([wish.kind.need for wish in wishes], axis=0)
    return bool((total > problem.table.free.sum(axis=1)).any())


def _other_ways(
    problem: Problem,
    wishes: Sequence[_Wish],
    fitting: Mapping[int, BoolArray],
    order: Sequence[int],
    anchors: Sequence[_Anchors],
) -> Iterator[tuple[Sequence[int], _Anchors, Sequence[int] | None]]:
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


def _constrained_first(wish: _Wish) -> tuple[object, ...]:
    return (
        -int(wish.kind.need[GPUS]),
        wish.kind.required_port is None,
        -len(wish.request.constraints),
        -wish.size,
    )


def _pack(
    problem: Problem,
    wishes: Sequence[_Wish],
    order: Iterable[int],
    anchors: _Anchors,
    pins: Sequence[int] | None = None,
) -> _Attempt:
    """Place the wishes in ``order``, each where it suits best, or where it is pinned to."""
    packing = Packing(problem, anchors)
    attempt = _Attempt(packing, [None] * len(wishes), [()] * len(wishes))
    for number in order:
        kind, request = wishes[number].kind, wishes[number].request
        if pins is None:
            row = packing.best_row(kind)
        else:
            row = pins[number] if packing.fits(kind)[pins[number]] else None
        if row is not None:
            attempt.rows[number] = row
            attempt.ports[number] = packing.put(kind, row, request.name, request.preferred_port)
    return attempt


def _anchors(
    problem: Problem, wishes: Sequence[_Wish], fitting: Mapping[int, BoolArray]
) -> Iterator[_Anchors]:
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
    asked = kind.need > 0
    each = problem.table.free[asked] // kind.need[asked][:, np.newaxis]
    room = each.min(axis=0) if asked.any() else np.full(len(problem.table), wanted)
    usable = fits & (column.codes >= 0)
    total = np.bincount(
        column.codes[usable],
        weights=np.minimum(room[usable], wanted),
        minlength=len(column.values),
    )
    codes = [int(code) for code in np.flatnonzero(total > 0)]
    return sorted(codes, key=lambda code: (total[code] < wanted, abs(total[code] - wanted), code))


def _one_agent_each(wishes: Sequence[_Wish], fitting: Mapping[int, BoolArray]) -> list[int] | None:
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
    wishes: Sequence[_Wish],
    rows_of: Mapping[int, Sequence[int]],
    owner: dict[int, int],
) -> bool:
    """Find ``wish`` a row, moving others along an augmenting path; breadth first."""
    came_from: dict[int, int] = {}
    queue = [wish]
    for seeker in queue:
        for row in rows_of[id(wishes[seeker].kind)]:
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


def _assignments(
    table: AgentTable, wishes: Sequence[_Wish], attempt: _Attempt
) -> Iterator[Assignment]:
    for wish, row, ports in zip(wishes, attempt.rows, attempt.ports, strict=True):
        if row is None:
            continue
        offer = table.offers[row]
        yield Assignment(
            task=wish.request.name,
            role=wish.request.role,
            agent_id=offer.agent_id,
            hostname=offer.hostname,
            address=offer.address,
            mesos_role=offer.mesos_role,
            offer_ids=table.offer_ids[row],
            ports=ports,
            attributes=offer.attributes,
            zone=offer.zone,
            region=offer.region,
        )


def _misfits(
    wishes: Sequence[_Wish], attempt: _Attempt, avoid: Mapping[str, str]
) -> Iterator[Misfit]:
    """Explain every task that went nowhere; tasks of one kind share the work."""
    known: dict[int, tuple[str, Mapping[str, int]]] = {}
    for wish, row in zip(wishes, attempt.rows, strict=True):
        if row is not None:
            continue
        if id(wish.kind) not in known:
            known[id(wish.kind)] = explanation.explain(attempt.packing, wish.kind, avoid)
        reason, counts = known[id(wish.kind)]
        yield Misfit(wish.request.name, f"{wish.request.name}: {reason}", counts)
