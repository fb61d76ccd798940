"""How many slots a service may have: as it was asked for, and by its share of the cluster.

The cluster is what Mesos offers us, and what we have of it: what others use never reaches us.
Told by ``core.absorb`` with each offer, asked by ``core.recovery.slots`` and
``core.recovery.units`` before a slot is made, or goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.job import ENDED_PHASES
from dcos_tensorflow.core.model.resources import EPSILON, Resources
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import TaskRole, UnitsSpec, is_slot

_NAMES = ("cpus", "mem", "gpus")


def note_offered(draft: Draft, agents: Iterable[str]) -> None:
    """Note of these agents what they offer now, together with what our tasks have there."""
    units = draft.state.spec.units
    if units is None or units.max_share >= 1:
        return
    state = draft.state
    seen = dict(state.told.room)
    for agent_id in set(agents):
        offers = (o.resources for o in state.desk.offers.values() if o.agent_id == agent_id)
        seen[agent_id] = sum(offers, _ours(state, agent_id))
    draft.state = replace(state, told=replace(state.told, room=seen))


def going(draft: Draft) -> int:
    """Return how many slots there are that are not to end."""
    # One that ends is never at rest.
    ending = sum(1 for gang in draft.awake() if gang.job.phase in ENDED_PHASES and _is_slot(gang))
    return sum(map(is_slot, draft.state.gangs)) - ending


def surplus(draft: Draft) -> int:
    """Return how many slots there are too many: fewer may be allowed than were."""
    limit = most_slots(draft.state)
    if limit is None or len(draft.state.gangs) - 1 <= limit:
        return 0
    return max(going(draft) - limit, 0)


def most_slots(state: ServiceState) -> int | None:
    """Return how many slots are allowed, one at least; None where there is no limit."""
    units = state.spec.units
    if units is None:
        return None
    asked, shared = units.parallelism or None, _most_by_share(state, units)
    return min((limit for limit in (asked, shared) if limit is not None), default=None)


def _is_slot(gang: GangDraft) -> bool:
    return is_slot(gang.name)


def _most_by_share(state: ServiceState, units: UnitsSpec) -> int | None:
    if units.max_share >= 1:
        return None
    room = sum(state.told.room.values(), Resources())
    wanted = slot_size(state)
    counts = [
        int((units.max_share * getattr(room, name) + EPSILON) / getattr(wanted, name))
        for name in _NAMES
        if getattr(wanted, name) > 0
    ]
    return max(1, min(counts, default=1))


def slot_size(state: ServiceState) -> Resources:
    """Return what all tasks of a slot have together."""
    sizes = (
        role.resources
        for role in state.spec.roles
        if role.role is not TaskRole.TENSORBOARD
        for _ in range(role.count)
    )
    return sum(sizes, Resources())


def _ours(state: ServiceState, agent_id: str) -> Resources:
    roles = {role.role: role.resources for role in state.spec.roles}
    records = (
        record
        for gang in state.gangs.values()
        if gang.tasks.on_agent(agent_id)
        for record in gang.tasks.live
        if record.agent_id == agent_id
    )
    return sum((roles[r.role] for r in records if r.role in roles), Resources())
