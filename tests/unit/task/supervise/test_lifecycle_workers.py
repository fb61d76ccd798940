"""A process that takes other workers while it runs, played with a clock of numbers."""

from dataclasses import replace

from dcos_tensorflow.task.spec import StartOrder, TaskCluster
from dcos_tensorflow.task.supervise.lifecycle import step
from dcos_tensorflow.task.supervise.lifecycle_events import (
    Lifecycle,
    LifecycleSettings,
    OrderReceived,
    PeersAnswered,
    Prepared,
    TellWorkers,
    WorkersTaken,
)

FIRST = StartOrder(1, True, TaskCluster(1))
WIDER = replace(FIRST, cluster=TaskCluster(2))


def play(*events):
    state, actions = Lifecycle(FIRST, LifecycleSettings(10.0, 100.0)), ()
    for event in (Prepared(), PeersAnswered(1, 1), *events):
        state, actions = step(state, event, 0.0)
    return state, actions


def test_a_process_that_takes_workers_is_told_of_a_newer_cluster():
    state, actions = play(WorkersTaken(1, 1), OrderReceived(WIDER))
    assert actions == (TellWorkers(WIDER.cluster),)
    assert state.current.cluster.epoch == 1


def test_the_process_has_the_newer_cluster_when_it_says_so():
    state, _ = play(WorkersTaken(1, 1), OrderReceived(WIDER), WorkersTaken(1, 2))
    assert state.current.cluster.epoch == 2


def test_an_order_that_is_repeated_is_told_once():
    _, actions = play(WorkersTaken(1, 1), OrderReceived(WIDER), OrderReceived(WIDER))
    assert actions == ()


def test_a_process_that_never_said_that_it_takes_workers_is_told_nothing():
    state, actions = play(OrderReceived(WIDER))
    assert (actions, state.current.cluster.epoch) == ((), 1)


def test_a_process_that_takes_no_more_keeps_its_cluster():
    state, _ = play(WorkersTaken(1, 1), OrderReceived(WIDER), WorkersTaken(1, 0))
    assert (state.takes_workers, state.current.cluster.epoch) == (False, 1)


def test_the_word_of_an_earlier_process_counts_no_more():
    state, _ = play(WorkersTaken(7, 1))
    assert not state.takes_workers
