"""The one door of the core: ``step(state, events, now) -> Decision``.

Called by the scheduler's event loop with all events that wait, in the order of its queue. A step
looks at the whole state, in this order:

1. ``absorb``: the state mirrors what the events say, one after the other;
2. ``advance``: the job moves on, what should not run is killed;
3. ``use_offers``: what is wanted is placed, every other offer handed back;
4. ``reconcile``: whoever owes an answer is asked.

The caller commits ``writes``, then performs ``actions`` in order; acknowledgements come last, so an
update that was not committed is sent again by Mesos. A step never does I/O and never fails for what
an event says: bad luck is a state, not an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dcos_tensorflow.core.absorb import absorb
from dcos_tensorflow.core.advance import advance
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.actions import Action, Write
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.service_state import ServiceState, writes_between
from dcos_tensorflow.core.offers.reconciliation import reconcile
from dcos_tensorflow.core.offers.use import use_offers

#: A scheduler that looked at nothing for so long (its store was away, its machine stood still) has
#: heard nobody meanwhile. It looks once a second.
PAUSE_SECONDS = 10.0


@dataclass(frozen=True)
class Decision:
    """What some events lead to: the new state, what to commit, what to do then, and why."""

    state: ServiceState
    writes: tuple[Write, ...]
    actions: tuple[Action, ...]
    why: str


def step(state: ServiceState, events: Sequence[Event], now: float) -> Decision:
    """Return what ``events`` lead to. ``now`` is unix seconds and never goes back."""
    draft = Draft(state, now)
    draft.set(stepped_at=now)
    if now - state.stepped_at > PAUSE_SECONDS:
        draft.set(awake_since=now)
    for event in events:
        absorb(draft, event)
    advance(draft)
    use_offers(draft)
    reconcile(draft)
    return Decision(
        state=draft.state,
        writes=writes_between(state, draft.state),
        actions=(*draft.actions, *draft.acknowledgements),
        why="; ".join(dict.fromkeys(draft.reasons)),
    )
