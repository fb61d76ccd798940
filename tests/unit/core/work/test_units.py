"""The table of units: what waits, what runs, what became of each, and how it is kept."""

from dataclasses import replace

from dcos_tensorflow.core.contract import UNIT_RESULT_BYTES
from dcos_tensorflow.core.kept.restore import restore
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.bounds import small
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.model.report import unit_of
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.model.units import (
    PAGE,
    Unit,
    UnitFailure,
    UnitRun,
    UnitState,
    UnitTable,
)
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from samples.states import NOW, a_spec


def a_table(count: int) -> UnitTable:
    return UnitTable().given(({"what": n} for n in range(count)), last=False)


def a_failure(**changes: object) -> UnitFailure:
    known = UnitFailure("a1", "failed", "it failed", NOW, 1, OwnError("ValueError", "job.py", 3))
    return replace(known, **changes)  # type: ignore[arg-type]


def test_units_have_numbers_in_the_order_in_which_they_were_given():
    table = a_table(PAGE + 5).given(({"what": "more"},), last=True)
    assert [unit.number for unit in table] == list(range(PAGE + 6))
    assert table.payload(PAGE + 4) == {"what": PAGE + 4}
    assert table.payload(PAGE + 5) == {"what": "more"}
    assert (len(table), len(table.pages), table.last) == (PAGE + 6, 2, True)


def test_what_was_given_first_is_taken_first_and_what_runs_is_not_taken():
    table = a_table(PAGE + 5).taken(0, "slot-0").taken(2, "slot-1")
    assert list(table.numbers_waiting())[:3] == [1, 3, 4]
    assert table.waiting == PAGE + 3
    assert next(table.released(0, "slot-0").numbers_waiting()) == 0


def test_a_change_of_one_unit_leaves_the_other_pages_as_they_are():
    table = a_table(3 * PAGE)
    after = table.put(replace(table[PAGE], state=UnitState.SUCCEEDED))
    assert after.pages[0] is table.pages[0]
    assert after.pages[2] is table.pages[2]
    assert after.count(UnitState.SUCCEEDED) == 1


def test_a_unit_that_is_decided_runs_nowhere():
    table = a_table(3).taken(1, "slot-0").taken(1, "slot-1")
    after = table.put(replace(table[1], state=UnitState.FAILED))
    assert dict(after.running) == {}
    assert list(after.numbers_waiting()) == [0, 2]


def test_all_are_decided_when_no_more_will_come():
    table = a_table(1)
    done = table.put(replace(table[0], state=UnitState.PRUNED))
    assert not done.is_complete
    assert done.given((), last=True).is_complete
    assert UnitTable().given((), last=True).is_complete


def test_failures_are_alike_by_what_happened_and_not_by_where():
    failure = a_failure()
    assert failure.is_like(a_failure(agent_id="a2", at=NOW + 9, summary="elsewhere"))
    assert not failure.is_like(a_failure(exit_code=137))
    assert not failure.is_like(a_failure(error=OwnError("ValueError", "job.py", 4)))
    assert not failure.is_like(a_failure(error=None))


def test_a_table_is_kept_and_read_back():
    spec = a_spec(units=UnitsSpec(UnitKind.SHARD))
    first = ServiceState.of_one_gang(spec, "instance", LaunchSettings(token_key="00" * 32))
    table = a_table(PAGE + 5).given((), last=True)
    done = Unit(3, UnitState.SUCCEEDED, 2, 1, (a_failure(),), {"rows": 7}, NOW - 5, NOW)
    table = table.put(done).taken(4, "slot-0")
    slot = Gang("slot-0", TaskTable(Roster.of(spec, gang="slot-0")), unit=UnitRun(4, 1, NOW))
    after = replace(first, units=table, gangs={**first.gangs, "slot-0": slot})
    written = [*first_writes(first), *writes_between(first, after)]
    store = {write.path: write.value for write in written if write.value is not None}
    found = restore(store, LaunchSettings(), NOW + 60)
    assert found is not None
    assert tuple(found.units) == tuple(table)
    assert [page.payloads for page in found.units.pages] == [p.payloads for p in table.pages]
    assert (found.units.last, found.units.counts) == (True, table.counts)
    assert dict(found.units.running) == {4: ("slot-0",)}
    assert found.units.usual_seconds == 5
    assert found.gangs["slot-0"].unit == slot.unit


def test_a_result_that_is_no_small_object_is_none():
    assert small({"rows": 5}, UNIT_RESULT_BYTES) == {"rows": 5}
    assert small({"rows": "x" * 5000}, UNIT_RESULT_BYTES) == {}
    assert small([1], UNIT_RESULT_BYTES) == {}
    assert small({"what": object()}, UNIT_RESULT_BYTES) == {}


def test_a_report_of_anything_else_tells_of_no_unit():
    assert unit_of({"unit": {"number": 3, "attempt": 1, "result": {"a": 1}}}) == (3, 1, {"a": 1})
    for wrong in (None, 5, {}, {"number": "3", "attempt": 1}, {"number": 3}):
        assert unit_of({"unit": wrong}) is None
