"""What every state store promises, asked of both backends, with real processes where it matters."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

import pytest

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state.errors import (
    BadStatePath,
    FencedOut,
    LeadershipTaken,
    StateError,
    StateTooLarge,
    StateTooNew,
)
from dcos_tensorflow.state.layout import CURRENT_SCHEMA, MAX_VALUE_BYTES
from dcos_tensorflow.state.leadership import Holder, Leadership

if TYPE_CHECKING:
    from conftest import Backend
    from dcos_tensorflow.state.store import StateStore


def ignore(_why: str) -> None:
    pass


# Values


def test_a_service_that_never_ran_has_no_values(backend: Backend) -> None:
    assert backend.store().load() == {}


def test_committed_values_are_loaded_by_another_store(backend: Backend) -> None:
    backend.leader().commit([Write("FrameworkID", b"id"), Write("Tasks/ps-0/TaskInfo", b"info")])
    assert backend.store().load() == {"FrameworkID": b"id", "Tasks/ps-0/TaskInfo": b"info"}


def test_a_second_write_replaces_the_value(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("Epoch", b"1")])
    store.commit([Write("Epoch", b"2")])
    assert store.load() == {"Epoch": b"2"}


def test_the_last_write_of_one_commit_wins(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("Epoch", b"1"), Write("Epoch", None), Write("Epoch", b"3")])
    assert store.load() == {"Epoch": b"3"}


def test_an_empty_value_is_a_value(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("Properties/empty", b"")])
    assert store.load() == {"Properties/empty": b""}


def test_any_bytes_and_unicode_paths_come_back_unchanged(backend: Backend) -> None:
    store = backend.leader()
    values = {"Tâches/日本語 ü/ß~": bytes(range(256)), "Plans/a b%2F": b"\x00"}
    store.commit([Write(path, value) for path, value in values.items()])
    assert store.load() == values


def test_the_largest_allowed_value_comes_back(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("Configurations/big", b"x" * MAX_VALUE_BYTES)])
    assert store.load()["Configurations/big"] == b"x" * MAX_VALUE_BYTES


def test_a_value_beyond_the_limit_is_refused_by_path_and_nothing_is_written(
    backend: Backend,
) -> None:
    store = backend.leader()
    with pytest.raises(StateTooLarge, match="Configurations/big"):
        store.commit(
            [Write("Epoch", b"1"), Write("Configurations/big", b"x" * (MAX_VALUE_BYTES + 1))]
        )
    assert store.load() == {}


def test_an_empty_commit_does_nothing(backend: Backend) -> None:
    store = backend.leader()
    store.commit([])
    assert store.load() == {}


def test_deleting_removes_the_value_and_the_emptied_folders(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("Tasks/ps-0/TaskInfo", b"x"), Write("Epoch", b"1")])
    store.commit([Write("Tasks/ps-0/TaskInfo", None)])
    store.commit([Write("Tasks", b"was a folder, can be a value now")])
    assert store.load() == {"Tasks": b"was a folder, can be a value now", "Epoch": b"1"}


def test_deleting_what_is_missing_is_fine(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("Tasks/none/TaskInfo", None), Write("Epoch", b"1")])
    assert store.load() == {"Epoch": b"1"}


def test_siblings_of_a_deleted_value_stay(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("Tasks/a/TaskInfo", b"1"), Write("Tasks/a/TaskStatus", b"2")])
    store.commit([Write("Tasks/a/TaskInfo", None)])
    assert store.load() == {"Tasks/a/TaskStatus": b"2"}


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/Epoch",
        "Epoch/",
        "a//b",
        "a/../b",
        ".",
        "lock",
        "lock/x",
        "SchemaVersion",
        "a\x00b",
        "😀",
    ],
)
def test_paths_that_no_store_can_keep_are_refused(backend: Backend, path: str) -> None:
    store = backend.leader()
    with pytest.raises(BadStatePath):
        store.commit([Write("Epoch", b"1"), Write(path, b"x")])
    assert store.load() == {}


@pytest.mark.parametrize(
    ("first", "second"),
    [("Plans", "Plans/deploy"), ("Plans/deploy", "Plans")],
)
def test_a_path_is_never_a_value_and_a_folder_at_once(
    backend: Backend, first: str, second: str
) -> None:
    store = backend.leader()
    store.commit([Write(first, b"1")])
    with pytest.raises(BadStatePath, match="Plans"):
        store.commit([Write("Epoch", b"1"), Write(second, b"2")])
    assert store.load() == {first: b"1"}


def test_a_commit_larger_than_a_transaction_is_applied_whole(backend: Backend) -> None:
    store = backend.leader()
    values = {f"Tasks/worker-{i}/TaskInfo": b"x" * 700 for i in range(2500)}
    store.commit([Write(path, value) for path, value in values.items()])
    assert backend.store().load() == values
    store.commit([Write(path, None) for path in values])
    assert store.load() == {}


def test_services_at_one_place_do_not_see_each_other(backend: Backend) -> None:
    one, other = backend.leader("group/one"), backend.leader("group/other")
    one.commit([Write("Epoch", b"1")])
    other.commit([Write("Epoch", b"2")])
    other.erase()
    assert (one.load(), other.load()) == ({"Epoch": b"1"}, {})


def test_a_store_is_usable_from_other_threads(backend: Backend) -> None:
    store = backend.leader()
    threads = [
        threading.Thread(target=store.commit, args=([Write(f"Properties/{i}", b"x")],))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.load()) == 8


# Leadership


def test_who_does_not_lead_cannot_write(backend: Backend) -> None:
    store = backend.store()
    with pytest.raises(FencedOut):
        store.commit([Write("Epoch", b"1")])
    with pytest.raises(FencedOut):
        store.erase()
    assert store.load() == {}


def test_a_contender_is_told_who_leads(backend: Backend) -> None:
    process = backend.process(session_seconds=30.0)
    assert process.ask("lead", 5) == "leads"
    with pytest.raises(LeadershipTaken, match=rf"child \(pid {process.pid} on host .* since 20"):
        backend.store().lead("me", 0.2, ignore)


def test_a_released_leadership_passes_on_and_is_not_reported_as_lost(backend: Backend) -> None:
    losses: list[str] = []
    first, second = backend.store(), backend.store()
    with first.lead("first", 5, losses.append) as leadership:
        assert leadership.held
    assert not leadership.held
    second.lead("second", 5, losses.append)
    second.commit([Write("Epoch", b"2")])
    with pytest.raises(FencedOut):
        first.commit([Write("Epoch", b"1")])
    assert losses == []


def test_a_store_that_leads_refuses_to_lead_twice(backend: Backend) -> None:
    with pytest.raises(StateError, match="already leads"):
        backend.leader().lead("again", 0, ignore)


def test_closing_a_leading_store_frees_the_service(backend: Backend) -> None:
    backend.leader().close()
    backend.store().lead("next", 5, ignore)


def test_a_waiting_contender_is_woken_by_the_end_of_the_leader(backend: Backend) -> None:
    leader = backend.process(session_seconds=30.0)
    waiting = backend.process(session_seconds=30.0)
    assert leader.ask("lead", 5) == "leads"
    waiting.send("lead", 60)
    leader.kill()
    assert waiting.read() == "leads"


def test_of_two_processes_that_want_to_lead_one_does(backend: Backend) -> None:
    processes = [backend.process(session_seconds=30.0) for _ in range(2)]
    for process in processes:
        process.send("lead", 0.5)
    answers = [process.read() for process in processes]
    assert sorted("leads" if answer == "leads" else answer[0] for answer in answers) == [
        "LeadershipTaken",
        "leads",
    ]


def test_closing_a_store_ends_its_wait_for_the_leadership(backend: Backend) -> None:
    backend.leader()
    store = backend.store()
    errors: list[Exception] = []

    def wait_to_lead() -> None:
        try:
            store.lead("waits", None, ignore)
        except StateError as error:
            errors.append(error)

    thread = threading.Thread(target=wait_to_lead)
    thread.start()
    store.close()
    thread.join(10)
    assert "closed" in str(errors[0])


# Crashes


def test_a_leader_killed_between_commits_leaves_what_it_said_and_no_halves(
    backend: Backend,
) -> None:
    process = backend.process(session_seconds=30.0)
    assert process.ask("lead", 5) == "leads"
    process.send("commit for ever")
    while (said := process.read()) < 20:
        pass
    process.kill()
    successor = backend.store()
    successor.lead("successor", 20, ignore)
    values = successor.load()
    assert int(values["First"]) >= said
    assert values["First"] == values["Folder/Second"]


def test_a_leader_killed_inside_a_split_commit_leaves_a_prefix(backend: Backend) -> None:
    process = backend.process(session_seconds=30.0)
    assert process.ask("lead", 5) == "leads"
    process.send("commit a huge one", 200)
    assert process.read() == "has begun"
    process.kill()
    parts = sorted(backend.store().load())
    assert parts == [f"Part/{number:04}" for number in range(len(parts))]
    assert len(parts) < 200
    # SQLite needs no split: all or nothing there.
    assert bool(parts) == (backend.name == "zookeeper")


# The whole subtree


def test_the_leader_alone_is_confirmed(backend: Backend) -> None:
    leader, other = backend.leader(), backend.store()
    leader.confirm()
    with pytest.raises(FencedOut):
        other.confirm()


def test_a_leader_that_has_erased_everything_is_confirmed_no_more(backend: Backend) -> None:
    leader = backend.leader()
    leader.erase()
    with pytest.raises(FencedOut):
        leader.confirm()


def test_a_process_that_waits_is_told_the_leader(backend: Backend) -> None:
    backend.leader()
    told: list[Holder] = []
    with pytest.raises(LeadershipTaken):
        backend.store().lead("waiting", 0.5, ignore, told.append)
    assert [holder.identity for holder in told] == ["test"]


def test_erasing_removes_every_value_and_ends_the_leadership_quietly(backend: Backend) -> None:
    losses: list[str] = []
    store = backend.store()
    leadership = store.lead("eraser", 5, losses.append)
    store.commit([Write("FrameworkID", b"1")] + [Write(f"Tasks/{i}/x", b"1") for i in range(1200)])
    store.erase()
    assert store.load() == {}
    assert (leadership.held, losses) == (False, [])
    with pytest.raises(FencedOut):
        store.commit([Write("Epoch", b"1")])


def test_an_erased_service_can_begin_anew(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("Epoch", b"1")])
    store.erase()
    store.lead("again", 5, ignore)
    store.commit([Write("Epoch", b"2")])
    assert store.load() == {"Epoch": b"2"}


def test_a_contender_takes_over_a_service_that_is_erased(backend: Backend) -> None:
    leader, waiting = backend.leader(), backend.process(session_seconds=30.0)
    leader.commit([Write("Epoch", b"1")])
    waiting.send("lead", 60)
    leader.erase()
    assert waiting.read() == "leads"
    assert waiting.ask("commit", {"Epoch": "2"}) == "committed"
    assert leader.load() == {"Epoch": b"2"}


def waits_to_lead(backend: Backend) -> tuple[StateStore, Future[Leadership]]:
    """Return a store whose process waits for the leadership of another."""
    store, waits = backend.store(), threading.Event()
    found: Future[Leadership] = Future()
    lead = partial(store.lead, "waits", 60, ignore, lambda _: waits.set())
    threading.Thread(target=lambda: found.set_result(lead())).start()
    assert waits.wait(30)
    return store, found


def test_who_waited_is_told_that_the_service_was_erased_meanwhile(backend: Backend) -> None:
    leader = backend.leader()
    leader.commit([Write("Epoch", b"1")])
    waiting, found = waits_to_lead(backend)
    leader.erase()
    assert found.result(30).after_erase
    waiting.erase()
    assert not waiting.lead("again", 5, ignore).after_erase


def test_who_waited_for_a_leader_that_has_only_ended_is_not_told_so(backend: Backend) -> None:
    leader = backend.leader()
    leader.commit([Write("Epoch", b"1")])
    _, found = waits_to_lead(backend)
    leader.close()
    assert not found.result(30).after_erase


# Layouts of other releases


def knows_layout(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    monkeypatch.setattr("dcos_tensorflow.state.layout.CURRENT_SCHEMA", version)


def a_store_of_the_first_release(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    knows_layout(monkeypatch, 1)
    store = backend.leader()
    store.commit([Write("Epoch", b"1")])
    store.close()
    monkeypatch.undo()


def test_state_of_a_newer_release_is_refused_at_open(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    knows_layout(monkeypatch, CURRENT_SCHEMA + 1)
    backend.leader().commit([Write("Epoch", b"1")])
    monkeypatch.undo()
    with pytest.raises(StateTooNew, match=f"layout {CURRENT_SCHEMA + 1}"):
        backend.store()


def test_state_of_the_first_release_stays_its_own_until_a_leader_commits(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_store_of_the_first_release(backend, monkeypatch)
    newer = backend.leader()
    assert newer.load() == {"Epoch": b"1"}
    newer.close()
    knows_layout(monkeypatch, 1)
    assert backend.store().load() == {"Epoch": b"1"}


def test_the_first_commit_closes_the_state_to_the_first_release(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_store_of_the_first_release(backend, monkeypatch)
    knows_layout(monkeypatch, 1)
    standby = backend.store()
    monkeypatch.undo()
    leader = backend.leader()
    leader.commit([Write("Epoch", b"2")])
    leader.commit([Write("Epoch", b"3")])
    leader.close()
    assert backend.store().load() == {"Epoch": b"3"}
    knows_layout(monkeypatch, 1)
    for ask in (backend.store, standby.load, lambda: standby.lead("standby", 5, ignore)):
        with pytest.raises(StateTooNew, match=f"layout {CURRENT_SCHEMA}"):
            ask()


def test_a_leader_killed_inside_its_first_commit_leaves_no_half_to_the_first_release(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_store_of_the_first_release(backend, monkeypatch)
    process = backend.process(session_seconds=30.0)
    assert process.ask("lead", 5) == "leads"
    process.send("commit a huge one", 200)
    assert process.read() == "has begun"
    process.kill()
    written = backend.store().load().keys() - {"Epoch"}
    knows_layout(monkeypatch, 1)
    if written:
        with pytest.raises(StateTooNew, match=f"layout {CURRENT_SCHEMA}"):
            backend.store()
    else:
        assert backend.store().load() == {"Epoch": b"1"}
    # SQLite needs no split: all or nothing there.
    assert bool(written) == (backend.name == "zookeeper")
