"""Which task goes to which agent, and why a task goes nowhere.

``core.offers.desk`` calls :func:`place` with the wanted tasks, the offers in hand and the tasks
that run.
The answer is a value: assignments, misfits each with its reason, and which offers help no task.
Nothing is accepted, declined or remembered here.

``core.placement.by_columns`` finds the answer. It comes with numpy, and so is imported once
something is to be placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.request import Placement, RunningTask, TaskRequest
from dcos_tensorflow.core.spec.service_spec import PACKED, PlacementSpec

if TYPE_CHECKING:
    from dcos_tensorflow.core.placement.agent_table import AgentTable


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

    ``offers`` come as the table that the caller keeps, or as they are. ``placed`` is
    looked at where some rule counts tasks. ``avoid`` names agents that are to get nothing, each
    with the reason (agent id -> reason). ``salt`` spreads the choice of ports: pass the service's
    name, and something else with it when a port turned out to be taken. ``preferred`` says which
    agents are preferred. The result does not depend on the order of the offers.
    Raises ValueError for a constraint that ``constraints.problem_with`` refuses.
    """
    from dcos_tensorflow.core.placement.agent_table import AgentTable
    from dcos_tensorflow.core.placement.by_columns import place_by_columns

    if not isinstance(offers, AgentTable):
        offers = AgentTable().of({offer.offer_id: offer for offer in offers})
    return place_by_columns(requests, offers, placed, avoid or {}, salt=salt, preferred=preferred)
