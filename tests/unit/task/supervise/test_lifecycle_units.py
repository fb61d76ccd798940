"""Starts that are for units of work, played with a clock of numbers."""

from dataclasses import replace

import pytest

from dcos_tensorflow.task.exits.exit_analysis import ProcessEnding, analyse, storage_failed
from dcos_tensorflow.task.spec import StartOrder, TaskCluster
from dcos_tensorflow.task.supervise.lifecycle import step
from dcos_tensorflow.task.supervise.lifecycle_events import (
    Finish,
    ForgetPeers,
    HandOver,
    Keep,
    Lifecycle,
    LifecycleSettings,
    OrderReceived,
    OutputKept,
    PeersAnswered,
    Prepared,
    ProcessEnded,
    ReportFailure,
    SendSignal,
    StartProcess,
    StopAsked,
    TaskPhase,
    UnitDone,
    WatchPeers,
)
from dcos_tensorflow.task.unit_order import Payload, UnitOrder

CLUSTER = TaskCluster(1)
FIRST = StartOrder(1, False, CLUSTER)
SUCCESS = analyse(ProcessEnding(0), ())


def unit_order(start, *, output="", cluster=CLUSTER):
    return StartOrder(start, True, cluster, unit=UnitOrder(start + 16, 1, Payload(output=output)))


def held(start):
    return StartOrder(start, False, CLUSTER)


def ordered(order):
    return (OrderReceived(order), PeersAnswered(order.start, order.cluster.epoch))


def ended(process, code=0, *, asked=False):
    report = analyse(ProcessEnding(code, stop_reason="asked" if asked else ""), ())
    return ProcessEnded(process, report, asked, 0.0)


def done(process, start):
    return UnitDone(process, start, SUCCESS, 0.0)


def play(*events):
    state, actions = (
        Lifecycle(FIRST, LifecycleSettings(10.0, 100.0, False, True)),
        (),
    )
    for event in (Prepared(), *events):
        state, actions = step(state, event, 0.0)
    return state, actions


def test_a_unit_whose_process_ends_with_0_is_done_and_the_container_stays():
    state, actions = play(*ordered(unit_order(2)), ended(1))
    assert (state.phase, actions) == (TaskPhase.DONE, (ForgetPeers(),))


def test_the_next_unit_starts_in_the_same_container():
    two, three = unit_order(2), unit_order(3)
    state, actions = play(*ordered(two), ended(1), *ordered(three))
    assert (state.phase, actions) == (TaskPhase.RUNNING, (StartProcess(three, 2),))


def test_an_order_that_is_repeated_after_its_unit_was_done_does_nothing():
    state, actions = play(*ordered(unit_order(2)), ended(1), OrderReceived(unit_order(2)))
    assert (state.phase, actions) == (TaskPhase.DONE, ())


def test_a_unit_that_fails_leaves_the_container_for_the_next():
    state, actions = play(*ordered(unit_order(2)), ended(1, 3))
    assert state.phase is TaskPhase.FAILED
    assert isinstance(actions[-1], ReportFailure)


def test_what_a_unit_has_written_is_published_before_it_is_done():
    two = unit_order(2, output="part-18")
    state, actions = play(*ordered(two), ended(1))
    assert (state.phase, actions) == (TaskPhase.STOPPING, (Keep(1, 600.0, two),))
    state, _ = step(state, OutputKept(1), 0.0)
    assert state.phase is TaskPhase.DONE


def test_a_unit_whose_output_cannot_be_published_has_failed():
    refusal = storage_failed("no answer")
    state, _ = play(*ordered(unit_order(2, output="part-18")), ended(1), OutputKept(1, refusal))
    assert state.phase is TaskPhase.FAILED
    assert state.failure.report == refusal


def test_what_a_failed_unit_has_written_is_not_published():
    state, _ = play(*ordered(unit_order(2, output="part-18")), ended(1, 3))
    assert state.phase is TaskPhase.FAILED


def test_a_newer_start_stops_the_unit_that_runs():
    state, actions = play(*ordered(unit_order(2)), OrderReceived(unit_order(3)))
    assert state.phase is TaskPhase.STOPPING
    assert isinstance(actions[0], SendSignal)
    state, actions = step(state, ended(1, -15, asked=True), 0.0)
    assert actions == (WatchPeers(unit_order(3)),)


def test_a_unit_that_was_done_as_a_newer_start_was_ordered_gives_way_to_it():
    state, actions = play(*ordered(unit_order(2)), OrderReceived(unit_order(3)), ended(1))
    assert (state.phase, actions) == (TaskPhase.WAITING, (WatchPeers(unit_order(3)),))


def test_a_process_that_serves_is_handed_the_next_unit():
    two, three = unit_order(2), unit_order(3)
    state, _ = play(*ordered(two), done(1, 2))
    assert (state.phase, state.idle) == (TaskPhase.DONE, True)
    state, actions = play(*ordered(two), done(1, 2), *ordered(three))
    assert (state.phase, actions) == (TaskPhase.RUNNING, (HandOver(three),))
    assert state.starts == 1


def test_a_process_that_serves_waits_through_a_hold():
    three = unit_order(4)
    events = (*ordered(unit_order(2)), done(1, 2), OrderReceived(held(3)))
    assert play(*events)[0].phase is TaskPhase.HELD
    assert play(*events, *ordered(three))[1] == (HandOver(three),)


def test_a_process_that_ends_while_it_has_no_unit_costs_no_unit_anything():
    events = (*ordered(unit_order(2)), done(1, 2), ended(1, 9))
    assert play(*events)[0].phase is TaskPhase.DONE
    three = unit_order(3)
    assert play(*events, *ordered(three))[1] == (StartProcess(three, 2),)


def test_a_process_that_knows_another_cluster_is_started_anew():
    three = unit_order(3, cluster=TaskCluster(2))
    events = (*ordered(unit_order(2)), done(1, 2), OrderReceived(three))
    state, actions = play(*events)
    assert state.phase is TaskPhase.STOPPING
    assert isinstance(actions[0], SendSignal)
    more = (ended(1, -15, asked=True), PeersAnswered(3, 2))
    assert play(*events, *more)[1] == (StartProcess(three, 2),)


def test_a_process_that_crashes_fails_the_unit_it_has_and_no_other():
    events = (*ordered(unit_order(2)), done(1, 2), *ordered(unit_order(3)), ended(1, -11))
    state, _ = play(*events)
    assert (state.phase, state.failure.start) == (TaskPhase.FAILED, 3)


@pytest.mark.parametrize("start", [1, 3])
def test_a_word_about_another_start_is_passed_over(start):
    state, actions = play(*ordered(unit_order(2)), done(1, start))
    assert (state.phase, actions) == (TaskPhase.RUNNING, ())


def test_a_stop_ends_a_process_that_waits_for_a_unit_at_once():
    events = (*ordered(unit_order(2)), done(1, 2), StopAsked("asked"))
    state, actions = play(*events)
    assert state.phase is TaskPhase.EXITED
    assert isinstance(actions[0], Finish)


def test_an_order_without_a_unit_ends_with_its_process():
    plain = replace(unit_order(2), unit=None)
    assert play(*ordered(plain), ended(1))[0].phase is TaskPhase.EXITED
