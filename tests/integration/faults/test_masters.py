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


def test_the_master_is_killed_and_another_leads(shared: ScheduledTraining) -> None:
    known, before = shared.framework_id(), subscriptions(shared)
    shared.cluster.faults.lose_master()
    subscribes_again(shared, before)
    shared.is_untouched()
    assert shared.framework_id() == known
    assert shared.incidents() == []


def test_there_is_no_master_for_a_while(shared: ScheduledTraining) -> None:
    known = shared.framework_id()
    shared.cluster.faults.stop_master()
    eventually(lambda: not shared.ask("/v1/why")[1]["registered"], what="that it notices")
    shared.is_untouched()
    # A process that ends meanwhile is started again all the same: that needs no master.
    shared.signal("worker-0", 9)
    shared.recovers("worker-0")
    shared.cluster.faults.start_master()
    eventually(lambda: shared.ask("/v1/why")[1]["registered"], seconds=60, what="a master")
    assert shared.framework_id() == known
    shared.look()


def test_a_new_master_whose_agents_return_late(shared: ScheduledTraining) -> None:
    before = subscriptions(shared)
    shared.cluster.faults.lose_master(agents_return=False)
    subscribes_again(shared, before)
    shared.is_untouched()
    shared.cluster.faults.return_agents()
    shared.is_untouched()
    assert shared.incidents() == []


def test_a_framework_that_the_master_has_removed_is_replaced(shared: ScheduledTraining) -> None:
    known = shared.framework_id()
    body = f"frameworkId={known}".encode()
    with urllib.request.urlopen(f"http://{shared.cluster.master}/teardown", body) as answer:
        assert answer.status == 200
    shared.recovers(*shared.gang, moved=shared.gang)
    assert shared.framework_id() != known
    assert "has been removed" in str(shared.incidents())


def test_the_master_answers_503_for_a_while(shared: ScheduledTraining) -> None:
    before = subscriptions(shared)
    shared.cluster.faults.refuse(1.5)
    shared.cluster.faults.close_streams()
    shared.is_untouched()
    subscribes_again(shared, before)
    shared.cluster.faults.signal_task(shared.task_id("worker-1"))
    shared.recovers("worker-1", moved=("worker-1",))


@pytest.mark.parametrize(
    "how",
    [
        "close_streams",
        pytest.param("close_streams_mid_record", marks=pytest.mark.soak),
        "half_open_streams",
    ],
)
def test_the_stream_of_events_breaks(shared: ScheduledTraining, how: str) -> None:
    known, before = shared.framework_id(), subscriptions(shared)
    getattr(shared.cluster.faults, how)()
    subscribes_again(shared, before)
    shared.is_untouched()
    assert shared.framework_id() == known
    assert shared.incidents() == []
