"""The one door of the core: ``step(state, events, now) -> Decision``.

Called by the scheduler's event loop with what has happened since the last step, in its order. A
step looks at what the events say, and at what is due, in this order:

1. ``absorb``: the state mirrors what each event says, and people's requests are carried out;
2. ``advance``: every gang's job moves on, what should not run is killed;
3. ``use_offers``: what is wanted is placed, every other offer handed back;
4. ``reconcile``: the master is asked about tasks that owe an answer.

The caller commits ``writes``, then performs ``actions`` in order; acknowledgements come last, so an
update that was not committed is sent again by Mesos. A step never does I/O and never fails for what
an event says: bad luck is a state, not an exception. It costs what has changed, not what there is
(``core.model.task_table``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcos_tensorflow.core.absorb import absorb
from dcos_tensorflow.core.advance import advance
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.kept.writes import writes_between
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.core.model.actions import Action, Write
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.offers.desk import use_offers
from dcos_tensorflow.core.offers.reconciliation import reconcile, settle
from dcos_tensorflow.core.operator.requests import carry_out
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


def step(state: ServiceState, events: Sequence[Event], now: float) -> Decision:
    """Return what ``events`` lead to. ``now`` is unix seconds and never goes back."""
    draft = Draft(state, now, state)
    _look_at_the_clock(draft)
    for event in map(bounds.of_event, events):
        if not carry_out(draft, event):
            absorb(draft, event)
    settle(draft)
    advance(draft)
    use_offers(draft)
    reconcile(draft)
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
