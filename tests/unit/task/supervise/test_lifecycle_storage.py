"""The state machine of a task that fetches before each start, and keeps what each process left."""

from dataclasses import replace

import pytest

from dcos_tensorflow.task.exits.exit_analysis import ProcessEnding, analyse, storage_failed
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.spec import StartOrder, TaskCluster
from dcos_tensorflow.task.supervise.lifecycle import (
    KEEP_AT_SUCCESS_SECONDS,
    KEEP_SECONDS,
    TaskEnding,
    step,
)
from dcos_tensorflow.task.supervise.lifecycle_events import (
    Fetch,
    Fetched,
    Finish,
    ForgetPeers,
    Keep,
    Lifecycle,
    LifecycleSettings,
    OrderReceived,
    OutputKept,
    PeersAnswered,
    Prepared,
    ProcessEnded,
    ReportFailure,
    StopAsked,
    TaskPhase,
    WatchPeers,
)

ONE, TWO = (StartOrder(number, True, TaskCluster(number)) for number in (1, 2))
HELD = replace(ONE, run=False)
DENIED = storage_failed("S3 answered AccessDenied")


def ended(process, code, *, asked=False):
    report = analyse(ProcessEnding(code, stop_reason="asked" if asked else ""), ())
    return ProcessEnded(process, report, asked, 0.0)


def play(*events, first=ONE, keeps=True):
    state, actions = Lifecycle(first, LifecycleSettings(10.0, 100.0, False, keeps, stores=True)), ()
    for now, event in events:
        state, actions = step(state, event, now)
    return state, actions


FETCHING = ((0, Prepared()),)
RUNNING = (*FETCHING, (1, Fetched(1, 0.0)), (2, PeersAnswered(1, 1)))
KEEPING = (*RUNNING, (3, ended(1, 3)))


def test_first_it_fetches():
    state, actions = play(*FETCHING)
    assert (state.phase, actions) == (TaskPhase.PREPARING, (ForgetPeers(), Fetch(ONE, 1)))


def test_then_the_peers_are_waited_for():
    state, actions = play(*FETCHING, (1, Fetched(1, 0.0)))
    assert (state.phase, actions) == (TaskPhase.WAITING, (WatchPeers(ONE),))


def test_a_held_task_fetches_before_it_says_so():
    assert play(*FETCHING, first=HELD)[0].phase is TaskPhase.PREPARING
    assert play(*FETCHING, (1, Fetched(1, 0.0)), first=HELD)[0].phase is TaskPhase.HELD


def test_a_start_that_cannot_fetch_has_failed():
    state, actions = play(*FETCHING, (1, Fetched(1, 0.0, DENIED)))
    assert state.phase is TaskPhase.FAILED
    assert isinstance(actions[1], ReportFailure)
    assert actions[1].failure.report.exit_class is ExitClass.STORAGE


def test_without_hold_on_failure_it_ends_the_task():
    _, actions = play(*FETCHING, (1, Fetched(1, 0.0, DENIED)), keeps=False)
    assert actions == (Finish(DENIED),)


def test_another_start_fetches_again():
    failed = (*FETCHING, (1, Fetched(1, 0.0, DENIED)))
    _, actions = play(*failed, (2, OrderReceived(TWO)))
    assert actions == (ForgetPeers(), Fetch(TWO, 2))


def test_an_order_with_another_step_fetches_anew_and_the_old_fetch_does_not_count():
    other = replace(ONE, expects_restore_step=True, restore_step=7)
    state, actions = play(*FETCHING, (1, OrderReceived(other)), (2, Fetched(1, 0.0)))
    assert (state.phase, state.fetches, actions) == (TaskPhase.PREPARING, 2, ())


def test_another_cluster_does_not_fetch_anew():
    other = replace(ONE, cluster=TaskCluster(5))
    state, actions = play(*FETCHING, (1, OrderReceived(other)))
    assert (state.fetches, actions) == (1, ())
    assert step(state, Fetched(1, 0.0), 2)[1] == (WatchPeers(other),)


def test_a_stop_does_not_wait_for_what_is_fetched():
    assert isinstance(play(*FETCHING, (1, StopAsked("asked")))[1][0], Finish)


def test_what_a_failed_process_left_is_kept_before_anything_else():
    state, actions = play(*KEEPING)
    assert (state.phase, actions) == (TaskPhase.STOPPING, (Keep(1, 10.0),))


def test_then_the_failure_is_told():
    state, actions = play(*KEEPING, (4, OutputKept(1)))
    assert state.phase is TaskPhase.FAILED
    assert isinstance(actions[1], ReportFailure)


def test_a_success_has_long_to_keep_its_last_checkpoint():
    assert play(*RUNNING, (3, ended(1, 0)))[1] == (Keep(1, KEEP_AT_SUCCESS_SECONDS),)


def test_a_stopped_process_leaves_the_rest_of_its_grace():
    stopping = (*RUNNING, (3, StopAsked("asked")))
    assert play(*stopping, (5, ended(1, 0, asked=True)))[1] == (Keep(1, 8.0),)


def test_a_process_that_used_up_its_grace_leaves_a_little():
    stopping = (*RUNNING, (3, StopAsked("asked")))
    assert play(*stopping, (14, ended(1, -9, asked=True)))[1] == (Keep(1, KEEP_SECONDS),)


def test_a_stop_shortens_the_keeping():
    success = (*RUNNING, (3, ended(1, 0)))
    state, actions = play(*success, (4, StopAsked("asked", 5.0)))
    assert actions == (Keep(1, 5.0),)
    assert step(state, OutputKept(1), 5)[1][0].report.exit_code == 0


def test_a_new_start_shortens_the_keeping_and_comes_after_it():
    state, actions = play(*KEEPING, (4, OrderReceived(replace(TWO, grace_seconds=0.5))))
    assert actions == (Keep(1, KEEP_SECONDS),)
    state, actions = step(state, OutputKept(1), 5)
    assert isinstance(actions[0], ReportFailure)
    assert (state.phase, actions[2].fetch) == (TaskPhase.PREPARING, 2)


def test_a_task_that_succeeded_takes_no_order_while_it_keeps():
    with pytest.raises(TaskEnding):
        play(*RUNNING, (3, ended(1, 0)), (4, OrderReceived(TWO)))


def test_a_later_hold_is_fulfilled_at_once():
    hold = replace(TWO, run=False)
    stopped = (*RUNNING, (3, OrderReceived(hold)), (4, ended(1, -15, asked=True)))
    assert play(*stopped, (5, OutputKept(1)))[0].phase is TaskPhase.HELD
