"""The event loop: commit, then act, then acknowledge; trouble never harms what runs."""

from __future__ import annotations

import threading

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept, Acknowledge, Teardown
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.scheduler import event_loop
from dcos_tensorflow.scheduler.event_loop import EXIT_SOFTWARE, EXIT_STATE, EventLoop
from dcos_tensorflow.state.errors import FencedOut, StateUnavailable
from simulated_mesos import Cluster
from simulated_scheduler import small_job
from waiting import eventually

DEADLINE = 10.0


class Recorder:
    """A state store and a Mesos that write down in which order they are called."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.failures: list[Exception] = []
        self.erase_failures: list[Exception] = []
        self.cluster = Cluster()
        self.changed = threading.Condition()

    def commit(self, writes):
        if self.failures:
            raise self.failures.pop(0)
        self._note(("commit", tuple(w.path for w in writes)))

    def erase(self):
        if self.erase_failures:
            raise self.erase_failures.pop(0)
        self._note("erase")

    def perform(self, action):
        self._note(action)

    def _note(self, call):
        with self.changed:
            self.calls.append(call)
            self.changed.notify_all()

    def wait_for(self, kind):
        with self.changed:
            assert self.changed.wait_for(
                lambda: any(isinstance(c, kind) for c in self.calls), DEADLINE
            )


@pytest.fixture
def recorder():
    return Recorder()


def a_new_state() -> ServiceState:
    settings = LaunchSettings(token_key="00" * 32)
    return ServiceState.of_one_gang(small_job(), "instance", settings)


@pytest.fixture
def loop(recorder):
    state = a_new_state()
    loop = EventLoop(state, recorder, recorder.perform, tick_seconds=0.01)
    yield loop
    loop.stop()


def offers():
    cluster = Cluster()
    cluster.make_offers()
    return cluster.outbox[0]


def test_the_commit_comes_before_the_accept(loop, recorder):
    loop.start()
    loop.submit(events.Registered("f", "m"))
    loop.submit(offers())
    recorder.wait_for(Accept)
    accept = next(i for i, c in enumerate(recorder.calls) if isinstance(c, Accept))
    written = [c[1] for c in recorder.calls[:accept] if isinstance(c, tuple)]
    assert "Tasks/worker-1/TaskInfo" in {path for paths in written for path in paths}


def test_an_unavailable_store_delays_everything_and_loses_nothing(loop, recorder, monkeypatch):
    monkeypatch.setattr(event_loop, "_FIRST_RETRY_SECONDS", 0.01)
    recorder.failures = [StateUnavailable("gone"), StateUnavailable("gone")]
    loop.start()
    loop.submit(events.Registered("f", "m"))
    loop.submit(offers())
    recorder.wait_for(Accept)
    assert loop.exit is None


def test_a_fenced_out_leader_leaves_and_acts_no_more(loop, recorder):
    recorder.failures = [FencedOut("another scheduler leads")]
    loop.start()
    loop.submit(events.Registered("f", "m"))
    assert loop.wait_for(lambda s: False, DEADLINE)
    assert loop.exit.code == EXIT_STATE
    assert recorder.calls == []


def test_a_bug_in_the_step_ends_the_process_without_a_teardown(loop, recorder, monkeypatch):
    def broken(*_):
        raise KeyError("bug")

    monkeypatch.setattr(event_loop, "step", broken)
    loop.start()
    assert loop.wait_for(lambda s: False, DEADLINE)
    assert loop.exit.code == EXIT_SOFTWARE
    assert not any(isinstance(c, Teardown) for c in recorder.calls)


def test_an_acknowledgement_follows_the_commit_of_what_it_caused(loop, recorder):
    loop.start()
    loop.submit(events.Registered("f", "m"))
    loop.submit(offers())
    recorder.wait_for(Accept)
    task_id = loop.state.tasks["ps-0"].task_id
    state = loop.state.tasks["ps-0"].state
    loop.submit(events.TaskUpdate(task_id, type(state).RUNNING, "S0", uuid="u"))
    recorder.wait_for(Acknowledge)
    acknowledged = next(i for i, c in enumerate(recorder.calls) if isinstance(c, Acknowledge))
    assert ("commit", ("Tasks/ps-0/TaskStatus",)) in recorder.calls[:acknowledged]


def test_a_failing_watcher_does_not_stop_the_loop(loop, recorder, caplog):
    seen = []

    def bad(decision):
        raise RuntimeError("watcher")

    loop.watch(bad)
    loop.watch(seen.append)
    loop.start()
    loop.submit(events.Registered("f", "m"))
    loop.submit(events.StopRequested("enough"))
    assert loop.wait_for(lambda s: s.job.phase is JobPhase.DONE, DEADLINE)
    assert loop.exit is None
    assert seen


def test_a_stop_while_the_store_is_away_ends_the_loop(recorder):
    recorder.failures = [StateUnavailable("gone")] * 1000
    state = a_new_state()
    loop = EventLoop(state, recorder, recorder.perform, tick_seconds=0.01)
    # Before the start: a tick that came first would change the state without the store.
    loop.submit(events.Registered("f", "m"))
    loop.start()
    eventually(lambda: len(recorder.failures) < 1000)
    loop.stop()
    assert loop.state is state


def test_nothing_is_written_after_an_erase(loop, recorder):
    loop.start()
    loop.submit(events.UninstallRequested("enough"))
    assert loop.wait_for(lambda s: s.removal.erased, DEADLINE)
    erased = recorder.calls.index("erase")
    loop.submit(events.Registered("f", "m"))
    assert loop.wait_for(lambda s: s.registered or s.subscription.master == "m", DEADLINE)
    after = recorder.calls[erased:]
    assert [call for call in after if isinstance(call, tuple) and call[0] == "commit"] == []
    assert loop.exit is None


def test_the_end_of_an_uninstall_is_seen_only_when_the_state_is_erased(loop, recorder):
    asked, answered = threading.Event(), threading.Event()

    def erase():
        asked.set()
        assert answered.wait(DEADLINE)

    recorder.erase = erase
    loop.start()
    loop.submit(events.UninstallRequested("enough"))
    assert asked.wait(DEADLINE)
    seen = loop.state
    answered.set()
    assert (seen.job.phase is JobPhase.DONE, seen.removal.erased) == (False, False)


def test_a_stop_while_nothing_can_be_erased_ends_the_loop_without_the_end_of_the_uninstall(
    loop, recorder, monkeypatch
):
    monkeypatch.setattr(event_loop, "_FIRST_RETRY_SECONDS", 0.01)
    recorder.erase_failures = [StateUnavailable("gone")] * 1000
    loop.start()
    loop.submit(events.UninstallRequested("enough"))
    eventually(lambda: len(recorder.erase_failures) < 1000)
    loop.stop()
    assert not loop.state.removal.erased


def test_an_erase_is_tried_again_while_the_store_is_away(loop, recorder, monkeypatch):
    monkeypatch.setattr(event_loop, "_FIRST_RETRY_SECONDS", 0.01)
    recorder.erase_failures = [StateUnavailable("gone"), StateUnavailable("gone")]
    loop.start()
    loop.submit(events.UninstallRequested("enough"))
    assert loop.wait_for(lambda s: s.removal.erased, DEADLINE)
    assert recorder.erase_failures == []
    assert "erase" in recorder.calls
