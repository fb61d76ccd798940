"""Which task goes to which agent, and why a task goes nowhere.

``core.step`` calls :func:`place` with what is wanted, the offers it holds and what already runs.
The answer is a value: assignments, misfits each with its reason, and which offers are worth
holding. Nothing is accepted, declined or remembered here. Made for 10,000 agents: agents are
columns (``core.placement.agent_table``), a task costs a few vector operations
(``core.placement.packing``).

What is preferred is told in ``core.placement.packing``, what is tried and what is not found in
``core.placement.attempts``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.model.gang import Misfit
from dcos_tensorflow.core.model.offer import AttributeValue, Offer
from dcos_tensorflow.core.model.resources import Resources
from dcos_tensorflow.core.model.spec import PlacementConstraint, TaskRole
from dcos_tensorflow.core.placement import misfits as explanation
from dcos_tensorflow.core.placement.agent_table import AgentTable, as_vector, table_of
from dcos_tensorflow.core.placement.attempts import Attempt, Wish, best_attempt
from dcos_tensorflow.core.placement.constraints import depends_on_counts, field_value
from dcos_tensorflow.core.placement.packing import (
    Kind,
    Packing,
    Problem,
    columns_for,
    static_check,
)

BoolArray = NDArray[np.bool_]

#: More than any task has placement constraints.
_BOUND = 1_000_000


@dataclass(frozen=True)
class TaskRequest:
    """One task that is to be placed.

    ``port_count`` ports are taken from the offer. The first of them is ``required_port`` (DNS
    addressing: nothing else will do), else ``preferred_port`` when it is offered and free. An
    empty ``region`` means any. ``mount`` is the size (MB) of the whole disk that it needs, 0 for
    none. With ``bound_by`` it goes to ``agent_id`` only, empty for nowhere; that text says why.
    """

    name: str
    role: TaskRole
    resources: Resources
    port_count: int
    preferred_port: int | None = None
    required_port: int | None = None
    constraints: tuple[PlacementConstraint, ...] = ()
    region: str = ""
    mount: float = 0.0
    agent_id: str = ""
    bound_by: str = ""


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
    best = best_attempt(problem, wishes, fitting)
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
) -> list[Wish]:
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
            request.mount,
            request.agent_id,
            request.bound_by,
        )
        kind = kinds.get(key)
        if kind is None:
            eligible = [(explanation.AVOIDED, allowed)] if avoid else []
            if request.bound_by:
                eligible.append(_binding_check(table, request.agent_id))
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
                request.mount,
                request.bound_by,
            )
        size = float((kind.need / largest).max())
        wishes.append(Wish(request.name, request.preferred_port, _rules(request), kind, size))
    return wishes


def _rules(request: TaskRequest) -> int:
    """Return how choosy a task is: who can go to one agent only comes before all others."""
    return len(request.constraints) + (_BOUND if request.bound_by else 0)


def _binding_check(table: AgentTable, agent_id: str) -> tuple[str, BoolArray]:
    there = np.array([offer.agent_id == agent_id for offer in table.offers], dtype=np.bool_)
    return explanation.ELSEWHERE, there


def _region_check(table: AgentTable, region: str) -> tuple[str, BoolArray]:
    there = np.array([offer.region == region for offer in table.offers], dtype=np.bool_)
    return f"not in region {region}", there


def _assignments(
    table: AgentTable, wishes: Sequence[Wish], attempt: Attempt
) -> Iterator[Assignment]:
    for wish, row, ports in zip(wishes, attempt.rows, attempt.ports, strict=True):
        if row is None:
            continue
        offer = table.offers[row]
        yield Assignment(
            task=wish.task,
            role=wish.kind.role,
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
    wishes: Sequence[Wish], attempt: Attempt, avoid: Mapping[str, str]
) -> Iterator[Misfit]:
    """Explain every task that went nowhere; tasks of one kind share the work."""
    known: dict[int, tuple[str, Mapping[str, int]]] = {}
    for wish, row in zip(wishes, attempt.rows, strict=True):
        if row is not None:
            continue
        if id(wish.kind) not in known:
            known[id(wish.kind)] = explanation.explain(attempt.packing, wish.kind, avoid)
        reason, counts = known[id(wish.kind)]
        yield Misfit(wish.task, f"{wish.task}: {reason}", counts)
