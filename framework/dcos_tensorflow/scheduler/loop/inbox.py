"""The events that no step has taken yet, in a bounded place.

Used by ``event_loop.EventLoop`` alone: any thread puts events in, the loop takes many at once. The
state store may be away for an hour while all others go on to tell: of events that say the same, or
that a later event makes void, it keeps one. It never looks at the state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from dcos_tensorflow.core.model.events import (
    ConfigurationChanged,
    Disconnected,
    Event,
    OfferRescinded,
    OffersReceived,
    PlanCommand,
    PodCommand,
    Registered,
    ReleaseRequested,
    RunnerReported,
    StopRequested,
    TaskUpdate,
    UninstallRequested,
)

#: Events taken at once: enough to share the cost of a step and of a commit, few enough that both
#: stay short and a commit stays one transaction.
MOST_TAKEN = 500

#: What people ask for.
_VERBS = (
    StopRequested,
    PlanCommand,
    PodCommand,
    ConfigurationChanged,
    UninstallRequested,
    ReleaseRequested,
)


class Inbox:
    """Three ways in: what people ask for goes first; what Mesos and others tell keeps its order;
    of what a task runner reports only the newest counts."""

    def __init__(self) -> None:
        self._guard = threading.Condition()
        self._woken = False
        self._verbs: list[Event] = []
        #: What was told, by a number that grows: so that what is void leaves from the middle.
        self._told: dict[int, Event] = {}
        self._number = 0
        #: Where an offer waits, and which acknowledged updates do.
        self._offers: dict[str, int] = {}
        self._updates: set[str] = set()
        self._reports: dict[str, RunnerReported] = {}
        #: Since when something waits that was not looked at, on the monotonic clock; None: nothing.
        self._since: float | None = None
        #: For how many seconds no look was taken, though something waited, at the last ``take``.
        self.waited = 0.0

    def __len__(self) -> int:
        with self._guard:
            return len(self._verbs) + len(self._told) + len(self._reports)

    def put(self, event: Event) -> None:
        """Keep an event until it is taken. Any thread; never blocks."""
        with self._guard:
            if isinstance(event, RunnerReported):
                self._reports[event.task_id] = event
            elif isinstance(event, _VERBS):
                self._verbs.append(event)
            else:
                self._tell(event)
            if self._since is None or not self._waits:
                self._since = time.monotonic() if self._waits else None
            self._guard.notify()

    def wake(self) -> None:
        """End the waiting of ``take``, now or the next time."""
        with self._guard:
            self._woken = True
            self._guard.notify()

    def take(self, timeout: float) -> Sequence[Event]:
        """Return what waits, at most ``MOST_TAKEN`` events; none when nothing came in time.

        Reports and what was told take at least half of the room each when there is too much of
        both.
        """
        with self._guard:
            self._guard.wait_for(lambda: self._woken or self._waits, timeout)
            self._woken = False
            taken = self._verbs[:MOST_TAKEN]
            del self._verbs[:MOST_TAKEN]
            room = MOST_TAKEN - len(taken)
            taken += self._take_told(room - min(len(self._reports), room // 2))
            for task_id in tuple(islice(self._reports, MOST_TAKEN - len(taken))):
                taken.append(self._reports.pop(task_id))
            since, now = self._since, time.monotonic()
            self._since = now if self._waits else None
            self.waited = 0.0 if since is None else now - since
            return taken

    @property
    def _waits(self) -> bool:
        return bool(self._verbs or self._told or self._reports)

    def _take_told(self, most: int) -> list[Event]:
        taken = []
        for number in tuple(islice(self._told, most)):
            event = self._told.pop(number)
            if isinstance(event, OffersReceived):
                for offer in event.offers:
                    self._offers.pop(offer.offer_id, None)
            elif isinstance(event, TaskUpdate):
                self._updates.discard(event.uuid)
            taken.append(event)
        return taken

    def _tell(self, event: Event) -> None:
        match event:
            case TaskUpdate(uuid=uuid) if uuid:
                # An agent repeats it until it is acknowledged, and one acknowledgement will do.
                if uuid in self._updates:
                    return
                self._updates.add(uuid)
            case OfferRescinded(offer_id=offer_id) if offer_id in self._offers:
                self._void(offer_id)
                return
            case Registered() | Disconnected():
                for offer_id in tuple(self._offers):
                    self._void(offer_id)
                self._forget_repeated(event)
        self._number += 1
        self._told[self._number] = event
        if isinstance(event, OffersReceived):
            self._offers.update((offer.offer_id, self._number) for offer in event.offers)

    def _forget_repeated(self, event: Registered | Disconnected) -> None:
        """Forget a failed try to subscribe when the next one has failed, too."""
        last = next(reversed(self._told), None)
        if last is None or not isinstance(event, Disconnected):
            return
        if isinstance(self._told[last], Disconnected):
            del self._told[last]

    def _void(self, offer_id: str) -> None:
        """Forget an offer that waits: it is no longer valid."""
        number = self._offers.pop(offer_id)
        event = self._told[number]
        assert isinstance(event, OffersReceived)
        left = tuple(offer for offer in event.offers if offer.offer_id != offer_id)
        if left:
            self._told[number] = replace(event, offers=left)
        else:
            del self._told[number]
