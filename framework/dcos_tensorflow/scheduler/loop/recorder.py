"""The last turns of the event loop, as references to their states and events.

Fed by ``event_loop`` at every turn, asked by the API for a recording (``core.kept.recording``). It
copies, encodes and hides nothing before it is asked: a turn costs about a microsecond. Its
size is bounded in turns, and in bytes as far as counting them costs nothing.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from dcos_tensorflow.core.kept.recording import RecordedTurn, Recording
from dcos_tensorflow.core.model.actions import Accept, Reconcile
from dcos_tensorflow.core.model.events import OffersReceived, RunnerReported, TaskUpdate, Tick
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.service_state import ServiceState

#: Two parts are held: when the newer one has so many turns, or bytes, the older one goes.
PART_TURNS = 1_000
PART_BYTES = 2_000_000
#: A turn that is larger (a launch of thousands of tasks) is not held: what is held begins anew.
TURN_BYTES = 32_000_000
#: What a turn, an event, an action take that say little; what an offer or a launch take at least.
_LITTLE_BYTES = 300
_OFFER_BYTES = 1_000


@dataclass
class _Part:
    """Turns that follow each other, from a state on."""

    state: ServiceState
    turns: list[RecordedTurn] = field(default_factory=list)
    size: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.turns) >= PART_TURNS or self.size >= PART_BYTES


class Recorder:
    """Holds the last turns. The loop's thread notes them; any thread may ask for them."""

    def __init__(self) -> None:
        #: The older one first; another tuple whenever a part comes or goes.
        self._parts: tuple[_Part, ...] = ()
        #: How many reports were measured.
        self._measured = 0

    def note(self, before: ServiceState, turn: RecordedTurn) -> None:
        """Hold a turn that has been committed, and that began with ``before``."""
        size = sum(_bytes_of(turn)) + self._bytes_of_reports(turn)
        if size > TURN_BYTES:
            self._parts = ()
            return
        parts = self._parts
        if not parts or parts[-1].is_full:
            parts = self._parts = (*parts[-1:], _Part(before))
        parts[-1].turns.append(turn)
        parts[-1].size += size

    def _bytes_of_reports(self, turn: RecordedTurn) -> int:
        """Return about how many bytes its reports take: one of them stands for all.

        It is another one each time, so that over many turns the sum is right. To measure each
        would take a tenth of what a step takes for it.
        """
        found = [event.report for event in turn.events if isinstance(event, RunnerReported)]
        if not found:
            return 0
        self._measured += 1
        # The quickest way to the size of what JSON was.
        return len(found) * len(marshal.dumps(dict(found[self._measured % len(found)])))

    def recording(self) -> Recording | None:
        """Return what is held; None before the first turn."""
        parts = self._parts
        turns = tuple(turn for part in parts for turn in tuple(part.turns))
        return Recording(parts[0].state, turns) if turns else None

    @property
    def size(self) -> int:
        """Return about how many bytes are held, beside those that the state has itself."""
        return sum(part.size for part in self._parts)


def _bytes_of(turn: RecordedTurn) -> Iterator[int]:
    yield _LITTLE_BYTES + len(turn.why)
    for write in turn.writes:
        yield len(write.path) + len(write.value or b"")
    for event in turn.events:
        match event:
            case RunnerReported() | Tick():
                yield _LITTLE_BYTES
            case OffersReceived():
                yield _OFFER_BYTES * len(event.offers)
            case TaskUpdate():
                yield _LITTLE_BYTES + len(event.message)
            case _:
                yield len(repr(event))
    for action in turn.actions:
        match action:
            case Accept():
                # A text that all of them share is held once.
                texts = [t for each in action.launches for t in (each.command, *each.env.values())]
                yield sum({id(text): len(text) for text in texts}.values())
                yield _OFFER_BYTES * len(action.launches)
            case Reconcile():
                yield _LITTLE_BYTES * len(action.tasks)
            case _:
                yield _LITTLE_BYTES
