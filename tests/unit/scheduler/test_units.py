"""The producer beside the event loop: asked on its own thread, made anew after a crash."""

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.model.actions import UnitEnded, UnitsWanted
from dcos_tensorflow.core.model.events import (
    Event,
    RunnerReported,
    UnitPruned,
    UnitsGiven,
    UnitsRefused,
)
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec, EarlyStopping, WorkloadSpec
from dcos_tensorflow.scheduler.batch_inputs import NO_INPUTS, Inputs, InputsAway
from dcos_tensorflow.scheduler.unit_producer import UnitLoop
from dcos_tensorflow.workloads.producer import WorkloadError
from jobs.worked_sweep import a_sweep
from simulated.scheduler import small_job

_SHARDS = BatchSpec(output="/out/part-{index}", per_shard=10, begin=0, end=45)


class Service:
    """A state with units, and the events that came back."""

    def __init__(self, workload: WorkloadSpec | None, inputs: Inputs = NO_INPUTS) -> None:
        units = UnitsSpec(UnitKind.SHARD, 2, max_attempts=3, max_share=1.0)
        spec = replace(small_job(units=units if workload else None), workload=workload)
        self.state = ServiceState.of_one_gang(spec, "instance", LaunchSettings())
        self.answers: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.inputs = inputs
        self.away: list[Exception] = []

    def look(self, state: ServiceState) -> Inputs:
        if self.away:
            raise self.away.pop()
        return self.inputs

    def keep(self, payloads: Sequence[Any], *, last: bool = False) -> None:
        self.state = replace(self.state, units=self.state.units.given(payloads, last=last))

    def decide(self, number: int, state: UnitState, result: Any) -> None:
        unit = replace(self.state.units[number], state=state, result=result)
        self.state = replace(self.state, units=self.state.units.put(unit))

    @contextmanager
    def produced(self) -> Iterator[UnitLoop]:
        units = UnitLoop(lambda: self.state, self.answers.put, self.look)
        try:
            yield units
        finally:
            units.stop()

    def answer(self) -> Event:
        return self.answers.get(timeout=30)


def test_units_that_are_wanted_are_given_with_how_many_there_are() -> None:
    service = Service(_SHARDS)
    with service.produced() as units:
        units.perform(UnitsWanted(0, 3))
        first = service.answer()
        assert isinstance(first, UnitsGiven)
        assert (first.first, len(first.payloads), first.last, first.total) == (0, 3, False, 5)
        service.keep(first.payloads)
        units.perform(UnitsWanted(3, 200))
        rest = service.answer()
    assert isinstance(rest, UnitsGiven)
    assert (len(rest.payloads), rest.last) == (2, True)


def test_after_a_crash_a_batch_goes_on_behind_what_is_kept() -> None:
    service = Service(_SHARDS)
    with service.produced() as units:
        units.perform(UnitsWanted(0, 2))
        given = service.answer()
    assert isinstance(given, UnitsGiven)
    service.keep(given.payloads)
    with service.produced() as units:
        units.begin()
        told = service.answer()
        units.perform(UnitsWanted(2, 200))
        rest = service.answer()
    assert isinstance(told, UnitsGiven)
    assert (told.payloads, told.total) == ((), 5)
    assert isinstance(rest, UnitsGiven)
    assert [payload["shard"]["index"] for payload in rest.payloads] == [2, 3, 4]


def test_a_sweep_suggests_the_same_after_a_crash() -> None:
    service = Service(a_sweep(6, lag=2))
    with service.produced() as units:
        units.perform(UnitsWanted(0, 6))
        given = service.answer()
        assert isinstance(given, UnitsGiven)
        service.keep(given.payloads)
        for number in range(len(given.payloads)):
            service.decide(number, UnitState.SUCCEEDED, {"metrics": {"score": number / 2}})
            units.perform(UnitEnded(number))
        units.perform(UnitsWanted(len(given.payloads), 6))
        next_ones = service.answer()
    with service.produced() as units:
        units.perform(UnitsWanted(len(given.payloads), 6))
        assert service.answer() == next_ones


def test_output_that_is_there_ends_the_work() -> None:
    service = Service(_SHARDS, Inputs(existing={"/out/part-1"}))
    with service.produced() as units:
        units.perform(UnitsWanted(0, 3))
        refused = service.answer()
    assert isinstance(refused, UnitsRefused)
    assert refused.is_final
    assert "/out/part-1" in refused.why


def test_a_listing_that_is_out_of_reach_is_asked_for_again() -> None:
    service = Service(_SHARDS)
    service.away = [WorkloadError("it is gone"), InputsAway("S3 does not answer")]
    with service.produced() as units:
        units.perform(UnitsWanted(0, 1))
        assert service.answer() == UnitsRefused("S3 does not answer", is_final=False)
        units.perform(UnitsWanted(0, 1))
        assert service.answer() == UnitsRefused("it is gone", is_final=True)
        units.perform(UnitsWanted(0, 1))
        assert isinstance(service.answer(), UnitsGiven)


def test_a_trial_that_measures_badly_is_stopped_with_what_it_measured() -> None:
    spec = a_sweep(12, early_stopping=EarlyStopping.ASHA, lag=4)
    service = Service(spec)
    with service.produced() as units:
        for _ in range(2):
            units.perform(UnitsWanted(len(service.state.units), 4))
            given = service.answer()
            assert isinstance(given, UnitsGiven)
            service.keep(given.payloads)
            for number in range(4):
                good = {"measured": [[1, 0.9], [3, 0.95]], "metrics": {"score": 0.95}}
                if not service.state.units[number].is_decided:
                    service.decide(number, UnitState.SUCCEEDED, good)
                    units.perform(UnitEnded(number))
        report = _running(4, [[1, 0.1]])
        units.reported(report)
        pruned = service.answer()
        units.reported(report)
        units.perform(UnitsWanted(len(service.state.units), 1))
        after = service.answer()
    assert isinstance(pruned, UnitPruned)
    assert pruned.number == 4
    assert pruned.result["measured"] == [[1, 0.1]]
    assert isinstance(after, UnitsGiven), "the same report is heard of once"


def test_a_service_without_units_has_no_thread() -> None:
    service = Service(None)
    with service.produced() as units:
        units.begin()
        units.reported(RunnerReported("task", {"state": "running"}))
        assert not [thread for thread in threading.enumerate() if thread.name == "units"]


@pytest.mark.parametrize("report", [{}, {"unit": None}, {"unit": {"number": "x"}}])
def test_a_report_without_measured_values_is_no_news(report: dict[str, Any]) -> None:
    service = Service(_SHARDS)
    with service.produced() as units:
        units.reported(RunnerReported("task", report))
        units.perform(UnitsWanted(0, 1))
        assert isinstance(service.answer(), UnitsGiven)


def _running(number: int, points: list[list[float]]) -> RunnerReported:
    unit = {"number": number, "attempt": 1, "result": {"measured": points}}
    return RunnerReported("task", {"state": "running", "unit": unit})
