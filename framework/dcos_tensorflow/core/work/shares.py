"""How many slots a service may have: as asked for, by its share of the cluster, and by a quota.

The cluster is the sum of Mesos' offers and of our tasks: the use of others never reaches us.
Told by ``core.absorb`` with each offer and each word about a quota, asked by
``core.work.slots`` and ``core.work.assignment`` before a slot is made, or goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from dcos_tensorflow.core.counted import agreeing, counted
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.job import ENDED_PHASES
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.service_state import GangView, Room, ServiceState
from dcos_tensorflow.core.spec.resources import EPSILON, Resources
from dcos_tensorflow.core.spec.service_spec import TaskRole, UnitsSpec, is_slot

_NAMES = ("cpus", "mem", "gpus")
#: An agent that has offered nothing for so long (seconds) has nothing for us but what is ours.
#: What was declined is offered again within a third of that.
ROOM_SECONDS = 900.0


def note_offered(draft: Draft, agents: Iterable[str]) -> None:
    """Note of these agents what they offer now, together with what our tasks have there."""
    if not _is_counted(draft.state):
        return
    state, now = draft.state, draft.now
    seen = dict(state.told.room.by_agent)
    unheard = [agent for agent, (_, at) in seen.items() if now - at > ROOM_SECONDS]
    if not seen:
        # We have just started, and those that are full of our tasks offer nothing.
        unheard = [record.agent_id for record in state.live_tasks]
    for agent_id in set(unheard):
        seen[agent_id] = (_ours(state, agent_id), now)
    for agent_id in set(agents):
        offers = (o.resources for o in state.desk.offers.values() if o.agent_id == agent_id)
        seen[agent_id] = (sum(offers, _ours(state, agent_id)), now)
    draft.state = replace(state, told=replace(state.told, room=Room(seen)))


def forget(draft: Draft, agent_id: str) -> None:
    """Note that an agent is gone, with all that it had."""
    told = draft.state.told
    if agent_id in told.room.by_agent:
        left = {a: room for a, room in told.room.by_agent.items() if a != agent_id}
        draft.state = replace(draft.state, told=replace(told, room=Room(left)))


def note_quota(draft: Draft, quota: Quota | None) -> None:
    """Note a quota, and how many slots it leaves where more is used than it allows.

    The role may be used by others too: we give back as much as is used too much, but one slot.
    """
    left = None
    if quota is not None and draft.state.spec.units is not None:
        ends = frozenset(gang.name for gang in _ending(draft))
        slots = [gang for name, gang in draft.state.gangs.items() if is_slot(name)]
        placed = sum(1 for gang in slots if gang.tasks and gang.name not in ends)
        ending = sum((_of_gang(draft.state, g) for g in slots if g.name in ends), Resources())
        size = slot_size(draft.state)
        too_many = 0
        for name in (*_NAMES, "disk"):
            used, limit = quota.consumed.get(name, 0.0), quota.limits.get(name, math.inf)
            if used > limit + EPSILON and getattr(size, name) > 0:
                over = used - limit - getattr(ending, name)
                too_many = max(too_many, math.ceil(over / getattr(size, name) - EPSILON))
        left = max(placed - too_many, 1) if too_many > 0 else None
    draft.state = replace(draft.state, told=replace(draft.state.told, quota=quota, slots_left=left))


def going(draft: Draft) -> int:
    """Return how many slots there are that are not to end."""
    return sum(map(is_slot, draft.state.gangs)) - sum(1 for _ in _ending(draft))


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
    limits = (asked, shared, state.told.slots_left)
    return min((limit for limit in limits if limit is not None), default=None)


def looks_for_more(draft: Draft) -> bool:
    """Say whether more offers would be of use, though no gang wants them: they allow more slots."""
    return _is_counted(draft.state) and draft.state.units.waiting > 0


def why_no_more(draft: Draft) -> str:
    """Return what keeps more slots from being made than there are; empty where nothing does."""
    state, spec = draft.state, draft.state.spec.units
    most = most_slots(state)
    if spec is None or most is None or most == spec.parallelism or going(draft) < most:
        return ""
    slots, quota = f"{counted(most, 'slot')} {agreeing(most, 'are')} allowed", state.told.quota
    if most == state.told.slots_left and quota is not None:
        return f"{slots}: more of {quota.mesos_role} is used than its quota allows"
    return f"{slots} by max_share {spec.max_share:g} of the offers"


def _is_counted(state: ServiceState) -> bool:
    return state.spec.units is not None and state.spec.units.max_share < 1


def _ending(draft: Draft) -> Iterable[GangDraft]:
    # One that ends is never at rest.
    return (g for g in draft.awake() if g.job.phase in ENDED_PHASES and is_slot(g.name))


def _most_by_share(state: ServiceState, units: UnitsSpec) -> int | None:
    if units.max_share >= 1 or not state.told.room.by_agent:
        return None
    room, wanted = state.told.room.total, slot_size(state)
    limits = state.told.quota.limits if state.told.quota is not None else {}
    counts = []
    for name in _NAMES:
        there = min(getattr(room, name), limits.get(name, math.inf))
        if getattr(wanted, name) > 0:
            counts.append(int((units.max_share * there + EPSILON) / getattr(wanted, name)))
    return max(1, min(counts, default=1))


def slot_size(state: ServiceState) -> Resources:
    """Return what all tasks of a slot have together, of the largest where they differ."""
    sizes = (
        role.resources
        for role in state.spec.roles
        if role.role is not TaskRole.TENSORBOARD
        for _ in range(role.count)
    )
    return sum(sizes, Resources())


def _ours(state: ServiceState, agent_id: str) -> Resources:
    gangs = (gang for gang in state.gangs.values() if gang.tasks.on_agent(agent_id))
    return sum((_of_gang(state, gang, agent_id) for gang in gangs), Resources())


def _of_gang(state: ServiceState, gang: Gang, agent_id: str = "") -> Resources:
    """Return what a gang has, on one agent where it is named."""
    roles = {role.role: role.resources for role in GangView(state, gang).spec.roles}
    live = (r for r in gang.tasks.live if not agent_id or r.agent_id == agent_id)
    return sum((roles[r.role] for r in live if r.role in roles), Resources())
