"""The event loop: commit, then act, then acknowledge; trouble never harms what runs."""

import threading
from dataclasses import replace

import pytest

from dcos_tensorflow.api.views import job as job_view
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept, Acknowledge, CapacityKept, Kill, Teardown
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.offers.waiting import waiting
from dcos_tensorflow.core.step import step
from dcos_tensorflow.scheduler.loop import event_loop
from dcos_tensorflow.scheduler.loop.clock import steady
from dcos_tensorflow.scheduler.loop.event_loop import EXIT_SOFTWARE, EXIT_STATE, EventLoop
from dcos_tensorflow.scheduler.loop.turn import TURN_ID
from dcos_tensorflow.state.errors import (
    FencedOut,
    StateAccessDenied,
    StateStorageFull,
    StateUnavailable,
)
from dcos_tensorflow.state.layout import check_value
from simulated.mesos import Cluster
from simulated.scheduler import small_job
from waiting import eventually

DEADLINE = 10.0
NOW = 1_000_000_000.0
DAY = 86_400.0


class Recorder:
    """A state store and a Mesos that write down in which order they are called."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.failures: list[Exception] = []
        self.erase_failures: list[Exception] = []
        self.cluster = Cluster()
        self.changed = threading.Condition()
        self.perform_also = lambda action: None

    def commit(self, writes):
        if self.failures:
            raise self.failures.pop(0)
        for write in writes:
            check_value(write.path, write.value or b"")
        self._note(("commit", tuple(w.path for w in writes)))

    def erase(self):
        if self.erase_failures:
            raise self.erase_failures.pop(0)
        self._note("erase")

    def perform(self, action):
        self.perform_also(action)
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


def gang_starts(loop):
    """Let the gang be launched by steps of the core, and return the updates that it runs."""
    state = loop.state
    for now, event in enumerate((events.Registered("f", "m"), offers())):
        state = step(state, (event,), NOW + now).state
    loop._state = state
    return [
        events.TaskUpdate(r.task_id, TaskState.RUNNING, r.agent_id, uuid=r.name)
        for r in state.tasks.values()
    ]


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


@pytest.mark.parametrize("failure", [StateUnavailable, StateStorageFull, StateAccessDenied])
def test_a_store_that_takes_nothing_ends_nothing_and_says_what_it_waits_for(
    loop, recorder, monkeypatch, failure
):
    monkeypatch.setattr(event_loop, "_FIRST_RETRY_SECONDS", 0.01)
    recorder.failures = [failure("the disk is full")] * 1_000_000
    loop.submit(events.Registered("f", "m"))
    loop.start()
    eventually(lambda: "the disk is full" in loop.state.only_gang.why)
    assert "the disk is full" in job_view.why(loop.state)["why"]
    assert recorder.calls == []
    recorder.failures = []
    loop.submit(offers())
    recorder.wait_for(Accept)
    assert "the disk is full" not in loop.state.only_gang.why
    assert loop.exit is None


def too_much():
    """Return an event that leads to more than any store takes in one value."""
    return events.CapacityNoted(7, {"p-1": CapacityRecord(1, body={"why": "x" * 1_000_001})})


def test_what_is_too_large_to_be_stored_ends_nothing_and_is_told(loop, recorder):
    refused = []
    loop.when_refused(refused.append)
    loop.submit(events.Registered("f", "m"))
    loop.submit(too_much())
    loop.start()
    eventually(lambda: "more than can be stored" in loop.state.only_gang.why)
    assert "Capacity/p-1" in job_view.why(loop.state)["why"]
    assert (refused, loop.state.capacity) == ([too_much()], {})
    assert loop.state.registered, "what came with it is done"
    loop.submit(offers())
    recorder.wait_for(Accept)
    assert not any(isinstance(call, CapacityKept) for call in recorder.calls)
    assert loop.exit is None


def test_nothing_is_bought_for_a_waiting_gang_while_something_cannot_be_stored(loop):
    loop.submit(events.Registered("f", "m"))
    loop.start()
    eventually(lambda: waiting(loop.state, NOW, 1))
    loop.submit(too_much())
    eventually(lambda: not waiting(loop.state, NOW, 1))


def test_what_was_too_large_is_told_no_more_when_it_has_not_come_again(loop, recorder, monkeypatch):
    monkeypatch.setattr(event_loop, "_REFUSED_SECONDS", 0.1)
    loop.submit(too_much())
    loop.start()
    eventually(lambda: "more than can be stored" in loop.state.only_gang.why)
    eventually(lambda: "more than can be stored" not in loop.state.only_gang.why)


def test_a_fenced_out_leader_leaves_and_acts_no_more(loop, recorder):
    recorder.failures = [FencedOut("another scheduler leads")]
    loop.start()
    loop.submit(events.Registered("f", "m"))
    assert loop.wait_for(lambda s: False, DEADLINE)
    assert loop.exit.code == EXIT_STATE
    assert recorder.calls == []


def test_what_waits_is_one_step_and_one_commit(loop, recorder):
    updates = gang_starts(loop)
    before = len(recorder.calls)
    for update in updates:
        loop.submit(update)
    loop.start()
    recorder.wait_for(Acknowledge)
    eventually(lambda: sum(isinstance(c, Acknowledge) for c in recorder.calls) == len(updates))
    first, *_ = (c for c in recorder.calls[before:] if isinstance(c, tuple))
    assert {f"Tasks/{name}/TaskStatus" for name in ("ps-0", "worker-0", "worker-1")} <= set(
        first[1]
    )


def test_every_update_of_a_step_is_acknowledged_after_its_commit(loop, recorder):
    for update in gang_starts(loop):
        loop.submit(update)
    loop.start()
    eventually(lambda: sum(isinstance(c, Acknowledge) for c in recorder.calls) == 3)
    committed = next(i for i, c in enumerate(recorder.calls) if isinstance(c, tuple))
    assert committed < min(i for i, c in enumerate(recorder.calls) if isinstance(c, Acknowledge))


@pytest.mark.parametrize("waiting", [[], [events.AgentFailed("S0")] * 3])
def test_a_bug_in_the_step_ends_the_process_without_a_teardown(
    loop, recorder, monkeypatch, waiting
):
    def broken(*_):
        raise KeyError("bug")

    monkeypatch.setattr(event_loop, "step", broken)
    for event in waiting:
        loop.submit(event)
    loop.start()
    assert loop.wait_for(lambda s: False, DEADLINE)
    assert loop.exit.code == EXIT_SOFTWARE
    assert not any(isinstance(c, Teardown) for c in recorder.calls)


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
    eventually(lambda: seen)
    assert loop.exit is None


def test_a_loop_that_leaves_by_itself_says_so_at_once(loop):
    left = []
    loop.when_left(lambda: left.append(loop.exit))
    loop.start()
    loop.leave(EXIT_SOFTWARE, "enough")
    assert left == [loop.exit]
    assert loop.exit is not None


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


def test_a_clock_set_ahead_a_day_and_back_stops_no_repeated_kill(recorder):
    """What is due after some seconds is due then, whatever the machine's clock says."""
    wall, up = [NOW + 10.0], [500.0]
    clock = steady(lambda: wall[0], lambda: up[0])
    loop = EventLoop(
        a_new_state(),
        recorder,
        recorder.perform,
        tick_seconds=0.01,
        clock=clock,
    )
    gang_starts(loop)
    stray = events.TaskUpdate("mnist__worker-7__x", TaskState.RUNNING, "S0", uuid="u")
    for event in (stray, events.Tick()):
        loop.submit(event)
    loop.start()

    def kills() -> int:
        return sum(isinstance(call, Kill) for call in recorder.calls)

    try:
        eventually(lambda: kills() == 1)
        for number, set_by in enumerate((DAY, -2 * DAY, DAY), start=2):
            wall[0] += set_by
            up[0] += 60.0
            eventually(lambda number=number: kills() >= number)
    finally:
        loop.stop()


def test_a_failing_look_does_not_stop_the_loop(loop, caplog):
    seen = []

    def bad(state):
        raise RuntimeError("look")

    loop.after_step(bad)
    loop.after_step(seen.append)
    loop.start()
    eventually(lambda: len(seen) > 1)
    assert loop.exit is None


def test_an_hour_without_the_store_and_a_thousand_runners_keeps_few_events(recorder, monkeypatch):
    """What every runner and Mesos tell through an hour of an absent store: each kept once."""
    monkeypatch.setattr(event_loop, "_FIRST_RETRY_SECONDS", 0.01)
    recorder.failures = [StateUnavailable("gone")] * 1_000_000
    state = ServiceState(small_job(), "instance", LaunchSettings(token_key="00" * 32))
    loop = EventLoop(state, recorder, recorder.perform, tick_seconds=0.01)
    loop.submit(events.Registered("f", "m"))
    loop.submit(offers())
    loop.start()
    eventually(lambda: len(recorder.failures) < 1_000_000)
    runners = [f"mnist__worker-{number}__x" for number in range(1000)]
    for second in range(0, 3600, 10):
        for task_id in runners:
            loop.submit(events.RunnerReported(task_id, {"progress": {"step": second}}))
        # An agent repeats an update until it is acknowledged.
        for task_id in runners[:100]:
            loop.submit(events.TaskUpdate(task_id, TaskState.FAILED, "S0", uuid=f"of {task_id}"))
        # A master that takes offers back which were never answered.
        offered = offers()
        for offer in offered.offers:
            loop.submit(replace(offered, offers=(replace(offer, offer_id=f"late {second}"),)))
            loop.submit(events.OfferRescinded(f"late {second}"))
        loop.submit(events.Disconnected("no master"))
    assert loop.waiting == 1000 + 100 + 1
    loop.stop()


def test_what_is_decided_written_and_called_carries_one_id(loop, recorder, caplog):
    said = []
    recorder.perform_also = lambda action: said.append((type(action), TURN_ID.get()))
    with caplog.at_level("INFO", logger="dcos_tensorflow"):
        loop.start()
        loop.submit(events.Registered("f", "m"))
        loop.submit(offers())
        recorder.wait_for(Accept)
        loop.stop()
    (launched,) = {
        record.turn.id for record in caplog.records if "launching" in record.getMessage()
    }
    assert dict(said)[Accept] == launched


def test_each_turn_has_an_id_of_its_own(loop, recorder):
    turns = []
    loop.measure(turns.append)
    loop.start()
    loop.submit(events.Registered("f", "m"))
    eventually(lambda: turns, what=lambda: "a turn is told")
    loop.submit(events.Registered("f", "m"))
    eventually(lambda: len(turns) > 1, what=lambda: "another one")
    assert turns[0].id != turns[1].id
    assert turns[0].id.split("-")[0] == turns[1].id.split("-")[0]


def test_a_turn_is_told_with_what_each_part_took(loop, recorder):
    turns = []
    loop.measure(turns.append)
    loop.start()
    loop.submit(events.Registered("f", "m"))
    eventually(lambda: turns, what=lambda: "a turn is told")
    assert turns[0].decision.writes
    assert min(turns[0].waited, turns[0].decided, turns[0].committed, turns[0].performed) >= 0


def test_a_look_at_the_clock_is_no_turn_to_tell(loop, recorder):
    turns, looks = [], []
    loop.measure(turns.append)
    loop.after_step(looks.append)
    loop.start()
    eventually(lambda: len(looks) > 3, what=lambda: "the loop looks at the clock")
    assert turns == []


def test_a_loop_that_waits_for_its_store_says_for_how_long(loop, recorder):
    recorder.failures += [StateUnavailable("away")] * 1000
    loop.start()
    loop.submit(events.Registered("f", "m"))
    eventually(lambda: loop.busy_seconds > 0.1, what=lambda: "it is busy")
    recorder.failures.clear()
    eventually(lambda: loop.busy_seconds == 0, what=lambda: "it is not any more")


def test_every_turn_is_recorded_with_what_was_committed(loop, recorder):
    loop.start()
    loop.submit(events.Registered("f", "m"))
    loop.submit(offers())
    recorder.wait_for(Accept)
    recorded = loop.recorder.recording()
    given = [type(event) for turn in recorded.turns for event in turn.events]
    assert events.Registered in given
    assert any(isinstance(action, Accept) for turn in recorded.turns for action in turn.actions)
