"""Where stock pymesos hammers masters our driver waits."""

import threading

import pytest

from dcos_tensorflow.mesos.stream import ReconnectBackoff

pytestmark = pytest.mark.usefixtures("real_back_off")

#: Full-jitter back-off from 0.5 s makes more than this in that time about as likely as a bit flip.
POLITE = 12
WHILE = 0.5


def subscribes_in_a_while(master, eventually):
    """Count, for a while."""
    eventually(lambda: master.subscribes)
    threading.Event().wait(WHILE)
    return len(master.subscribes)


@pytest.mark.parametrize("status", [503, 500, 429, 404])
def test_15_an_unready_master_is_not_hammered(status, master, stage, eventually):
    master.on_subscribe = lambda exchange: exchange.respond(status, b"not yet")
    driver = stage.hardened(master.address)
    count = subscribes_in_a_while(master, eventually)
    assert count <= POLITE
    assert not driver.sched.of("disconnected")


def test_16_a_stream_that_ends_at_once_is_not_hammered(master, stage, eventually):
    def brief(exchange):
        exchange.subscribe()
        exchange.close()

    master.on_subscribe = brief
    stage.hardened(master.address)
    count = subscribes_in_a_while(master, eventually)
    assert count <= POLITE


def test_17_a_removed_framework_does_not_subscribe_again(master, stage, eventually):
    def removed(exchange):
        exchange.begin_stream()
        exchange.event({"type": "ERROR", "error": {"message": "Framework has been removed"}})
        exchange.raw(b"0\r\n\r\n")
        exchange.close()

    master.on_subscribe = removed
    driver = stage.hardened(master.address, framework={"name": "t", "id": {"value": "old"}})
    eventually(lambda: driver.sched.of("error"))
    count = subscribes_in_a_while(master, eventually)
    assert count == 1
    assert driver.aborted
    assert driver.failure == "Framework has been removed"
    assert driver.sched.of("error") == [("Framework has been removed",)]


def test_18_of_two_schedulers_with_one_id_the_first_gives_way(master, stage, eventually):
    def failing_over(exchange):
        older = list(master.streams)
        master.streams.clear()
        exchange.subscribe()
        for stream in older:
            stream.event({"type": "ERROR", "error": {"message": "Framework failed over"}})
            stream.close()
        exchange.hold()

    master.on_subscribe = failing_over
    framework = {"name": "t", "id": {"value": "shared"}}
    first = stage.hardened(master.address, framework=dict(framework))
    eventually(lambda: first.connected)
    second = stage.hardened(master.address, framework=dict(framework))
    eventually(lambda: len(master.subscribes) >= 2)
    eventually(lambda: first.failure and second.connected)
    count = subscribes_in_a_while(master, eventually)
    assert count == 2
    assert first.failure == "Framework failed over"
    assert second.connected


def test_the_back_off_grows_to_its_maximum_and_starts_afresh_after_a_reset():
    backoff = ReconnectBackoff(0.5, 15.0, draw=lambda _low, high: high)
    assert [backoff.next_delay() for _ in range(7)] == [0.5, 1, 2, 4, 8, 15, 15]
    backoff.reset()
    assert backoff.next_delay() == 0.5


def test_a_redirect_loop_is_followed_three_times_at_once_and_then_slowly(
    masters, stage, eventually
):
    first, second = masters(), masters()
    first.on_subscribe = lambda e: e.respond(307, Location=f"//{second.address}/api/v1/scheduler")
    second.on_subscribe = lambda e: e.respond(307, Location=f"//{first.address}/api/v1/scheduler")
    stage.hardened(first.address)
    eventually(lambda: len(first.subscribes) + len(second.subscribes) >= 4)
    threading.Event().wait(WHILE)
    assert 4 <= len(first.subscribes) + len(second.subscribes) <= 4 + POLITE
