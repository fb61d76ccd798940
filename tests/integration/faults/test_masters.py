"""The master dies, refuses, forgets the framework, or breaks its connections."""

import urllib.request

import pytest

from waiting import eventually

from .training import ScheduledTraining

pytestmark = pytest.mark.timeout(180)


def subscriptions(training: ScheduledTraining) -> int:
    """Return when the newest subscription began: another number is another one."""
    state = training.scheduler.state()
    assert state is not None
    return int(state.subscription.registered_at * 1000) if state.registered else 0


def subscribes_again(training: ScheduledTraining, before: int) -> None:
    eventually(
        lambda: subscriptions(training) not in (0, before), seconds=60, what="a new subscription"
    )


def test_the_master_is_killed_and_another_leads(training: ScheduledTraining) -> None:
    known, before = training.framework_id(), subscriptions(training)
    training.cluster.faults.lose_master()
    subscribes_again(training, before)
    training.is_untouched()
    assert training.framework_id() == known
    assert training.incidents() == []
    training.ends_right()


def test_there_is_no_master_for_a_while(training: ScheduledTraining) -> None:
    known = training.framework_id()
    training.cluster.faults.stop_master()
    eventually(lambda: not training.ask("/v1/why")[1]["registered"], what="that it notices")
    training.is_untouched()
    # A process that ends meanwhile is started again all the same: that needs no master.
    training.signal("worker-0", 9)
    training.recovers("worker-0")
    training.cluster.faults.start_master()
    eventually(lambda: training.ask("/v1/why")[1]["registered"], seconds=60, what="a master")
    assert training.framework_id() == known
    training.look()
    training.ends_right()


def test_a_new_master_whose_agents_return_late(training: ScheduledTraining) -> None:
    before = subscriptions(training)
    training.cluster.faults.lose_master(agents_return=False)
    subscribes_again(training, before)
    training.is_untouched()
    training.cluster.faults.return_agents()
    training.is_untouched()
    assert training.incidents() == []
    training.ends_right()


def test_a_framework_that_the_master_has_removed_is_replaced(training: ScheduledTraining) -> None:
    known = training.framework_id()
    body = f"frameworkId={known}".encode()
    with urllib.request.urlopen(f"http://{training.cluster.master}/teardown", body) as answer:
        assert answer.status == 200
    training.recovers(*training.gang, moved=training.gang)
    assert training.framework_id() != known
    assert "has been removed" in str(training.incidents())
    training.ends_right()


def test_the_master_answers_503_for_a_while(training: ScheduledTraining) -> None:
    before = subscriptions(training)
    training.cluster.faults.refuse(1.5)
    training.cluster.faults.close_streams()
    training.is_untouched()
    subscribes_again(training, before)
    training.cluster.faults.signal_task(training.task_id("worker-1"))
    training.recovers("worker-1", moved=("worker-1",))
    training.ends_right()


@pytest.mark.parametrize(
    "how",
    [
        "close_streams",
        pytest.param("close_streams_mid_record", marks=pytest.mark.soak),
        "half_open_streams",
    ],
)
def test_the_stream_of_events_breaks(training: ScheduledTraining, how: str) -> None:
    known, before = training.framework_id(), subscriptions(training)
    getattr(training.cluster.faults, how)()
    subscribes_again(training, before)
    training.is_untouched()
    assert training.framework_id() == known
    assert training.incidents() == []
    training.ends_right()
