"""Turns of the event loop in the making, for tests of whatever measures or tells them."""

import itertools
from collections.abc import Sequence
from typing import Any

from dcos_tensorflow.core.model.actions import Action
from dcos_tensorflow.core.model.events import Event, Tick
from dcos_tensorflow.core.model.job import Incident, JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.step import Decision, step
from dcos_tensorflow.scheduler.loop.turn import Turn
from samples.states import NOW, a_state, gang


def a_turn(
    state: ServiceState,
    *actions: Action,
    changed: tuple[str, ...] = (),
    events: Sequence[Event] = (Tick(),),
    at: float = NOW,
    before: ServiceState | None = None,
) -> Turn:
    """Return a turn that has led to ``state``, and took times that can be told apart."""
    return _turn(before or state, Decision(state, (), actions, "", changed), events, at)


def turns_of(states: Sequence[ServiceState]) -> list[Turn]:
    """Return the turns that lead from each of these states to the next."""
    return [a_turn(after, before=before) for before, after in itertools.pairwise(states)]


def turned(state: ServiceState, *events: Event, at: float) -> Turn:
    """Return the turn that the core makes of events."""
    return _turn(state, step(state, events or (Tick(),), at), events or (Tick(),), at)


def _turn(before: ServiceState, decision: Decision, events: Sequence[Event], at: float) -> Turn:
    committed = 0.02 if decision.writes else None
    return Turn("1afe-1", events, before, decision, 0.003, 0.03, committed, 0.2, at)


#: The phases of a restart that takes ten seconds.
THROUGH = (
    (JobPhase.STOPPING, NOW),
    (JobPhase.STARTING, NOW + 4),
    (JobPhase.RUNNING, NOW + 10),
)


def restarted(
    *incidents: Incident,
    phases: Sequence[tuple[JobPhase, float]] = THROUGH,
    steps: Sequence[int] = (),
) -> list[ServiceState]:
    """Return the states of a job that ran and was restarted at NOW, of each phase one.

    The first of ``steps`` was told before; each other one is told in a state of its own at the end.
    """
    before = steps[0] if steps else None
    job = {"trained_until": NOW, "incidents": incidents}
    return [
        standing(JobPhase.RUNNING, NOW - 100, step=before),
        *(standing(phase, at, step=before, **job) for phase, at in phases),
        *(
            standing(*phases[-1], step=step, told_at=float(number), **job)
            for number, step in enumerate(steps[1:], start=1)
        ),
    ]


def standing(
    phase: JobPhase, since: float, *, step: int | None = None, told_at: float = 0.0, **job: Any
) -> ServiceState:
    """Return a gang in a phase, whose workers have told this step."""
    records = gang()
    told = {"progress": {"step": step, "at": told_at}, "start": 1}
    reports = {r.task_id: told for r in records if r.name != "ps-0" and step is not None}
    members = ("worker-0", "worker-1")
    facts = {"phase_since": since, "restarting": members, **job}
    return a_state(phase, records, reports=reports, job=facts)
