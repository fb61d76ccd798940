"""Places tasks among any number of agents.

``core.placement.place`` calls it. Made for 10,000 agents:
they are columns of a table that is kept from one decision to the next
(``core.placement.agent_table``), a task costs the rows that it changes
(``core.placement.packing``), and only the answers that a caller asks for are worked out.

``core.placement.packing`` has the preferences, ``core.placement.search`` the orders that are tried
and the limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from dcos_tensorflow.core.model.gang import Misfit
from dcos_tensorflow.core.placement.agent_table import AgentTable
from dcos_tensorflow.core.placement.agents import PORTS, amounts
from dcos_tensorflow.core.placement.columns import BoolArray, allowed_agents
from dcos_tensorflow.core.placement.constraints import depends_on_counts, describe, field_value
from dcos_tensorflow.core.placement.misfits import AVOIDED, ELSEWHERE, explain, useless_rows
from dcos_tensorflow.core.placement.packing import Kind, Problem
from dcos_tensorflow.core.placement.request import Assignment, Placement, RunningTask, TaskRequest
from dcos_tensorflow.core.placement.search import Packed, Search, Wish
from dcos_tensorflow.core.spec.service_spec import (
    REGION_FIELD,
    PlacementConstraint,
    PlacementSpec,
    TaskRole,
    gang_named,
)

#: More than any task has placement constraints.
_BOUND = 1_000_000


def place_by_columns(
    requests: Sequence[TaskRequest],
    table: AgentTable,
    placed: Iterable[RunningTask],
    avoided: Mapping[str, str],
    *,
    salt: str,
    preferred: PlacementSpec,
) -> Placement:
    """Decide where the requested tasks go, as ``place.place`` says. Raises ValueError likewise."""
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
