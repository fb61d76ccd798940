"""Agents that are passed over for a while: those that failed our tasks, and those to be left.

Asked by ``core.offers.use``; noted by ``core.recovery.incidents``, and where somebody asks for a
replacement. Nothing is refused for good: an agent that alone makes offers is taken in the end.
"""

from __future__ import annotations

from collections.abc import Iterable

from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.placement.place import TaskRequest
from dcos_tensorflow.core.recovery.incidents import AGENT_WINDOW_SECONDS
from dcos_tensorflow.core.recovery.planned_changes import AVOIDED_AFTER


def agents(draft: Draft) -> frozenset[str]:
    """Return the agents on which this job's tasks failed repeatedly of late, or should not stay."""
    since = draft.now - AGENT_WINDOW_SECONDS
    return frozenset(
        agent
        for agent, at in draft.job.agent_failures.items()
        if sum(1 for t in at if t > since) >= AVOIDED_AFTER
    )


def reasons(draft: Draft) -> dict[str, str]:
    """Return the agents in hand that are passed over for now, each with the reason."""
    seconds, avoided = draft.state.spec.gang.hold_seconds, agents(draft)
    return {
        o.agent_id: f"{o.hostname} failed tasks of this job or is to be left, and is taken"
        f" only when nothing else has come for {seconds:g} s"
        for o in draft.state.offers.values()
        if o.agent_id in avoided
    }


def is_on(draft: Draft) -> bool:
    """Say whether a gang still passes agents over: until nothing else has come."""
    since = draft.state.gang_since or draft.now
    return draft.now - since < draft.state.spec.gang.hold_seconds


def has_just_begun(draft: Draft, requests: Iterable[TaskRequest]) -> bool:
    """Say whether offers of other agents may still come for these: nobody holds offers for them."""
    befores = (draft.state.tasks.get(request.name) for request in requests)
    ended = [r.changed_at for r in befores if r is not None and r.terminal]
    return draft.now - max(ended, default=0.0) < draft.state.spec.gang.hold_seconds
