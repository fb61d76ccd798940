"""Updates are late, doubled or lost; offers are gone when they are accepted."""

import signal

import pytest

from cluster_faults import FaultyCluster

from .conftest import MakeTraining
from .training import ScheduledTraining

pytestmark = pytest.mark.timeout(180)


def launched_once(training: ScheduledTraining) -> None:
    training.look()
    assert {task["attempt"] for task in training.job()["tasks"].values()} == {1}
    assert training.incidents() == []
    training.ends_right()


# That they are lost is the worst of it.
@pytest.mark.soak
def test_the_updates_of_a_launch_are_late(
    cluster: FaultyCluster, make_training: MakeTraining
) -> None:
    cluster.faults.delay_updates(1.0, 8)
    launched_once(make_training())


@pytest.mark.soak
def test_the_updates_of_a_launch_come_twice(
    cluster: FaultyCluster, make_training: MakeTraining
) -> None:
    cluster.faults.duplicate_updates(8)
    launched_once(make_training())


def test_the_updates_of_a_launch_are_lost(
    cluster: FaultyCluster, make_training: MakeTraining
) -> None:
    cluster.faults.drop_updates(8)
    launched_once(make_training())


@pytest.mark.parametrize(
    "fault", [*(pytest.param(each, marks=pytest.mark.soak) for each in ("late", "twice")), "lost"]
)
def test_the_update_of_an_end_is_disturbed(training: ScheduledTraining, fault: str) -> None:
    faults = training.cluster.faults
    {
        "late": lambda: faults.delay_updates(1.5, state="TASK_FAILED"),
        "twice": lambda: faults.duplicate_updates(state="TASK_FAILED"),
        "lost": lambda: faults.drop_updates(state="TASK_FAILED"),
    }[fault]()
    faults.signal_task(training.task_id("worker-1"), signal.SIGKILL)
    job = training.recovers("worker-1", moved=("worker-1",))
    assert len(job["incidents"]) == 1
    assert job["tasks"]["worker-1"]["attempt"] == 2
    training.ends_right()


def test_offers_are_rescinded_while_they_are_accepted(training: ScheduledTraining) -> None:
    training.cluster.faults.rescind_at_accept(1)
    training.cluster.faults.signal_task(training.task_id("worker-1"), signal.SIGKILL)
    training.recovers("worker-1", moved=("worker-1",))
    training.ends_right()


def test_an_accept_does_not_arrive(training: ScheduledTraining) -> None:
    training.cluster.faults.drop_accept_before(1)
    training.cluster.faults.signal_task(training.task_id("worker-1"), signal.SIGKILL)
    # Whether its agent is still there is not known any more: it may find another place.
    job = training.recovers("worker-1", moved=("worker-1",), perhaps=("chief-0",))
    assert job["tasks"]["worker-1"]["attempt"] == 3, "another launch, not the same again"
    training.ends_right()


def test_the_answer_to_an_accept_does_not_arrive(training: ScheduledTraining) -> None:
    training.cluster.faults.drop_accept_after(1)
    training.cluster.faults.signal_task(training.task_id("worker-1"), signal.SIGKILL)
    job = training.recovers("worker-1", moved=("worker-1",))
    assert job["tasks"]["worker-1"]["attempt"] == 2, "it was not sent again"
    training.ends_right()
