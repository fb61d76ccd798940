"""Whatever is written into what is kept, no value is too large for a state store."""

import json
from dataclasses import MISSING, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.failures import charges
from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.kept.writes import writes_between
from dcos_tensorflow.core.model import bounds, events
from dcos_tensorflow.core.model.bounds import OF_EVENTS, cut, of_event
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.job import Incident, JobPhase
from dcos_tensorflow.core.model.own_error import own_error_of
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.model.units import PAGE, UnitFailure, UnitRun, UnitState
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from dcos_tensorflow.core.step import step
from dcos_tensorflow.core.work import assignment as units
from dcos_tensorflow.state.layout import MAX_VALUE_BYTES
from samples.states import NOW, a_record, a_spec, a_state
from simulated.scheduler import started


def repr_of(text: str) -> str:
    return f"{ord(text[0]):x}"


#: Texts whose letters take most in JSON: twelve bytes, six, two.
WORST = pytest.mark.parametrize(
    "text", [letter * 50_000 for letter in ("\U0001f525", "ü", "\x00", '"', "x")], ids=repr_of
)


@given(st.text(), st.integers(20, 200))
def test_a_text_is_cut_to_its_bytes_in_json(text: str, most: int) -> None:
    found = cut(text, most)
    assert len(json.dumps(found)) - 2 <= most
    assert found == text or (found[-1] == "…" and text.startswith(found[:-1]))


@WORST
def test_every_text_of_an_event_that_is_kept_has_its_bound(text: str) -> None:
    for kind, most in OF_EVENTS.items():
        cls: Any = getattr(events, kind)
        names = {f.name for f in fields(cls) if f.name in most or f.default is MISSING}
        made = cls(**{name: {"w": text} if name == "result" else text for name in names})
        for name, size in most.items():
            assert len(json.dumps(getattr(of_event(made), name))) - 2 <= size


def largest(before: ServiceState, after: ServiceState) -> int:
    """Return the size of the largest value that is written."""
    return max(len(write.value or b"") for write in writes_between(before, after))


@WORST
def test_a_task_that_says_whatever_it_can_fits_into_the_store(text: str) -> None:
    scheduler = started()
    before, record = scheduler.state, scheduler.state.tasks["worker-0"]
    error = {"exception": text, "file": text, "line": 3}
    end = {"start": 1, "class": text, "summary": text, "hint": text, "error": error, "code": 1}
    report = {"start": 1, "run": True, "state": "failed", "strategy": text, "exit": end}
    told = (
        events.RunnerReported(record.task_id, report),
        events.EvidenceFound(record.task_id, text, (text,), own_error_of(error), {"x": text}),
        events.TaskUpdate(scheduler.state.tasks["ps-0"].task_id, TaskState.FAILED, message=text),
        events.StopRequested(text),
    )
    for event in told:
        after = step(scheduler.state, (event,), scheduler.cluster.now).state
        scheduler.state = after
    assert largest(before, scheduler.state) < MAX_VALUE_BYTES // 10


@WORST
def test_a_page_of_units_that_failed_as_loudly_as_they_can_fits_into_the_store(text: str) -> None:
    spec = a_spec(units=UnitsSpec(UnitKind.SHARD, 1, 10_000))
    before = ServiceState.of_one_gang(spec, "an-instance")
    table = before.units.given(({"n": n} for n in range(PAGE)), last=True)
    slot = Gang("slot-0", TaskTable(Roster.of(spec, gang="slot-0")))
    before = replace(before, units=table, gangs={**before.gangs, slot.name: slot})
    draft = Draft(before, NOW, before)
    gang = draft.gang("slot-0")
    for number in range(PAGE):
        gang.unit = UnitRun(number, 1, NOW)
        for attempt in range(bounds.FAILURES_OF_A_UNIT + 5):
            error = own_error_of({"exception": text, "file": text, "line": attempt})
            failure = UnitFailure("a1", "user_error", text, NOW, 1, error)
            units.fail(gang, failure, permanent=False)
        unit = draft.state.units[number]
        assert (len(unit.failures), unit.more_failures) == (bounds.FAILURES_OF_A_UNIT, 5)
        event = of_event(events.UnitPruned(number, text, {"loss": 1.0}))
        units.pruned(draft, event)
    assert draft.state.units.count(UnitState.PRUNED) == PAGE
    assert largest(before, draft.state) < MAX_VALUE_BYTES


def test_ten_thousand_abandoned_attempts_fit_into_the_store() -> None:
    before = a_state(JobPhase.RUNNING)
    given_up = {
        f"{'a-service-with-a-long-name' * 3}__gpu-worker-{n}__{n:032x}": f"{n:036x}-S{n}"
        for n in range(10_000)
    }
    after = replace(before, abandoned=given_up)
    assert largest(before, after) < MAX_VALUE_BYTES // 10
    (one,) = writes_between(after, replace(after, abandoned={**given_up, "t": "a1"}))
    assert one.path == paths.abandoned("t")


@WORST
def test_the_incidents_of_a_long_window_fit_into_the_store(text: str) -> None:
    told = bounds.cut(text, bounds.TEXT_BYTES)
    error = own_error_of({"exception": text, "file": text, "line": 1})
    names = tuple(f"gpu-worker-{number}" for number in range(20))
    one = Incident(
        *("gpu-worker-1000", "x" * 150, NOW, "user_error", told, False, names, 9000, 10**12),
        *(told, error, NOW, 10**12),
    )
    many = tuple(replace(one, at=NOW + n, charged=n % 3 == 0) for n in range(3000))
    kept = charges._bounded(many)
    assert len(kept) == bounds.MOST_INCIDENTS
    assert kept[-1] == many[-1]
    assert [i.at for i in kept if i.charged][-400:] == [i.at for i in many if i.charged][-400:]
    before = a_state(JobPhase.RUNNING, [a_record("worker-0")])
    gang = before.only_gang
    after = replace(before, gangs={"main": replace(gang, job=replace(gang.job, incidents=kept))})
    assert largest(before, after) < MAX_VALUE_BYTES
