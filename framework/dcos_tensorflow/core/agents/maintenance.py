"""Agents with a planned maintenance: its window, and when our tasks have to be gone.

``core.absorb`` hands in announcements: of offers and inverse offers, and of task runners on
machines that the provider takes back. Placement and moves of tasks ask here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dcos_tensorflow.core.contract import NOTICE_SECONDS
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.records import dataclass

#: A maintenance that we have agreed to is spoken of again within this time: the driver has the
#: master ask again after ten minutes.
TOLD_AGAIN_SECONDS = 700.0
#: Task runners look for a notice every five seconds: so much later all of a gang have heard of
#: theirs that came at the same time.
GATHERING_SECONDS = 10.0
#: What it takes to leave a machine beside the grace of its processes: to publish what they saved.
LEAVING_SECONDS = 20.0


def note(draft: Draft, starts: Mapping[str, float], told: Iterable[str]) -> None:
    """Take what is known now (agent id -> start), of which these agents were just told.

    What was not said again for long is forgotten: it counts no more, and its agent may be gone.
    """
    before, since = draft.state.maintenance, draft.now - TOLD_AGAIN_SECONDS
    told_at = {a: at for a, at in before.told_at.items() if a in starts and at >= since}
    told_at.update(dict.fromkeys((agent for agent in told if agent in starts), draft.now))
    known = {a: start for a, start in starts.items() if a in told_at}
    after = replace(before, starts=known, told_at=told_at)
    if after != before:
        draft.state = replace(draft.state, maintenance=after)


def notice(gang: GangDraft, record: TaskRecord, at: float) -> None:
    """Take in that the machine of a task is taken back at ``at``: it has said so itself.

    Whatever our clock says, that is no longer away than any machine knows it before.
    """
    draft = gang.service
    before, since = draft.state.maintenance, draft.now - TOLD_AGAIN_SECONDS
    noticed = {agent: when for agent, when in before.noticed.items() if when >= since}
    if record.agent_id in noticed or at < since:
        return
    noticed[record.agent_id] = at = min(at, draft.now + NOTICE_SECONDS)
    draft.state = replace(draft.state, maintenance=replace(before, noticed=noticed))
    left = max(0.0, at - draft.now)
    gang.say(f"{record.hostname} says that it is taken back in {left:.0f} s")
    if gang.job.phase is JobPhase.RUNNING and draft.state.reservation_of(record.name) is None:
        moves = f"{record.name} trains on and looks for another place"
        gang.explain(f"{record.hostname} is taken back by its provider: {moves}")


def advise(gang: GangDraft, record: TaskRecord) -> None:
    """Take in that the machine of a task may be taken back: its tasks leave it if told to."""
    draft = gang.service
    before = draft.state.maintenance
    since = draft.now - TOLD_AGAIN_SECONDS
    if not draft.state.spec.leave_on_rebalance or before.advised.get(record.agent_id, 0.0) >= since:
        return
    advised = {agent: at for agent, at in before.advised.items() if at >= since}
    advised[record.agent_id] = draft.now
    draft.state = replace(draft.state, maintenance=replace(before, advised=advised))
    moves = f"{record.name} trains on and looks for another place"
    gang.say(f"{record.hostname} may be taken back: {moves}")


def agents(draft: Draft) -> frozenset[str]:
    """Return the agents that are to be left, sooner or later."""
    known = draft.state.maintenance
    named = {*known.starts, *known.noticed, *known.advised}
    return frozenset(agent for agent in named if any(_reasons(draft, agent)))


def is_leaving(draft: Draft, agent_id: str) -> bool:
    """Say whether an agent goes so soon that nothing should be placed there."""
    return any(draft.now >= reason.shunned_from for reason in _reasons(draft, agent_id))


def must_be_left(draft: Draft, agent_id: str) -> bool:
    """Say whether an agent goes so soon that its tasks have to leave, wherever to."""
    return any(draft.now >= reason.left_from for reason in _reasons(draft, agent_id))


def remembered_seconds(draft: Draft, agent_id: str) -> float:
    """Return for how long what was said of an agent still counts, unless it is said again."""
    known = draft.state.maintenance
    said = (known.noticed, known.told_at, known.advised)
    return max(told.get(agent_id, -math.inf) for told in said) + TOLD_AGAIN_SECONDS - draft.now


def is_just_noticed(draft: Draft, agent_id: str) -> bool:
    """Say whether a machine has said so seconds ago: others may not have got round to it."""
    if draft.now < draft.state.maintenance.advised.get(agent_id, -math.inf) + GATHERING_SECONDS:
        return True
    at = draft.state.maintenance.noticed.get(agent_id, 0.0)
    return draft.now < at - NOTICE_SECONDS + GATHERING_SECONDS


@dataclass(frozen=True)
class _Reason:
    """Why an agent is to be left. Unix seconds."""

    #: It was said then, or the machine goes then: it counts for TOLD_AGAIN_SECONDS after that.
    said_at: float
    #: From then on nothing is placed there ...
    shunned_from: float
    #: ... and from then on its tasks leave, wherever to.
    left_from: float


def _reasons(draft: Draft, agent_id: str) -> Iterator[_Reason]:
    """Yield why an agent is to be left, as far as it still counts: the one table of that."""
    spec, known = draft.state.spec, draft.state.maintenance
    found = []
    if (start := known.starts.get(agent_id)) is not None:
        # No message says that a maintenance was cancelled which we have agreed to: the master only
        # stops asking for the agent again.
        lead = start - spec.maintenance_lead_seconds
        found.append(_Reason(known.told_at.get(agent_id, 0.0), lead, lead))
    if (at := known.noticed.get(agent_id)) is not None:
        # As late as can be: until then there may be another place, and tasks that train meanwhile
        # lose nothing. A machine that was stopped, and no more, may be back with its agent.
        found.append(_Reason(at, -math.inf, at - spec.kill_grace_seconds - LEAVING_SECONDS))
    if spec.leave_on_rebalance and (at := known.advised.get(agent_id)) is not None:
        found.append(_Reason(at, -math.inf, math.inf))
    return (each for each in found if draft.now - each.said_at <= TOLD_AGAIN_SECONDS)
