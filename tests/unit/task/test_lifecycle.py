"""The state machine of the user's process, played with a clock of numbers."""

import signal

import pytest

from dcos_tensorflow.task.lifecycle import (
    ClusterChanged,
    Ending,
    Finish,
    Lifecycle,
    PeersAnswered,
    Phase,
    Prepared,
    ProcessEnded,
    ReleaseProcess,
    SendSignal,
    StaleEpoch,
    StartProcess,
    StopAsked,
    Tick,
    WatchPeers,
    step,
)
from dcos_tensorflow.task.spec import Cluster

ONE, TWO, THREE = Cluster(1), Cluster(2), Cluster(3)


def play(*events, wait=100.0, grace=10.0, held=False):
    """Feed (time, event) pairs to a new lifecycle; return the state and the actions of the last."""
    state, actions = Lifecycle(ONE, grace, wait, starts_held=held), ()
    for now, event in events:
        state, actions = step(state, event, now)
    return state, actions


RUNNING = ((0, Prepared()), (1, PeersAnswered(1)))


def test_first_the_peers_are_waited_for():
    assert play((0, Prepared())) == (
        Lifecycle(ONE, 10.0, 100.0, phase=Phase.WAITING, deadline=100.0),
        (WatchPeers(ONE),),
    )


def test_the_process_starts_when_the_peers_have_answered():
    state, actions = play(*RUNNING)
    assert state.phase is Phase.RUNNING
    assert actions == (StartProcess(ONE, 1),)


def test_the_process_starts_without_the_peers_when_the_wait_is_over():
    assert play((0, Prepared()), (99, Tick()))[1] == ()
    (start,) = play((0, Prepared()), (100, Tick()))[1]
    assert (start.start, start.note) == (1, "peers still missing after 100 s")


def test_an_answer_of_an_older_epochs_peers_starts_nothing():
    state, actions = play((0, Prepared()), (1, ClusterChanged(TWO)), (2, PeersAnswered(1)))
    assert (state.phase, actions) == (Phase.WAITING, ())


def test_the_end_of_the_process_is_the_end_of_the_task():
    state, actions = play(*RUNNING, (2, ProcessEnded(1, 3)))
    assert (state.phase, state.return_code, actions) == (Phase.EXITED, 3, (Finish(3),))


def test_a_stop_sends_sigterm_and_after_the_grace_sigkill():
    stopped = (*RUNNING, (2, StopAsked("because")))
    (term,) = play(*stopped)[1]
    assert term.number == signal.SIGTERM
    assert play(*stopped, (11, Tick()))[1] == ()
    (kill,) = play(*stopped, (12, Tick()))[1]
    assert isinstance(kill, SendSignal)
    assert kill.number == signal.SIGKILL


def test_sigkill_is_sent_once():
    assert play(*RUNNING, (2, StopAsked("x")), (12, Tick()), (13, Tick()))[1] == ()


def test_a_second_stop_can_shorten_the_grace_and_not_lengthen_it():
    stopped = (*RUNNING, (2, StopAsked("x")))
    assert play(*stopped, (3, StopAsked("y", 1)))[0].deadline == 4
    assert play(*stopped, (3, StopAsked("y", 60)))[0].deadline == 12


def test_a_stop_before_the_start_ends_as_if_by_sigterm():
    state, actions = play((0, Prepared()), (1, StopAsked("x")))
    assert (state.phase, actions) == (Phase.EXITED, (Finish(-signal.SIGTERM),))


def test_a_newer_cluster_stops_the_process_and_starts_it_again():
    changed = (*RUNNING, (2, ClusterChanged(TWO)))
    state, (term,) = play(*changed)
    assert (state.phase, term.number) == (Phase.STOPPING, signal.SIGTERM)
    ended = (*changed, (3, ProcessEnded(1, -15)))
    assert play(*ended)[1] == (WatchPeers(TWO),)
    assert play(*ended, (4, PeersAnswered(2)))[1] == (StartProcess(TWO, 2),)


def test_a_still_newer_cluster_takes_the_place_of_the_next_one():
    events = (*RUNNING, (2, ClusterChanged(TWO)), (3, ClusterChanged(THREE)))
    assert play(*events, (4, ProcessEnded(1, -15)))[1] == (WatchPeers(THREE),)


def test_the_same_epoch_changes_nothing():
    before, _ = play(*RUNNING)
    assert step(before, ClusterChanged(ONE), 2) == (before, ())


def test_an_older_epoch_is_refused_also_while_a_newer_one_is_on_its_way():
    state, _ = play(*RUNNING, (2, ClusterChanged(THREE)))
    with pytest.raises(StaleEpoch):
        step(state, ClusterChanged(TWO), 3)


def test_a_stop_during_a_restart_ends_the_task():
    events = (*RUNNING, (2, ClusterChanged(TWO)), (3, StopAsked("x")))
    assert play(*events, (4, ProcessEnded(1, -15)))[1] == (Finish(-15),)


def test_a_task_that_is_ending_takes_no_new_cluster():
    state, _ = play(*RUNNING, (2, StopAsked("x")))
    with pytest.raises(Ending):
        step(state, ClusterChanged(TWO), 3)


def test_a_task_that_has_ended_takes_no_new_cluster():
    state, _ = play(*RUNNING, (2, ProcessEnded(1, 0)))
    with pytest.raises(Ending):
        step(state, ClusterChanged(TWO), 3)


def test_the_end_of_an_earlier_start_is_not_the_end_of_this_one():
    events = (*RUNNING, (2, ClusterChanged(TWO)), (3, ProcessEnded(1, -15)), (4, PeersAnswered(2)))
    assert play(*events, (5, ProcessEnded(1, -15)))[0].phase is Phase.RUNNING


def test_each_restart_has_its_own_grace_and_its_own_sigkill():
    first = (*RUNNING, (2, ClusterChanged(TWO)), (12, Tick()), (13, ProcessEnded(1, -9)))
    second = (*first, (14, PeersAnswered(2)), (20, ClusterChanged(THREE)), (30, Tick()))
    (kill,) = play(*second)[1]
    assert kill.number == signal.SIGKILL


def test_a_process_that_starts_held_starts_while_the_peers_are_waited_for():
    state, actions = play((0, Prepared()), held=True)
    assert (state.phase, state.starts, state.deadline) == (Phase.WAITING, 1, 100.0)
    assert actions == (StartProcess(ONE, 1, held=True), WatchPeers(ONE))


def test_a_held_process_is_released_when_the_peers_have_answered():
    state, actions = play(*RUNNING, held=True)
    assert (state.phase, state.starts, state.deadline) == (Phase.RUNNING, 1, None)
    assert actions == (ReleaseProcess(),)


def test_a_held_process_is_released_without_the_peers_when_the_wait_is_over():
    assert play((0, Prepared()), (99, Tick()), held=True)[1] == ()
    (release,) = play((0, Prepared()), (100, Tick()), held=True)[1]
    assert release == ReleaseProcess("peers still missing after 100 s")


def test_a_held_process_that_ends_by_itself_ends_the_task():
    state, actions = play((0, Prepared()), (1, ProcessEnded(1, 1)), held=True)
    assert (state.phase, actions) == (Phase.EXITED, (Finish(1),))


def test_a_stop_while_a_process_is_held_sends_sigterm_and_after_the_grace_sigkill():
    stopped = ((0, Prepared()), (1, StopAsked("x")))
    state, (term,) = play(*stopped, held=True)
    assert (state.phase, term.number) == (Phase.STOPPING, signal.SIGTERM)
    assert play(*stopped, (2, PeersAnswered(1)), held=True)[1] == ()
    (kill,) = play(*stopped, (11, Tick()), held=True)[1]
    assert kill.number == signal.SIGKILL


def test_a_newer_cluster_while_a_process_is_held_stops_it_and_starts_another_one_held():
    changed = ((0, Prepared()), (1, ClusterChanged(TWO)))
    state, (term,) = play(*changed, held=True)
    assert (state.phase, term.number) == (Phase.STOPPING, signal.SIGTERM)
    ended = (*changed, (2, ProcessEnded(1, -15)))
    assert play(*ended, held=True)[1] == (StartProcess(TWO, 2, held=True), WatchPeers(TWO))
    assert play(*ended, (3, PeersAnswered(1)), held=True)[1] == ()
    assert play(*ended, (3, PeersAnswered(2)), held=True)[1] == (ReleaseProcess(),)
