"""The state machine of the user's process, played with a clock of numbers."""

import signal
from dataclasses import replace

import pytest

from dcos_tensorflow.task.exits.exit_analysis import ExitReport, ExitVerdict, ProcessEnding, analyse
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.spec import StartOrder, TaskCluster
from dcos_tensorflow.task.supervise.lifecycle import StaleOrder, TaskEnding, due, step
from dcos_tensorflow.task.supervise.lifecycle_events import (
    Condemned,
    ForgetPeers,
    Lifecycle,
    LifecycleSettings,
    OrderReceived,
    PeersAnswered,
    Prepared,
    ProcessEnded,
    ReleaseProcess,
    ReportFailure,
    SendSignal,
    StartProcess,
    StopAsked,
    TaskPhase,
    Tick,
    WatchPeers,
)

ONE, TWO, THREE = (StartOrder(number, True, TaskCluster(number)) for number in (1, 2, 3))
FROZEN = ExitVerdict(ExitClass.FROZEN, "It is frozen")


def order(order, **changes):
    return OrderReceived(replace(order, **changes))


def hold(of):
    return order(of, run=False)


def ended(process, code, *, asked=False, at=0.0, lines=()):
    report = analyse(ProcessEnding(code, stop_reason="asked" if asked else ""), lines)
    return ProcessEnded(process, report, asked, at)


def stopped(process, code=-15):
    return ended(process, code, asked=True)


def play(*events, first=ONE, wait=100.0, grace=10.0, gated=False, keeps=True):
    """Feed (time, event) pairs to a new lifecycle; return the state and the actions of the last.

    ``keeps`` is hold_on_failure.
    """
    state, actions = Lifecycle(first, LifecycleSettings(grace, wait, gated, keeps)), ()
    for now, event in events:
        state, actions = step(state, event, now)
    return state, actions


def phase_after(*events, **settings):
    return play(*events, **settings)[0].phase


RUNNING = ((0, Prepared()), (1, PeersAnswered(1, 1)))
FAILED = (*RUNNING, (2, ended(1, 3)))
HELD = (*RUNNING, (2, hold(TWO)), (3, stopped(1)))


def test_first_the_peers_are_waited_for():
    state, actions = play((0, Prepared()))
    assert (state.phase, state.deadline, actions) == (TaskPhase.WAITING, 100.0, (WatchPeers(ONE),))


def test_the_process_starts_when_the_peers_have_answered():
    state, actions = play(*RUNNING)
    assert (state.phase, actions) == (TaskPhase.RUNNING, (StartProcess(ONE, 1),))


def test_the_process_starts_without_the_peers_when_the_wait_is_over():
    assert play((0, Prepared()), (99, Tick()))[1] == ()
    (start,) = play((0, Prepared()), (100, Tick()))[1]
    assert (start.process, start.note) == (1, "peers still missing after 100 s")


@pytest.mark.parametrize("seen", [PeersAnswered(1, 1), PeersAnswered(2, 1), PeersAnswered(1, 2)])
def test_an_answer_of_other_peers_starts_nothing(seen):
    state, actions = play((0, Prepared()), (1, OrderReceived(TWO)), (2, seen))
    assert (state.phase, actions) == (TaskPhase.WAITING, ())


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("code", [0, 71, 75, 78])
def test_success_and_what_no_other_start_could_mend_end_the_task(code, keeps):
    state, (finish,) = play(*RUNNING, (2, ended(1, code)), keeps=keeps)
    assert (state.phase, finish.report.exit_code) == (TaskPhase.EXITED, code)


@pytest.mark.parametrize("code", [1, 3, 42, -9, -11])
def test_without_hold_on_failure_every_end_is_the_end_of_the_task(code):
    state, (finish,) = play(*RUNNING, (2, ended(1, code)), keeps=False)
    assert state.phase is TaskPhase.EXITED
    assert finish.report.exit_code == (code if code > 0 else 128 - code)


@pytest.mark.parametrize("code", [1, 3, 42, -9, -11])
def test_with_hold_on_failure_a_failure_is_told_and_the_container_kept(code):
    state, actions = play(*RUNNING, (2, ended(1, code, at=9.0)))
    assert (state.phase, state.current) == (TaskPhase.FAILED, None)
    assert actions == (ForgetPeers(), ReportFailure(state.failure))
    assert (state.failure.start, state.failure.at) == (1, 9.0)


def test_a_failed_start_is_never_started_again_under_its_own_number():
    before, _ = play(*FAILED)
    assert step(before, OrderReceived(ONE), 3) == (before, ())
    assert step(before, order(ONE, cluster=TaskCluster(7)), 3) == (before, ())


def test_a_start_that_failed_while_it_was_held_stays_failed_when_it_is_let_go():
    held = replace(ONE, run=False)
    before, _ = play((0, Prepared()), first=held)
    failed = replace(before, phase=TaskPhase.FAILED)
    after, actions = step(failed, OrderReceived(ONE), 3)
    assert (after.phase, after.order.run, actions) == (TaskPhase.FAILED, True, ())


def test_after_a_failure_a_new_start_begins():
    state, actions = play(*FAILED, (3, OrderReceived(TWO)))
    assert (state.phase, actions) == (TaskPhase.WAITING, (WatchPeers(TWO),))
    assert play(*FAILED, (3, OrderReceived(TWO)), (4, PeersAnswered(2, 2)))[1] == (
        StartProcess(TWO, 2),
    )


def test_the_newest_failure_is_kept_while_the_next_start_runs():
    state, _ = play(*FAILED, (3, OrderReceived(TWO)), (4, PeersAnswered(2, 2)))
    assert state.failure.start == 1


def test_after_a_failure_a_new_start_can_be_held():
    assert phase_after(*FAILED, (3, hold(TWO))) is TaskPhase.HELD


def test_a_stop_of_a_failed_task_ends_it_with_the_failures_code():
    state, (finish,) = play(*FAILED, (3, StopAsked("x")))
    assert (state.phase, finish.report.exit_code) == (TaskPhase.EXITED, 3)
    assert finish.report.exit_class is ExitClass.USER_ERROR


def test_a_stop_sends_sigterm_and_after_the_grace_sigkill():
    events = (*RUNNING, (2, StopAsked("because")))
    (term,) = play(*events)[1]
    assert term.number == signal.SIGTERM
    assert play(*events, (11, Tick()))[1] == ()
    (kill,) = play(*events, (12, Tick()))[1]
    assert kill.number == signal.SIGKILL


def test_time_is_to_be_looked_at_when_a_grace_or_a_wait_is_over_and_not_again_after_that():
    stopping = (*RUNNING, (2, StopAsked("because")))
    assert due(play((0, Prepared()))[0]) == 100
    assert due(play(*RUNNING)[0]) is None
    assert due(play(*stopping)[0]) == 12
    assert due(play(*stopping, (12, Tick()))[0]) is None


def test_a_second_stop_can_shorten_the_grace_and_not_lengthen_it():
    events = (*RUNNING, (2, StopAsked("x")))
    assert play(*events, (3, StopAsked("y", 1)))[0].deadline == 4
    assert play(*events, (3, StopAsked("y", 60)))[0].deadline == 12


def test_a_repeated_order_can_shorten_the_grace_and_not_lengthen_it():
    events = (*RUNNING, (2, order(TWO, grace_seconds=5)))
    assert play(*events)[0].deadline == 7
    assert play(*events, (3, order(TWO, grace_seconds=1)))[0].deadline == 4
    assert play(*events, (3, order(TWO, grace_seconds=60)))[0].deadline == 7
    assert play(*events, (3, OrderReceived(TWO)))[0].deadline == 7


@pytest.mark.parametrize(
    ("events", "first"),
    [
        ((), ONE),
        (((0, Prepared()),), ONE),
        (((0, Prepared()),), replace(ONE, run=False)),
        (HELD, ONE),
    ],
    ids=["preparing", "waiting", "held at launch", "held"],
)
def test_a_stop_without_a_process_ends_as_if_by_sigterm(events, first):
    state, (finish,) = play(*events, (5, StopAsked("x")), first=first)
    assert (state.phase, finish.report.exit_code) == (TaskPhase.EXITED, 143)
    assert finish.report.summary == "Stopped: x"


def test_a_new_start_stops_the_process_and_starts_it_again():
    changed = (*RUNNING, (2, OrderReceived(TWO)))
    state, (term,) = play(*changed)
    assert (state.phase, term.number) == (TaskPhase.STOPPING, signal.SIGTERM)
    events = (*changed, (3, stopped(1)))
    assert play(*events)[1] == (WatchPeers(TWO),)
    assert play(*events, (4, PeersAnswered(2, 2)))[1] == (StartProcess(TWO, 2),)


def test_a_start_number_may_be_left_out():
    events = (*RUNNING, (2, OrderReceived(THREE)), (3, stopped(1)), (4, PeersAnswered(3, 3)))
    assert play(*events)[1] == (StartProcess(THREE, 2),)


def test_a_process_that_we_have_stopped_is_no_failure():
    assert play(*RUNNING, (2, OrderReceived(TWO)), (3, stopped(1, 1)))[0].failure is None


def test_a_still_newer_start_takes_the_place_of_the_next_one():
    events = (*RUNNING, (2, OrderReceived(TWO)), (3, OrderReceived(THREE)))
    assert play(*events, (4, stopped(1)))[1] == (WatchPeers(THREE),)


@pytest.mark.parametrize(
    "again", [ONE, replace(ONE, cluster=TaskCluster(9)), replace(ONE, cluster=TaskCluster(0))]
)
def test_an_order_for_the_start_that_runs_changes_nothing(again):
    before, _ = play(*RUNNING)
    assert step(before, OrderReceived(again), 2) == (before, ())


def test_an_older_start_is_refused_also_while_a_newer_one_is_on_its_way():
    state, _ = play(*RUNNING, (2, OrderReceived(THREE)))
    with pytest.raises(StaleOrder):
        step(state, OrderReceived(TWO), 3)


def test_the_first_order_can_change_the_cluster_while_the_sandbox_is_prepared():
    newer = replace(ONE, cluster=TaskCluster(5))
    assert play((0, OrderReceived(newer)), (1, Prepared()))[1] == (WatchPeers(newer),)


def test_a_start_can_be_held_and_replaced_while_the_sandbox_is_prepared():
    assert phase_after((0, hold(TWO)), (1, Prepared())) is TaskPhase.HELD
    assert play((0, OrderReceived(TWO)), (1, Prepared()))[1] == (WatchPeers(TWO),)


def test_a_start_that_waits_takes_a_newer_cluster():
    newer = replace(ONE, cluster=TaskCluster(5))
    assert play((0, Prepared()), (1, OrderReceived(newer)))[1] == (WatchPeers(newer),)


def test_a_start_that_waits_refuses_an_older_cluster():
    state, _ = play((0, Prepared()), (1, order(ONE, cluster=TaskCluster(5))))
    with pytest.raises(StaleOrder):
        step(state, order(ONE, cluster=TaskCluster(4)), 2)


def test_the_same_order_again_does_not_wait_anew():
    before, _ = play((0, Prepared()))
    assert step(before, OrderReceived(ONE), 50) == (before, ())


def test_while_a_start_waits_the_next_one_can_be_held_and_let_go():
    state, actions = play((0, Prepared()), (1, hold(TWO)))
    assert (state.phase, state.deadline, actions) == (TaskPhase.HELD, None, (ForgetPeers(),))
    assert play((0, Prepared()), (1, hold(TWO)), (2, OrderReceived(TWO)))[1] == (WatchPeers(TWO),)


def test_no_answer_of_peers_and_no_time_starts_what_is_held():
    events = ((0, Prepared()), (1, hold(TWO)), (2, PeersAnswered(1, 1)), (999, Tick()))
    assert play(*events)[0].starts == 0


def test_a_task_held_at_launch_starts_nothing_until_it_is_let_go():
    first = replace(ONE, run=False)
    assert phase_after((0, Prepared()), (999, Tick()), first=first) is TaskPhase.HELD
    events = ((0, Prepared()), (1, order(ONE, cluster=TaskCluster(4))), (2, PeersAnswered(1, 4)))
    (start,) = play(*events, first=first)[1]
    assert (start.order.start, start.order.cluster.epoch, start.process) == (1, 4, 1)


@pytest.mark.parametrize(
    "events",
    [
        (),
        RUNNING,
        FAILED,
        (*HELD, (4, OrderReceived(TWO)), (5, PeersAnswered(2, 2))),
        (*RUNNING, (2, hold(TWO)), (3, OrderReceived(TWO))),
    ],
    ids=["preparing", "running", "failed", "let go", "let go while it is stopped"],
)
def test_a_hold_that_comes_after_the_start_was_let_go_is_refused(events):
    state, _ = play(*events)
    with pytest.raises(StaleOrder):
        step(state, hold(state.order), 9)


def test_a_hold_that_comes_twice_changes_nothing():
    before, _ = play(*HELD)
    assert step(before, hold(TWO), 9) == (before, ())


def test_a_process_whose_next_start_is_held_is_stopped_and_stays_stopped():
    assert phase_after(*RUNNING, (2, hold(TWO))) is TaskPhase.STOPPING
    state, _ = play(*HELD)
    assert (state.phase, state.failure) == (TaskPhase.HELD, None)


def test_a_held_start_that_is_let_go_starts_with_the_newest_cluster():
    events = (*HELD, (4, order(TWO, cluster=TaskCluster(6))), (5, PeersAnswered(2, 6)))
    (start,) = play(*events)[1]
    assert (start.order.cluster.epoch, start.process) == (6, 2)


def test_a_start_that_is_let_go_while_it_is_stopped_starts_again_after_that():
    events = (*RUNNING, (2, hold(TWO)), (3, OrderReceived(TWO)), (4, stopped(1)))
    assert play(*events)[1] == (WatchPeers(TWO),)


def test_a_new_start_can_be_held_while_the_old_one_is_stopped():
    events = (*RUNNING, (2, OrderReceived(TWO)), (3, hold(THREE)), (4, stopped(1)))
    assert phase_after(*events) is TaskPhase.HELD


def test_a_stop_during_a_restart_ends_the_task():
    events = (*RUNNING, (2, OrderReceived(TWO)), (3, StopAsked("x")), (4, stopped(1)))
    assert phase_after(*events) is TaskPhase.EXITED


@pytest.mark.parametrize("asked", [ONE, TWO, replace(TWO, run=False)])
def test_a_task_that_is_ending_takes_no_order(asked):
    state, _ = play(*RUNNING, (2, StopAsked("x")))
    with pytest.raises(TaskEnding):
        step(state, OrderReceived(asked), 3)


def test_a_task_that_has_ended_takes_no_order():
    state, _ = play(*RUNNING, (2, ended(1, 0)))
    with pytest.raises(TaskEnding):
        step(state, OrderReceived(TWO), 3)


def test_the_end_of_an_earlier_process_is_not_the_end_of_this_one():
    events = (*RUNNING, (2, OrderReceived(TWO)), (3, stopped(1)), (4, PeersAnswered(2, 2)))
    assert phase_after(*events, (5, stopped(1))) is TaskPhase.RUNNING


def test_each_restart_has_its_own_grace_and_its_own_sigkill():
    first = (*RUNNING, (2, OrderReceived(TWO)), (12, Tick()), (13, stopped(1, -9)))
    second = (*first, (14, PeersAnswered(2, 2)), (20, OrderReceived(THREE)), (30, Tick()))
    (kill,) = play(*second)[1]
    assert kill.number == signal.SIGKILL


def test_a_process_that_fails_by_itself_just_before_it_is_replaced_has_failed():
    state, actions = play(*RUNNING, (2, OrderReceived(TWO)), (3, ended(1, 1)))
    assert actions == (ReportFailure(state.failure), WatchPeers(TWO))
    assert (state.failure.start, state.phase) == (1, TaskPhase.WAITING)


def test_a_process_that_fails_by_itself_just_before_the_next_start_is_held_has_failed():
    state, actions = play(*RUNNING, (2, hold(TWO)), (3, ended(1, 1)))
    assert actions == (ReportFailure(state.failure), ForgetPeers())
    assert (state.failure.start, state.phase) == (1, TaskPhase.HELD)


def test_a_process_that_succeeds_by_itself_just_before_it_is_replaced_has_succeeded():
    state, (finish,) = play(*RUNNING, (2, OrderReceived(TWO)), (3, ended(1, 0)))
    assert (state.phase, finish.report.exit_class) == (TaskPhase.EXITED, ExitClass.SUCCESS)


def test_a_process_that_fails_by_itself_just_before_a_stop_keeps_its_own_report():
    (finish,) = play(*RUNNING, (2, StopAsked("x")), (3, ended(1, 1)))[1]
    assert finish.report.exit_class is ExitClass.USER_ERROR


def test_a_start_that_must_not_begin_has_failed():
    report = ExitReport(65, ExitClass.CHECKPOINT_MISMATCH, "another step")
    state, _ = play(*RUNNING, (1, ProcessEnded(1, report, False, 0.0)))
    assert (state.phase, state.failure.report) == (TaskPhase.FAILED, report)


def test_what_the_watchdog_gives_up_is_killed_at_once_and_has_failed():
    condemned = (*RUNNING, (2, Condemned(1, FROZEN)))
    state, (kill,) = play(*condemned)
    assert (state.phase, state.condemned) == (TaskPhase.STOPPING, FROZEN)
    assert kill == SendSignal(signal.SIGKILL, "It is frozen: SIGKILL")
    assert phase_after(*condemned, (3, ended(1, -9))) is TaskPhase.FAILED


def test_the_watchdog_judges_no_process_that_is_being_stopped_or_gone():
    for events in (HELD, FAILED, (*RUNNING, (2, OrderReceived(TWO)))):
        before, _ = play(*events)
        assert step(before, Condemned(1, FROZEN), 9) == (before, ())


def test_a_verdict_on_an_earlier_process_is_none_on_this_one():
    before, _ = play(*RUNNING, (2, OrderReceived(TWO)), (3, stopped(1)), (4, PeersAnswered(2, 2)))
    assert step(before, Condemned(1, FROZEN), 9) == (before, ())


def test_a_new_start_follows_a_process_that_the_watchdog_has_killed():
    events = (*RUNNING, (2, Condemned(1, FROZEN)), (3, OrderReceived(TWO)), (4, ended(1, -9)))
    state, actions = play(*events)
    assert actions == (ReportFailure(state.failure), WatchPeers(TWO))
    assert (state.phase, state.condemned) == (TaskPhase.WAITING, None)


def test_a_gated_process_starts_while_the_peers_are_waited_for():
    state, actions = play((0, Prepared()), gated=True)
    assert (state.phase, state.starts, state.deadline) == (TaskPhase.WAITING, 1, 100.0)
    assert actions == (StartProcess(ONE, 1, gated=True), WatchPeers(ONE))


def test_a_gated_process_is_released_when_the_peers_have_answered():
    state, actions = play(*RUNNING, gated=True)
    assert (state.phase, state.starts, state.deadline) == (TaskPhase.RUNNING, 1, None)
    assert actions == (ReleaseProcess(),)


def test_a_gated_process_is_released_without_the_peers_when_the_wait_is_over():
    assert play((0, Prepared()), (99, Tick()), gated=True)[1] == ()
    (release,) = play((0, Prepared()), (100, Tick()), gated=True)[1]
    assert release == ReleaseProcess("peers still missing after 100 s")


def test_a_gated_process_that_ends_by_itself_has_failed():
    assert phase_after((0, Prepared()), (1, ended(1, 1)), gated=True) is TaskPhase.FAILED


def test_a_stop_while_a_process_is_at_its_gate_sends_sigterm_and_after_the_grace_sigkill():
    events = ((0, Prepared()), (1, StopAsked("x")))
    state, (term,) = play(*events, gated=True)
    assert (state.phase, term.number) == (TaskPhase.STOPPING, signal.SIGTERM)
    assert play(*events, (2, PeersAnswered(1, 1)), gated=True)[1] == ()
    (kill,) = play(*events, (11, Tick()), gated=True)[1]
    assert kill.number == signal.SIGKILL


def test_a_new_start_while_a_process_is_at_its_gate_stops_it_and_starts_another_one():
    changed = ((0, Prepared()), (1, OrderReceived(TWO)))
    state, (term,) = play(*changed, gated=True)
    assert (state.phase, term.number) == (TaskPhase.STOPPING, signal.SIGTERM)
    events = (*changed, (2, stopped(1)))
    assert play(*events, gated=True)[1] == (StartProcess(TWO, 2, gated=True), WatchPeers(TWO))
    assert play(*events, (3, PeersAnswered(1, 1)), gated=True)[1] == ()
    assert play(*events, (3, PeersAnswered(2, 2)), gated=True)[1] == (ReleaseProcess(),)


def test_a_process_at_its_gate_keeps_the_cluster_that_it_began_with():
    before, _ = play((0, Prepared()), gated=True)
    assert step(before, order(ONE, cluster=TaskCluster(8)), 1) == (before, ())


def test_a_finished_task_does_nothing_more():
    state, _ = play(*RUNNING, (2, ended(1, 0)))
    for event in (Prepared(), Tick(), StopAsked("x"), stopped(1), Condemned(1, FROZEN)):
        assert step(state, event, 9) == (state, ())
