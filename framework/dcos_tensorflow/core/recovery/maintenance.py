"""Agents that are to be taken down: what was said of them, and when nothing of ours may be there.

Told by offers and inverse offers through ``core.absorb``; asked where tasks are placed and moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.service_state import Maintenance

#: A maintenance that we have agreed to is spoken of again within this time: the driver has the
#: master ask again after ten minutes.
TOLD_AGAIN_SECONDS = 700.0


def note(draft: Draft, starts: Mapping[str, float], told: Iterable[str]) -> None:
    """Take what is known now (agent id -> start), of which these agents were just told.

    What was not said again for long is forgotten: it counts no more, and its agent may be gone.
    """
    before, since = draft.state.maintenance, draft.now - TOLD_AGAIN_SECONDS
    told_at = {a: at for a, at in before.told_at.items() if a in starts and at >= since}
    told_at.update(dict.fromkeys((agent for agent in told if agent in starts), draft.now))
    after = Maintenance({a: start for a, start in starts.items() if a in told_at}, told_at)
    if after != before:
        draft.state = replace(draft.state, maintenance=after)


def is_leaving(draft: Draft, agent_id: str) -> bool:
    """Say whether an agent's maintenance is so near that nothing of ours should be there.

    Nobody says that a maintenance was cancelled which we have agreed to: the master only stops
    asking for the agent again.
    """
    known = draft.state.maintenance
    start = known.starts.get(agent_id)
    if start is None or draft.now - known.told_at.get(agent_id, 0.0) > TOLD_AGAIN_SECONDS:
        return False
    return draft.now >= start - draft.state.spec.maintenance_lead_seconds
