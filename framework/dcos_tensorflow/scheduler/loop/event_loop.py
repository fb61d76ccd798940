"""The one thread that owns the state: events in, step, commit, act, tell.

Used by ``scheduler.scheduler``; all others hand it events through ``submit``. It takes waiting
events together (``inbox``): one step, one commit. It keeps the order of the design: write before
act, acknowledge after write. It never sends TEARDOWN, whatever fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from dcos_tensorflow.core.kept.recording import RecordedTurn
from dcos_tensorflow.core.model.actions import Action, EraseState, Exit
from dcos_tensorflow.core.model.events import Event, Tick
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.step import Decision, step
from dcos_tensorflow.scheduler.loop.clock import steady_time
from dcos_tensorflow.scheduler.loop.inbox import Inbox
from dcos_tensorflow.scheduler.loop.recorder import Recorder
from dcos_tensorflow.scheduler.loop.turn import TURN_ID, Turn
from dcos_tensorflow.state.errors import (
    StateAccessDenied,
    StateError,
    StateTooLarge,
    StateUnavailable,
)
from dcos_tensorflow.state.store import StateStore

T = TypeVar("T")

log = logging.getLogger(__name__)

#: So many new objects until Python looks for garbage; usually it is 700. The offers of 10,000
#: agents are two million objects, all of which are in use: to look at them took half of the time.
NEW_OBJECTS = 10_000
#: Of mallopt(3). Each of many threads has a heap of its own otherwise, and what one has freed no
#: other uses: 3 MB of a process that does nothing, and more with every hour.
_ARENA_MAX, _HEAPS = -8, 2
EXIT_SOFTWARE = 70
EXIT_STATE = 8
#: While all gangs are at rest, a tick takes so many times as long.
_RESTING_TICKS = 8
_FIRST_RETRY_SECONDS = 0.2
_MAX_RETRY_SECONDS = 5.0
#: So long it is told that something could not be stored, from the last time on (seconds).
_REFUSED_SECONDS = 60.0
_WAITING = "the tasks run on, nothing else happens until the state can be stored again: {}"
_REFUSED = (
    "running tasks go on, but {} leads to more than can be stored, and is not done: {}; nothing is"
    " bought, launched or ended because of it"
)


def _use_memory_well() -> None:
    """Have Python look for garbage less often, and all threads share two heaps where C can."""
    gc.set_threshold(NEW_OBJECTS)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, _HEAPS)


def _erases(decision: Decision) -> bool:
    """Say whether ``decision`` must be carried out before it may be seen.

    A client that sees the end of an uninstall may end this process (Cosmos does): what is left by
    then would stay for ever.
    """
    return any(isinstance(action, EraseState) for action in decision.actions)


class EventLoop:
    """Feeds events to ``core.step.step`` and carries out each Decision."""

    def __init__(
        self,
        state: ServiceState,
        store: StateStore,
        perform: Callable[[Action], None],
        *,
        tick_seconds: float,
        clock: Callable[[], float] = steady_time,
        first: Sequence[Event] = (),
    ) -> None:
        """``first`` are events that will be asked to be carried out: they are owed from now on."""
        self._state = state
        #: Why the store takes nothing; empty when it does.
        self._held_up = ""
        #: What it has refused last, and until when that is told (monotonic).
        self._refused, self._refused_until = "", 0.0
        #: A state, what holds it up, and the two together.
        self._shown = (state, "", state)
        self._store = store
        self._perform = perform
        self._tick_seconds = tick_seconds
        self._clock = clock
        self._inbox = Inbox()
        #: The last turns, to be played again.
        self.recorder = Recorder()
        self._watchers: list[Callable[[Decision], None]] = []
        self._each_step: list[Callable[[ServiceState], None]] = []
        self._measurers: list[Callable[[Turn], None]] = []
        self._leavers: list[Callable[[], None]] = []
        self._refusals: list[Callable[[Event], None]] = []
        #: What the ids of turns begin with: another scheduler of the service has another.
        self._life = os.urandom(3).hex()
        self._turns = 0
        #: When the present turn began, on the monotonic clock; None between two.
        self._turned_at: float | None = None
        self._erased = False
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        #: What was asked for and no step has taken yet, by the identity of the event.
        self._asked: dict[int, Event] = {id(event): event for event in first}
        #: What others wait for.
        self._awaited: list[Callable[[ServiceState], bool]] = []
        self._thread = threading.Thread(target=self._run, name="event-loop", daemon=True)
        self.exit: Exit | None = None

    @property
    def state(self) -> ServiceState:
        """Return the newest state; immutable, so any thread may read it.

        While the store takes nothing it is the last one that was stored, and says why. So it does
        for a while where something was too large to be stored.
        """
        refused = self._refused if time.monotonic() < self._refused_until else ""
        why, state = self._held_up or refused, self._state
        if not why:
            return state
        of, held_by, shown = self._shown
        if of is not state or held_by != why:
            shown = state.held_up(why)
            self._shown = (state, why, shown)
        return shown

    @property
    def waiting(self) -> int:
        """Return how many events wait for a step."""
        return len(self._inbox)

    @property
    def busy_seconds(self) -> float:
        """Return for how long the present turn has lasted; 0 between two."""
        began = self._turned_at
        return 0.0 if began is None else time.monotonic() - began

    def submit(self, event: Event) -> None:
        """Queue an event. Any thread."""
        self._inbox.put(event)

    def carry_out(self, event: Event, seconds: float) -> bool:
        """Queue an event and wait until the state shows what became of it.

        False where that takes longer than ``seconds``; it is queued all the same. Any thread but
        the loop's own.
        """
        with self._changed:
            self._asked[id(event)] = event
            self._inbox.put(event)
            return self._changed.wait_for(
                lambda: self.exit is not None or not self.owes(event), seconds
            )

    def owes(self, event: Event) -> bool:
        """Say whether no step has taken an event yet that is to be carried out."""
        return id(event) in self._asked

    def watch(self, callback: Callable[[Decision], None]) -> None:
        """Call ``callback`` in the loop's thread after every step that said something."""
        self._watchers.append(callback)

    def after_step(self, callback: Callable[[ServiceState], None]) -> None:
        """Call ``callback`` in the loop's thread after every step, also when nothing happens.

        At least every ``_RESTING_TICKS`` ticks; it must not block.
        """
        self._each_step.append(callback)

    def measure(self, callback: Callable[[Turn], None]) -> None:
        """Call ``callback`` in the loop's thread after every turn that had or did something."""
        self._measurers.append(callback)

    def when_refused(self, callback: Callable[[Event], None]) -> None:
        """Call ``callback`` in the loop's thread with each event that led to what is too large."""
        self._refusals.append(callback)

    def when_left(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once the loop has ended with a reason, in the thread that gave it."""
        self._leavers.append(callback)

    def start(self) -> None:
        """Start the thread."""
        _use_memory_well()
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the events in hand. Tasks are left alone."""
        self._stopping.set()
        self._inbox.wake()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def leave(self, code: int, message: str) -> None:
        """End the loop with a reason; the first reason stays."""
        if self.exit is None:
            self.exit = Exit(code, message)
            log.error("the scheduler ends: %s", message)
        self._stopping.set()
        self._inbox.wake()
        with self._changed:
            self._changed.notify_all()
        for callback in self._leavers:
            callback()

    def wait_for(
        self, condition: Callable[[ServiceState], bool], timeout: float | None = None
    ) -> bool:
        """Wait until the state fits or the loop has left; True unless the time ran out."""
        with self._changed:
            self._awaited.append(condition)
            try:
                return self._changed.wait_for(
                    lambda: self.exit is not None or condition(self._state), timeout
                )
            finally:
                self._awaited.remove(condition)

    def _run(self) -> None:
        while not self._stopping.is_set():
            events = self._inbox.take(self._patience())
            if self._stopping.is_set():
                break
            self._turns += 1
            self._turned_at = time.monotonic()
            TURN_ID.set(f"{self._life}-{self._turns}")
            try:
                self._take(events or (Tick(),))
            except StateError as error:
                self.leave(EXIT_STATE, f"the state store refuses to go on: {error}")
            except Exception as error:
                # A bug must not become a zombie, and must not harm what runs: end, say so, and let
                # its supervisor start it again.
                kinds = Counter(type(event).__name__ for event in events)
                log.exception("step failed on %s", dict(kinds) or "a tick")
                self.leave(EXIT_SOFTWARE, f"internal error: {type(error).__name__}: {error}")
            finally:
                self._answer(events)
                self._turned_at = None
                TURN_ID.set("")

    def _patience(self) -> float:
        """Return how long to wait for an event: when all rest, little is due by time alone."""
        rest = len(self._state.at_rest) == len(self._state.gangs)
        return self._tick_seconds * (_RESTING_TICKS if rest else 1)

    def _answer(self, events: Sequence[Event]) -> None:
        """Wake those whose events a step has taken."""
        if self._asked:
            with self._changed:
                taken = [self._asked.pop(id(event), None) for event in events]
                if any(event is not None for event in taken):
                    self._changed.notify_all()

    def _take(self, events: Sequence[Event]) -> None:
        """Handle events together; one by one where together they cannot be stored.

        What alone leads to a value that no store takes is as if it had not happened, and is told:
        leaving would end nothing but this process, and the next one would come to the same.
        """
        try:
            self._handle(events)
        except StateTooLarge as error:
            if len(events) > 1:
                for event in events:
                    if not self._stopping.is_set():
                        self._take((event,))
                return
            why = _REFUSED.format(type(events[0]).__name__, error)
            if why != self._refused or time.monotonic() >= self._refused_until:
                log.error("%s", why)
            self._refused, self._refused_until = why, time.monotonic() + _REFUSED_SECONDS
            self._tell(self._refusals, events[0])

    def _handle(self, events: Sequence[Event]) -> None:
        began, now, before = time.monotonic(), self._clock(), self._state
        decision = step(before, events, now)
        writes, decided = decision.writes, time.monotonic()
        if writes and not self._erased and not self._stored(lambda: self._store.commit(writes)):
            return
        committed = time.monotonic()
        self.recorder.note(
            before, RecordedTurn(TURN_ID.get(), now, events, writes, decision.actions, decision.why)
        )
        if not _erases(decision):
            self._state = decision.state
        for action in decision.actions:
            if isinstance(action, Exit):
                self.leave(action.code, action.message)
            elif isinstance(action, EraseState):
                # From here on nothing is written: it would make a service of what was uninstalled.
                self._erased = self._erased or self._stored(self._store.erase)
                if not self._erased:
                    return
            else:
                self._perform(action)
        self._state = decision.state
        turn = Turn(
            TURN_ID.get(),
            events,
            before,
            decision,
            waited=self._inbox.waited,
            decided=decided - began,
            committed=committed - decided if writes else None,
            performed=time.monotonic() - committed,
            ended_at=now + time.monotonic() - began,
        )
        self._log(turn)
        with self._changed:
            # No thread is woken to find that it is to wait on.
            if any(condition(decision.state) for condition in self._awaited):
                self._changed.notify_all()
        if decision.why or decision.writes:
            self._tell(self._watchers, decision)
        self._tell(self._each_step, decision.state)
        if turn.says_something:
            self._tell(self._measurers, turn)

    @staticmethod
    def _log(turn: Turn) -> None:
        level = logging.INFO if turn.decision.why else logging.DEBUG
        if turn.says_something and log.isEnabledFor(level):
            log.log(level, "%s", turn.decision.why or "nothing to decide", extra={"turn": turn})

    def _stored(self, write: Callable[[], None]) -> bool:
        """Write until it succeeds. Nothing is acted upon before; False when told to stop.

        What could be written when the loop began can be again: a full disk is emptied, rights are
        given back. The tasks run on meanwhile, and every client is told.
        """
        wait = _FIRST_RETRY_SECONDS
        try:
            while True:
                try:
                    write()
                except (StateUnavailable, StateAccessDenied) as error:
                    log.warning("the state store is unavailable, trying again: %s", error)
                    self._held_up = _WAITING.format(error)
                    if self._stopping.wait(wait):
                        return False
                    wait = min(wait * 2, _MAX_RETRY_SECONDS)
                else:
                    return True
        finally:
            self._held_up = ""

    @staticmethod
    def _tell(callbacks: Sequence[Callable[[T], None]], what: T) -> None:
        for callback in callbacks:
            try:
                callback(what)
            except Exception:
                log.exception("a watcher of the event loop failed")
