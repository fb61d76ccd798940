"""The producer of a service's units of work, beside the event loop.

Used by ``scheduler.scheduler``, which hands it the core's UnitsWanted and UnitEnded and the reports
of task runners; the answers are events. To suggest a trial or to list a bucket takes long, so all
of it happens on a thread of its own, which is there once a service has units. Nothing is kept here:
the producer is made anew of the units of the state, after a crash too.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dcos_tensorflow.core.model.actions import UnitEnded, UnitsWanted
from dcos_tensorflow.core.model.events import (
    Event,
    RunnerReported,
    UnitPruned,
    UnitsGiven,
    UnitsRefused,
)
from dcos_tensorflow.core.model.report import unit_of
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.workload_spec import WorkloadSpec
from dcos_tensorflow.scheduler.batch_inputs import NO_INPUTS, Inputs, InputsAway
from dcos_tensorflow.workloads import producer_of
from dcos_tensorflow.workloads.producer import Producer, WorkloadError, kept_units, outcome_of

log = logging.getLogger(__name__)


class UnitLoop:
    """Asks the producer, on a thread, and tells it what became of its units.

    ``state`` returns the newest state that is stored, ``emit`` takes events; both from any thread.
    ``look`` says what a batch finds at its inputs and output; it may block, and raises
    WorkloadError and InputsAway.
    """

    def __init__(
        self,
        state: Callable[[], ServiceState],
        emit: Callable[[Event], None],
        look: Callable[[ServiceState], Inputs],
    ) -> None:
        self._state = state
        self._emit = emit
        self._look = look
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        #: What the producer was made of, and the producer.
        self._workload: WorkloadSpec | None = None
        self._producer: Producer | None = None
        #: By unit: what it was last heard to have measured.
        self._measured: dict[int, Sequence[Any]] = {}

    def begin(self) -> None:
        """Say how many units there are, where the service has any."""
        table = self._state().units
        if self._state().spec.workload is not None and not table.last:
            self._later(partial(self._give, UnitsWanted(len(table), 0)))

    def perform(self, action: UnitsWanted | UnitEnded) -> None:
        """Answer what the core wants of the producer, or tell it. Never blocks."""
        if isinstance(action, UnitsWanted):
            self._later(partial(self._give, action))
        elif self._producer is None or self._producer.learns:
            self._later(partial(self._ended, action.number))

    def reported(self, event: RunnerReported) -> None:
        """Note what a runner tells of a unit's way. Any thread; never blocks."""
        told = unit_of(event.report)
        points = told[2].get("measured") if told is not None else None
        if told is not None and points and self._measured.get(told[0]) != points:
            self._measured[told[0]] = points
            self._later(partial(self._judge, told[0], points))

    def stop(self) -> None:
        """End the thread after what it does now."""
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()

    def _later(self, work: Callable[[], None]) -> None:
        self._work.put(work)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="units", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except WorkloadError as error:
                log.error("no units of work: %s", error)
                self._emit(UnitsRefused(str(error), is_final=True))
            except InputsAway as error:
                # The core asks again.
                log.warning("no units of work yet: %s", error)
                self._emit(UnitsRefused(str(error), is_final=False))
            except Exception as error:
                # What runs goes on, and a slot that waits for units is told.
                log.exception("the producer of units failed")
                why = f"internal error: {type(error).__name__}: {error}"
                self._emit(UnitsRefused(why, is_final=False))

    def _give(self, wanted: UnitsWanted) -> None:
        producer = self._current()
        if producer is None:
            return
        given = producer.next(wanted.first, wanted.count)
        payloads = tuple(unit.payload for unit in given.units)
        self._emit(UnitsGiven(wanted.first, payloads, given.last, producer.total))

    def _ended(self, number: int) -> None:
        self._measured.pop(number, None)
        unit = self._state().units[number]
        outcome, known = outcome_of(unit), self._producer
        # One that is made later finds it among those that are kept.
        if known is not None and outcome is not None:
            known.ended(number, outcome, unit.result)

    def _judge(self, number: int, points: Sequence[Any]) -> None:
        table = self._state().units
        if not 0 <= number < len(table) or table[number].is_decided:
            return
        producer = self._current()
        stop = producer.measured(number, points) if producer is not None else None
        if stop is not None:
            self._emit(UnitPruned(number, stop.why, stop.result))

    def _current(self) -> Producer | None:
        """Return the producer of the options in force. Raises WorkloadError, InputsAway."""
        state = self._state()
        workload, last = state.spec.workload, state.units.last
        if workload is not None and workload != self._workload:
            inputs = NO_INPUTS if last else self._look(state)
            self._producer = producer_of(
                workload,
                kept_units(state.units),
                inputs=inputs.listed,
                existing=inputs.existing,
                stamps=inputs.stamps,
                records=inputs.records,
                last=last,
            )
            self._workload = workload
        return self._producer
