"""Which task goes to which agent, and why a task goes nowhere.

``core.offers.desk`` calls :func:`place` with what is wanted, the offers in hand and what runs.
The answer is a value: assignments, misfits each with its reason, and which offers help nobody.
Nothing is accepted, declined or remembered here. Made for 10,000 agents: they are columns of a
table that is kept from one decision to the next (``core.placement.agent_table``), a task costs the
rows that it changes (``core.placement.packing``), and what nobody asks for is not worked out.

What is preferred is told in ``core.placement.packing``, what is tried and what is not found in
``core.placement.search``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from dcos_tensorflow.core.model.gang import Misfit
from dcos_tensorflow.core.model.offer import AttributeValue, Offer
from dcos_tensorflow.core.model.resources import Resources
from dcos_tensorflow.core.model.spec import (
    PACKED,
    REGION_FIELD,
    PlacementConstraint,
    PlacementSpec,
    TaskRole,
    gang_named,
)
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.placement.agent_table import PORTS, AgentTable, amounts, table_of
from dcos_tensorflow.core.placement.constraints import (
    BoolArray,
    allowed_agents,
    depends_on_counts,
    describe,
    field_value,
)
from dcos_tensorflow.core.placement.misfits import AVOIDED, ELSEWHERE, explain, useless_rows
from dcos_tensorflow.core.placement.packing import Kind, Problem
from dcos_tensorflow.core.placement.search import Packed, Search, Wish
from dcos_tensorflow.records import dataclass

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

    @property
    def name(self) -> str:
        """Return the task, as its record will call it."""
        return self.task


#: A task that has a place already: constraints count it by its role and by what its agent is.
RunningTask = TaskRecord | Assignment


@dataclass(frozen=True)
class Placement:
    """The answer to one call of :func:`place`.

    ``assignments`` and ``misfits`` are in the order of the requests; of a gang that is not
    complete the assignments show what would go where, and nothing of it may be launched.
    ``why_useless`` works out what ``useless_offers`` shows.
    """

    assignments: tuple[Assignment, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    why_useless: Callable[[], Mapping[str, str]] = field(default=dict, compare=False, repr=False)

    @property
    def complete(self) -> bool:
        """Say whether every requested task was placed."""
        return not self.misfits

    @cached_property
    def useless_offers(self) -> Mapping[str, str]:
        """Return the offers that could hold none of the tasks, not even alone, and why.

        Worked out when it is asked for: where all have a place nobody does.
        """
        return self.why_useless()


def place(
    requests: Sequence[TaskRequest],
    offers: AgentTable | Iterable[Offer],
    placed: Iterable[RunningTask] = (),
    avoid: Mapping[str, str] | None = None,
    salt: str = "",
    *,
    preferred: PlacementSpec = PACKED,
) -> Placement:
    """Decide where the requested tasks go.

    ``offers`` come as the table of them that the caller keeps, or as they are. ``placed`` is
    looked at where some rule counts tasks. ``avoid`` names agents that are to get nothing, each
    with the reason (agent id -> reason). ``salt`` spreads the choice of ports: pass the service's
    name, and something else with it when a port turned out to be taken. ``preferred`` says which
    agents are preferred. The result does not depend on the order of the offers.
    Raises ValueError for a constraint that ``constraints.problem_with`` refuses.
    """
    table = offers if isinstance(offers, AgentTable) else table_of(offers)
    avoided = avoid or {}
    wishes = _wishes(table, requests, avoided)
    search = Search(_problem(table, requests, placed, salt, preferred), wishes)
    best = search.fullest()

    def why_useless() -> Mapping[str, str]:
        useless = useless_rows(search.empty, search.fitting, avoided)
        agents = table.agents
        return {o: why for row, why in useless.items() for o in agents[row].offer_ids}

    return Placement(
        assignments=tuple(_assignments(table, wishes, best)),
        misfits=tuple(_misfits(wishes, best, avoided)),
        why_useless=why_useless,
    )


def _problem(
    table: AgentTable,
    requests: Sequence[TaskRequest],
    placed: Iterable[RunningTask],
    salt: str,
    preferred: PlacementSpec,
) -> Problem:
    """Collect what all packings share: columns and counts for the rules, ports spoken for."""
    counted = {
        (request.role, constraint): None
        for request in requests
        for constraint in request.constraints
        if depends_on_counts(constraint)
    }
    columns = {rule.field: table.column(rule.field) for _, rule in counted}
    codes: dict[tuple[TaskRole, PlacementConstraint], list[int]] = {key: [] for key in counted}
    gang = gang_named(requests[0].name) if requests else ""
    for task in placed if counted else ():
        mine = gang_named(task.name) == gang
        place = (task.hostname, task.attributes, task.zone, task.region)
        for (role, rule), found in codes.items():
            if task.role is role and (mine or rule.of_service):
                code = columns[rule.field].values.code(field_value(rule.field, *place))
                if code >= 0:
                    found.append(code)
    counts = {
        (role, rule): np.bincount(
            np.array(found, dtype=np.int64), minlength=len(columns[rule.field].values)
        )
        for (role, rule), found in codes.items()
    }
    required = {r.required_port for r in requests if r.required_port is not None}
    asked_for = {r.preferred_port for r in requests if r.preferred_port is not None}
    return Problem(
        table,
        columns,
        counts,
        frozenset(required),
        frozenset(required | asked_for),
        salt,
        preferred,
    )


def _wishes(
    table: AgentTable, requests: Sequence[TaskRequest], avoid: Mapping[str, str]
) -> list[Wish]:
    """Pair every request with its kind; requests that want the same share one."""
    kinds: dict[object, Kind] = {}
    answers: dict[object, BoolArray] = {}
    largest = table.free[:PORTS].max(axis=1, initial=1).tolist()
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
            eligible = tuple(_eligible(table, request, avoid, answers))
            kind = kinds[key] = _kind(request, eligible, largest)
        wishes.append(Wish(request.name, request.preferred_port, kind))
    return wishes


def _kind(
    request: TaskRequest, eligible: tuple[tuple[str, BoolArray], ...], largest: Sequence[int]
) -> Kind:
    need = amounts(request.resources)
    ports = max(request.port_count, int(request.required_port is not None))
    return Kind(
        role=request.role,
        need=(*need, ports),
        required_port=request.required_port,
        eligible=eligible,
        allowed=np.logical_and.reduce([rows for _, rows in eligible]) if eligible else None,
        counted=tuple(c for c in request.constraints if depends_on_counts(c)),
        mount=request.mount,
        bound_by=request.bound_by,
        # A task that can go to one agent only comes before all others.
        rules=len(request.constraints) + (_BOUND if request.bound_by else 0),
        size=max(wanted / most for wanted, most in zip(need, largest, strict=True)),
    )


def _eligible(
    table: AgentTable,
    request: TaskRequest,
    avoid: Mapping[str, str],
    answers: dict[object, BoolArray],
) -> Iterator[tuple[str, BoolArray]]:
    """Yield the rules that count no tasks: (what a refusal is called, rows that pass).

    ``answers`` are those that tasks before had, too: most tasks have the same rules.
    """
    if avoid:
        if AVOIDED not in answers:
            answers[AVOIDED] = ~_rows_of(table, avoid)
        yield AVOIDED, answers[AVOIDED]
    if request.bound_by:
        yield ELSEWHERE, _rows_of(table, (request.agent_id,))
    if request.region:
        regions = table.column(REGION_FIELD)
        yield (
            f"not in region {request.region}",
            regions.codes == regions.values.code(request.region),
        )
    for constraint in request.constraints:
        if depends_on_counts(constraint):
            continue
        if constraint not in answers:
            column = table.column(constraint.field)
            nothing = np.zeros(len(column.values), dtype=np.int64)
            answers[constraint] = allowed_agents(constraint, column, nothing)
        yield f"rejected by placement rule {describe(constraint)}", answers[constraint]


def _rows_of(table: AgentTable, agents: Iterable[str]) -> BoolArray:
    rows = np.zeros(len(table), dtype=np.bool_)
    for agent_id in agents:
        rows[table.rows_of(agent_id)] = True
    return rows


def _assignments(table: AgentTable, wishes: Sequence[Wish], best: Packed) -> Iterator[Assignment]:
    for wish, row, ports in zip(wishes, best.rows, best.ports, strict=True):
        if row is None:
            continue
        agent = table.agents[row]
        offer = agent.speaker
        yield Assignment(
            task=wish.task,
            role=wish.kind.role,
            agent_id=offer.agent_id,
            hostname=offer.hostname,
            address=offer.address,
            mesos_role=offer.mesos_role,
            offer_ids=agent.offer_ids,
            ports=ports,
            attributes=offer.attributes,
            zone=offer.zone,
            region=offer.region,
        )


def _misfits(wishes: Sequence[Wish], best: Packed, avoid: Mapping[str, str]) -> Iterator[Misfit]:
    """Explain every task that went nowhere; tasks of one kind share the work."""
    known: dict[Kind, tuple[str, Mapping[str, int]]] = {}
    for wish, row in zip(wishes, best.rows, strict=True):
        if row is not None:
            continue
        if wish.kind not in known:
            known[wish.kind] = explain(best.packing, wish.kind, avoid)
        reason, counts = known[wish.kind]
        yield Misfit(wish.task, f"{wish.task}: {reason}", counts)
