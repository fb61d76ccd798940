"""One turn of the event loop: the decision, the seconds of each part, and the id that ties them.

Made by ``event_loop``; read by the code that measures (``api.counters``), traces (``tracing``) or
logs (``deploy.own_log``). It keeps names of events and no contents: these may hold secrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from dcos_tensorflow.core.counted import listed

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.actions import Action
    from dcos_tensorflow.core.model.events import Event
    from dcos_tensorflow.core.model.service_state import ServiceState
    from dcos_tensorflow.core.step import Decision

#: The id of the turn that this thread is in; empty in every other thread and between two turns.
TURN_ID: ContextVar[str] = ContextVar("turn", default="")

#: Names of one kind in a line of the log; of the others it says how many there are.
_MOST_NAMES = 20


class Turn(NamedTuple):
    """What one turn did. Times are in seconds, ``ended_at`` in unix seconds.

    It is no dataclass: one is made at every turn, and that takes a tenth of the time.
    """

    #: Unique among the turns of all schedulers of the service.
    id: str
    #: What it began with; a lone Tick where only time had passed.
    events: Sequence[Event]
    before: ServiceState
    decision: Decision
    #: For how long the first of the events had waited when the loop turned to them.
    waited: float
    #: In ``core.step.step``.
    decided: float
    #: In the state store, every try; None where nothing was written.
    committed: float | None
    #: In calls to Mesos and to all others that carry out an action.
    performed: float
    ended_at: float

    @property
    def says_something(self) -> bool:
        """Say whether it was more than a look at the clock."""
        decision = self.decision
        alone = len(self.events) == 1 and type(self.events[0]).__name__ == "Tick"
        return not alone or bool(decision.why or decision.writes or decision.actions)

    def named(self) -> Mapping[str, Sequence[str]]:
        """Return events, writes and calls by their names, a bounded number of each."""
        return {
            "events": named_events(self.events),
            "writes": _named((w.path, "") for w in self.decision.writes),
            "calls": _named((type(a).__name__, _subject(a)) for a in self.decision.actions),
        }


def named_events(events: Iterable[Event]) -> Sequence[str]:
    """Return events by their names, a bounded number of them."""
    return _named((type(event).__name__, _subject(event)) for event in events)


#: What names whom an event or an action is about: the first of these that it has. Ids and names of
#: tasks alone.
_SUBJECTS = ("task_id", "task_ids", "offer_ids", "tasks", "agent_id", "offer_id", "plan", "number")


def _subject(what: Event | Action) -> str:
    launches = getattr(what, "launches", ())
    found: object = tuple(launch.task_id for launch in launches)
    for name in _SUBJECTS:
        found = found or getattr(what, name, "")
    several = found if isinstance(found, tuple) else (found,)
    return listed([str(one[0] if isinstance(one, tuple) else one) for one in several])


def _named(found: Iterable[tuple[str, str]]) -> Sequence[str]:
    counted = Counter(f"{kind} {subject}".rstrip() for kind, subject in found)
    names = [name if many == 1 else f"{name} ({many} times)" for name, many in counted.items()]
    more = len(names) - _MOST_NAMES
    return [*names[:_MOST_NAMES], *([f"and {more} more"] if more > 0 else [])]
