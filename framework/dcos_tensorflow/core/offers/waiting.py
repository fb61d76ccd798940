"""The gangs that wait for places, with their resources: the demand for machines of one state.

Asked by ``scheduler.machines.buying`` beside the event loop. It asks ``core.offers.wants`` as a
step does, in a draft that is thrown away: nothing is changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.offers.wants import wants
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.work import slots
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class WaitingGang:
    """Tasks that are placed together or not at all."""

    #: The gang, or of what takes a place by itself (a sidecar) the task.
    name: str
    requests: tuple[TaskRequest, ...]
    #: Since when a place for them could have been found; unix seconds.
    since: float
    #: Where the others of the gang are; empty where there are none, or no zones.
    zone: str = ""


def waiting(state: ServiceState, now: float, most_slots: int) -> tuple[WaitingGang, ...]:
    """Return the gangs that wait, the longest first; of slots that units wait for at most so many.

    A gang that something else than room holds up is left out: a machine is of no use to it.
    """
    if not state.registered or all(gang.placing.blocked for gang in state.gangs.values()):
        return ()
    draft = Draft(state, now, before=state)
    slots.grow(draft, most_slots)
    found = [each for gang in draft.awake() for each in _of(gang, state)]
    return tuple(sorted(found, key=lambda each: each.since))


def _of(gang: GangDraft, state: ServiceState) -> Iterator[WaitingGang]:
    known = state.gangs.get(gang.name)
    blocked = known is not None and (known.placing.blocked or known.placing.short_of_quota)
    what = wants(gang)
    if blocked or gang.placing.blocked:
        return
    since = max(gang.job.phase_since, state.subscription.registered_at)
    # A task that trains on a machine that is taken back has to have its new place before that.
    urgent = (*what.members, *what.ahead)
    zone = _zone(gang, {request.name for request in urgent})
    if urgent:
        yield WaitingGang(gang.name, urgent, since, zone)
    misfits = known.placing.reasons if known is not None else {}
    for request in what.others:
        if request.name in misfits:
            yield WaitingGang(request.name, (request,), since, zone)


def _zone(gang: GangDraft, moving: Collection[str]) -> str:
    """Return the zone that most of a gang's tasks are in, but for those that look elsewhere."""
    zones = [record.zone or "" for record in gang.tasks.live if record.name not in moving]
    return max(sorted(set(zones)), key=zones.count) if zones else ""
