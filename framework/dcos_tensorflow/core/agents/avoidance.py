"""Agents that are passed over for a while: those that failed our tasks, and those to be left.

Asked by ``core.offers``; told by ``core.failures.incidents``, and where an operator asks for a
replacement. Nothing is refused for good: an agent that alone makes offers is taken in the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dcos_tensorflow.core.draft import Draft, GangDraft

#: An agent's failures count against it for so long (seconds).
WINDOW_SECONDS = 900.0
#: Failures of a job's tasks on one agent within that time after which the agent is avoided while
#: others have room.
AVOIDED_AFTER = 3


def count(draft: Draft, agent_id: str, times: int = 1) -> None:
    """Note failures on an agent; old ones are forgotten."""
    since = draft.now - WINDOW_SECONDS
    known = {
        agent: kept
        for agent, at in draft.state.agent_failures.items()
        if (kept := tuple(t for t in at if t > since))
    }
    # More than it takes to be avoided say nothing more.
    at = (*known.get(agent_id, ()), *(draft.now for _ in range(times)))[-AVOIDED_AFTER:]
    draft.state = replace(draft.state, agent_failures={**known, agent_id: at})


def avoid(draft: Draft, agent_id: str) -> None:
    """Leave an agent for a while, as an operator has asked for."""
    count(draft, agent_id, AVOIDED_AFTER)


def agents(draft: Draft) -> frozenset[str]:
    """Return the agents on which tasks failed repeatedly of late, or should not stay."""
    since = draft.now - WINDOW_SECONDS
    return frozenset(
        agent
        for agent, at in draft.state.agent_failures.items()
        if sum(1 for t in at if t > since) >= AVOIDED_AFTER
    )


def reasons(draft: Draft) -> dict[str, str]:
    """Return the agents in hand that are passed over for now, each with the reason."""
    avoided = agents(draft)
    if not avoided:
        return {}
    seconds = draft.state.spec.gang.hold_seconds
    return {
        o.agent_id: f"{o.hostname} failed tasks of this job or is to be left, and is taken"
        f" only when nothing else has come for {seconds:g} s"
        for o in draft.state.desk.offers.values()
        if o.agent_id in avoided
    }


def is_on(gang: GangDraft) -> bool:
    """Say whether a gang still passes agents over: until nothing else has come."""
    since = gang.placing.held_since or gang.now
    return gang.now - since < gang.spec.gang.hold_seconds


def has_just_begun(gang: GangDraft, names: Iterable[str]) -> bool:
    """Say whether offers of other agents may still come for these: no offers are held for them."""
    befores = (gang.tasks.get(name) for name in names)
    ended = [r.changed_at for r in befores if r is not None and r.terminal]
    return gang.now - max(ended, default=0.0) < gang.spec.gang.hold_seconds
