"""Places a few tasks without rules among a few agents: the usual start.

``core.placement.place`` asks it first. It goes the first way of ``core.placement.search``: the
largest task first, each to the agent that suits it best, and gives up where that does not place
all. What it finds is what ``by_columns`` finds; the formulas are ``packing``'s, for one agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.agents import (
    GPUS,
    OFFER_ID,
    PORTS,
    UNAVAILABLE,
    Agent,
    Key,
    amounts,
    key_of,
    machine_of,
)
from dcos_tensorflow.core.placement.fitness import MAINTENANCE, Preference
from dcos_tensorflow.core.placement.ports import choose_ports
from dcos_tensorflow.core.spec.service_spec import PlacementSpec

if TYPE_CHECKING:
    from dcos_tensorflow.core.placement.place import TaskRequest

#: So many looks at an agent take a few milliseconds: more tasks times more agents are for numpy.
_MOST_LOOKS = 2000


def place_few(
    requests: Sequence[TaskRequest],
    offers: Mapping[str, Offer],
    salt: str,
    preferred: PlacementSpec,
) -> list[tuple[Agent, tuple[int, ...]]] | None:
    """Return the agent and the ports of each request; None where this is not the way to find them.

    ``salt`` and ``preferred`` are those of ``place.place``.
    """
    if len(requests) * len(offers) > _MOST_LOOKS or any(map(_is_special, requests)):
        return None
    agents = _agents(offers)
    free = [list(each) for each in zip(*(agent.numbers() for agent in agents), strict=True)]
    if not agents or any(free[GPUS]):
        return None
    largest = [max(1, *each) for each in free[: PORTS + 1]]
    preference = Preference(preferred, largest)
    machines = [machine_of(agent.speaker) for agent in agents]
    taken: dict[str, set[int]] = {}
    spoken_for = frozenset(r.preferred_port for r in requests if r.preferred_port is not None)
    needs = [amounts(request.resources) for request in requests]
    sizes = [
        max(amount / most for amount, most in zip(need, largest[:PORTS], strict=True))
        for need in needs
    ]
    found: list[tuple[Agent, tuple[int, ...]]] = [(agents[0], ())] * len(requests)

    def unwanted(row: int) -> float:
        return float(preference.share(free, row) + MAINTENANCE * free[UNAVAILABLE][row])

    scores = [unwanted(row) for row in range(len(agents))]
    for number in sorted(range(len(requests)), key=lambda number: -sizes[number]):
        request = requests[number]
        wanted = [(resource, amount) for resource, amount in enumerate(needs[number]) if amount]
        fitting = [
            row
            for row in range(len(agents))
            if free[PORTS][row] >= request.port_count
            and all(free[resource][row] >= amount for resource, amount in wanted)
        ]
        if not fitting:
            return None
        row = min(fitting, key=scores.__getitem__)
        for resource, amount in wanted:
            free[resource][row] -= amount
        scores[row] = unwanted(row)
        found[number] = (agents[row], ())
        if not request.port_count:
            continue
        machine = machines[row]
        used = taken.setdefault(machine, set())
        ports = choose_ports(
            agents[row].ports,
            request.port_count,
            request.preferred_port,
            f"{salt}/{request.name}",
            taken=used,
            shunned=spoken_for,
        )
        found[number] = (agents[row], ports)
        used.update(ports)
        for port in ports:
            # Other agents of the machine that offer the port have it no more.
            for other, agent in enumerate(agents):
                if machines[other] == machine and port in agent.ports:
                    free[PORTS][other] -= 1
    return found


def _is_special(request: TaskRequest) -> bool:
    """Say whether a request wants more than resources and ports."""
    return bool(
        request.constraints
        or request.region
        or request.mount
        or request.bound_by
        or request.required_port is not None
    )


def _agents(offers: Mapping[str, Offer]) -> list[Agent]:
    """Return the agents in the order of an agent table's rows."""
    groups: dict[Key, list[Offer]] = {}
    for offer in offers.values():
        groups.setdefault(key_of(offer), []).append(offer)
    return [Agent(tuple(sorted(group, key=OFFER_ID))) for _, group in sorted(groups.items())]
