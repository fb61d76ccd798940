"""The one door of the core: ``step(state, events, now) -> Decision``.

The scheduler's event loop calls it with the events since the last step, in their order. A step does
the following, in this order:

1. ``absorb``: the state mirrors each event; ``core.operator.requests`` carries out requests;
2. the passes of :data:`PASSES`, one after the other: jobs move on, slots come and go, unwanted
   tasks are killed, offers are used or handed back, the master is asked about tasks.

The caller commits ``writes``, then performs ``actions`` in order; acknowledgements come last, so
Mesos repeats an update that was not committed. A step never does I/O and never fails because of an
event: bad luck is a state, not an exception. Its cost follows the number of changes, not the size
of the service (``core.model.task_table``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dcos_tensorflow.core.absorb import absorb
from dcos_tensorflow.core.advance import kill_unwanted, let_rest, move_jobs
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.kept.writes import writes_between
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.core.model.actions import (
    Accept,
    Action,
    CollectEvidence,
    Decline,
    EraseState,
    Kill,
    Reconcile,
    Release,
    Revive,
    Suppress,
    Teardown,
    UnitEnded,
    UnitsWanted,
    Write,
)
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.offers import reconciliation
from dcos_tensorflow.core.offers.desk import use_offers
from dcos_tensorflow.core.operator import uninstall
from dcos_tensorflow.core.operator.requests import carry_out
from dcos_tensorflow.core.work import slots
from dcos_tensorflow.records import dataclass

#: A scheduler that looked at nothing for so long (its store was away, its machine stood still) has
#: heard nothing meanwhile. It looks once a second.
PAUSE_SECONDS = 10.0


@dataclass(frozen=True)
class Decision:
    """What events lead to."""

    state: ServiceState
    #: What to commit before anything is done.
    writes: tuple[Write, ...]
    #: What to do then, in order; acknowledgements are the last.
    actions: tuple[Action, ...]
    #: Why, one sentence after the other.
    why: str
    #: The tasks whose records have changed, or are gone.
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pass:
    """One look at the whole draft. What it changes, the passes behind it see."""

    run: Callable[[Draft], None]
    #: The fields of ``ServiceState`` that it may change, by their names.
    changes: str
    #: What it may ask for; no other pass asks for that.
    actions: tuple[type, ...] = ()


#: What a step does once its events are taken in, in this order.
#: ``tests/simulation/checks/test_passes.py`` holds each to what stands here.
PASSES = (
    # The tasks that the master has spoken of owe no answer: a job that moves may doubt some anew.
    Pass(reconciliation.settle, "reconciliation"),
    # Each job goes where its tasks' facts and the clock lead it. A gang that changes rests no more.
    Pass(
        move_jobs,
        "gangs at_rest units abandoned agent_failures controls desk told",
        (CollectEvidence, UnitEnded),
    ),
    # By now it is known which slots are idle, and which are gone.
    Pass(slots.scale, "gangs at_rest units desk", (UnitsWanted,)),
    # It waits until every job is ENDING, and then DONE.
    Pass(uninstall.go_on, "gangs at_rest uninstall removal framework_id", (Teardown, EraseState)),
    # By the phase that each job has reached by now.
    Pass(kill_unwanted, "gangs at_rest strays", (Kill,)),
    Pass(let_rest, "at_rest"),
    # What is wanted has settled: everything in hand is used for it, held, or handed back.
    Pass(
        use_offers,
        "gangs at_rest attempt abandoned awaited_back desk reconciliation reservations told",
        (Accept, Decline, Release, Revive, Suppress),
    ),
    # Also about attempts that an offer has brought into doubt.
    Pass(reconciliation.reconcile, "reconciliation", (Reconcile,)),
)


def step(state: ServiceState, events: Sequence[Event], now: float) -> Decision:
    """Return what ``events`` lead to. ``now`` is unix seconds and never goes back."""
    draft = Draft(state, now, state)
    _look_at_the_clock(draft)
    for event in map(bounds.of_event, events):
        if not carry_out(draft, event):
            absorb(draft, event)
    for each in PASSES:
        each.run(draft)
    writes, changed = writes_between(state, draft.state), _changed(state, draft.state)
    draft.close()
    return Decision(
        state=draft.state,
        writes=writes,
        actions=(*draft.actions, *draft.acknowledgements),
        why="; ".join(dict.fromkeys(draft.reasons)),
        changed=changed,
    )


def _changed(before: ServiceState, after: ServiceState) -> tuple[str, ...]:
    found: list[str] = []
    for name, gang in after.gangs.items():
        known = before.gangs.get(name)
        if known is None:
            found += gang.tasks
        elif known is not gang:
            found += gang.tasks.changed_since(known.tasks)
    gone = (gang for name, gang in before.gangs.items() if name not in after.gangs)
    return (*found, *(task for gang in gone for task in gang.tasks))


def _look_at_the_clock(draft: Draft) -> None:
    known = draft.state.subscription
    paused = draft.now - known.stepped_at > PAUSE_SECONDS
    awake_since = draft.now if paused else known.awake_since
    began_at = known.began_at or draft.now
    looked = replace(known, stepped_at=draft.now, awake_since=awake_since, began_at=began_at)
    draft.state = replace(draft.state, subscription=looked)
