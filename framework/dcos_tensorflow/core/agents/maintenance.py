"""Agents that are to be taken down: what was said of them, and when nothing of ours may be there.

Told through ``core.absorb`` by offers and inverse offers, which announce a maintenance, and by task
runners on machines that are taken back; asked where tasks are placed and moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dcos_tensorflow.core.contract import NOTICE_SECONDS
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskRecord

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
    if not draft.state.spec.leave_on_rebalance or _is_advised(draft, record.agent_id):
        return
    since = draft.now - TOLD_AGAIN_SECONDS
    advised = {agent: at for agent, at in before.advised.items() if at >= since}
    advised[record.agent_id] = draft.now
    draft.state = replace(draft.state, maintenance=replace(before, advised=advised))
    moves = f"{record.name} trains on and looks for another place"
    gang.say(f"{record.hostname} may be taken back: {moves}")


def agents(draft: Draft) -> frozenset[str]:
    """Return the agents with a notice that still counts."""
    known = draft.state.maintenance
    taken_back = (agent for agent in known.noticed if _is_taken_back(draft, agent))
    advised = (agent for agent in known.advised if _is_advised(draft, agent))
    return frozenset({*known.starts, *taken_back, *advised})


def is_leaving(draft: Draft, agent_id: str) -> bool:
    """Say whether an agent goes so soon that nothing should be placed there."""
    said = _is_taken_back, _is_advised, _is_announced
    return any(goes(draft, agent_id) for goes in said)


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


def must_be_left(draft: Draft, agent_id: str) -> bool:
    """Say whether an agent goes so soon that its tasks have to leave, wherever to.

    From a machine that is taken back that is as late as can be: until then there may be another
    place, and who trains meanwhile loses nothing.
    """
    if _is_announced(draft, agent_id):
        return True
    lead = draft.state.spec.kill_grace_seconds + LEAVING_SECONDS
    at = draft.state.maintenance.noticed.get(agent_id, 0.0)
    return _is_taken_back(draft, agent_id) and draft.now >= at - lead


def _is_taken_back(draft: Draft, agent_id: str) -> bool:
    at = draft.state.maintenance.noticed.get(agent_id)
    # A machine that was stopped, and no more, may be back with its agent.
    return at is not None and draft.now - at <= TOLD_AGAIN_SECONDS


def _is_advised(draft: Draft, agent_id: str) -> bool:
    at = draft.state.maintenance.advised.get(agent_id)
    wanted = draft.state.spec.leave_on_rebalance
    return wanted and at is not None and draft.now - at <= TOLD_AGAIN_SECONDS


def _is_announced(draft: Draft, agent_id: str) -> bool:
    """Say whether an agent's maintenance is near.

    No message says that a maintenance was cancelled which we have agreed to: the master only stops
    asking for the agent again.
    """
    known = draft.state.maintenance
    start = known.starts.get(agent_id)
    if start is None or draft.now - known.told_at.get(agent_id, 0.0) > TOLD_AGAIN_SECONDS:
        return False
    return draft.now >= start - draft.state.spec.maintenance_lead_seconds
