"""The index of a gang's tasks says what their records, reports and the roster say."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact, TaskTable, facts_of
from samples.states import a_record, a_spec

NAMES = ("ps-0", "worker-0", "worker-1", "worker-7", "tensorboard-0")
ROSTER = Roster.of(a_spec())

records = st.builds(
    lambda name, state, held, start, failed, killed: a_record(
        name,
        state,
        held=held,
        start=start,
        failed_start=failed,
        kill_reason="no" if killed else "",
        agent_id=f"a{start}",
    ),
    st.sampled_from(NAMES),
    st.sampled_from(TaskState),
    st.booleans(),
    st.integers(1, 3),
    st.integers(0, 3),
    st.booleans(),
)
reports = st.fixed_dictionaries(
    {
        "start": st.integers(1, 3),
        "run": st.booleans(),
        "state": st.sampled_from(["held", "running", "failed", "exited"]),
    }
)


def facts_in(table: TaskTable) -> dict[str, set[Fact]]:
    return {name: {fact for fact in Fact if table.has(name, fact)} for name in table}


@given(st.lists(st.tuples(records, reports), max_size=25), st.lists(st.sampled_from(NAMES)))
def test_after_any_changes_it_is_as_one_made_anew(
    changes: list[tuple[TaskRecord, dict[str, object]]], dropped: list[str]
) -> None:
    opener, told = object(), {}
    table = TaskTable(ROSTER).opened(opener)
    known: dict[str, TaskRecord] = {}
    for record, report in changes:
        known[record.name] = record
        told[record.task_id] = report
        table.put(opener, record, report)
    for name in dropped:
        known.pop(name, None)
        table.drop(opener, name)
    for record in known.values():
        table.put(opener, record, told[record.task_id])
    anew = TaskTable(ROSTER, known.values(), told)
    assert dict(table) == dict(anew) == known
    assert facts_in(table) == facts_in(anew)
    assert dict(table.launched_with) == dict(anew.launched_with)
    agents = {record.agent_id for record, _ in changes}
    assert all(table.on_agent(a) == anew.on_agent(a) for a in agents)


@given(records, reports)
def test_every_fact_that_is_true_is_kept(record: TaskRecord, report: dict[str, object]) -> None:
    table = TaskTable(ROSTER, [record], {record.task_id: report})
    assert facts_in(table)[record.name] == facts_of(record, report, ROSTER)


def test_a_table_that_was_opened_leaves_the_former_one_as_it_was() -> None:
    before = TaskTable(ROSTER, [a_record("ps-0"), a_record("worker-0")])
    opener = object()
    after = before.opened(opener)
    after.put(opener, a_record("ps-0", TaskState.FAILED), {})
    after.drop(opener, "worker-0")
    assert set(before) == {"ps-0", "worker-0"}
    assert before.having(Fact.UNWELL) == set()
    assert after.having(Fact.UNWELL) == {"ps-0"}


def test_a_closed_table_never_changes() -> None:
    opener = object()
    table = TaskTable(ROSTER).opened(opener)
    table.close(opener)
    with pytest.raises(AssertionError):
        table.put(opener, a_record("ps-0"), {})


def test_what_has_changed_since_is_what_was_put_and_dropped() -> None:
    before = TaskTable(ROSTER, [a_record(name) for name in ("ps-0", "worker-0", "worker-1")])
    opener = object()
    after = before.opened(opener)
    after.put(opener, a_record("worker-1", TaskState.FAILED), {})
    after.drop(opener, "ps-0")
    assert set(after.changed_since(before)) == {"ps-0", "worker-1"}
    assert set(before.changed_since(before)) == set()


def test_another_roster_makes_a_member_a_stranger() -> None:
    table = TaskTable(ROSTER, [a_record("worker-1")])
    opener = object()
    after = table.opened(opener)
    after.follow(opener, Roster.of(a_spec(), ("worker-1",)), {})
    assert after.having(Fact.STRANGER) == {"worker-1"}


def test_records_are_in_the_order_of_the_roster_with_sidecars_last() -> None:
    names = ("tensorboard-0", "worker-1", "ps-0", "worker-0")
    table = TaskTable(ROSTER, [a_record(name) for name in names])
    found = [record.name for record in table.records_of(set(names))]
    assert found == ["worker-0", "worker-1", "ps-0", "tensorboard-0"]


def test_a_report_alone_can_change_what_is_true() -> None:
    record = replace(a_record("worker-0"), held=True, start=2)
    table = TaskTable(ROSTER, [record])
    opener = object()
    after = table.opened(opener)
    after.put(opener, record, {"start": 2, "run": False, "state": "held"})
    assert table.having(Fact.STOPPED) == set()
    assert after.having(Fact.STOPPED) == {"worker-0"}
