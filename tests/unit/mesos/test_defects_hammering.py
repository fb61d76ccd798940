"""Defects that make stock pymesos hammer masters, and their absence in the hardened driver."""

import threading

import pytest

from dcos_tensorflow.mesos.stream import Backoff
from scripted_master import BOTH

pytestmark = [
    pytest.mark.usefixtures("real_back_off"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

#: Full-jitter back-off from 0.5 s makes more than this in that time about as likely as a bit flip.
POLITE = 12
WHILE = 0.5
#: Nothing that backs off comes to this soon.
RUDE = 30


def subscribes_in_a_while(master, eventually, kind):
    """Count, for a while; stock may take until it was rude enough."""
    eventually(lambda: master.subscribes)
    if kind == "stock":
        eventually(lambda: len(master.subscribes) > RUDE)
    else:
        threading.Event().wait(WHILE)
    return len(master.subscribes)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        pytest.param("stock", 503, marks=pytest.mark.soak),
        ("hardened", 503),
        ("hardened", 500),
        ("hardened", 429),
    ],
)
def test_15_an_unready_master_is_hammered_by_stock_only(kind, status, master, stage, eventually):
    master.on_subscribe = lambda exchange: exchange.respond(status, b"not yet")
    driver = stage.make(kind, master.address)
    count = subscribes_in_a_while(master, eventually, kind)
    assert count > RUDE if kind == "stock" else count <= POLITE
    assert bool(driver.sched.of("disconnected")) is (kind == "stock")


@BOTH
def test_16_a_stream_that_ends_at_once_is_hammered_by_stock_only(kind, master, stage, eventually):
    def brief(exchange):
        exchange.subscribe()
        exchange.close()

    master.on_subscribe = brief
    stage.make(kind, master.address)
    count = subscribes_in_a_while(master, eventually, kind)
    assert count > RUDE if kind == "stock" else count <= POLITE


@BOTH
def test_17_a_removed_framework_subscribes_again_and_again_with_stock_only(
    kind, master, stage, eventually
):
    def removed(exchange):
        exchange.begin_stream()
        exchange.event({"type": "ERROR", "error": {"message": "Framework has been removed"}})
        exchange.raw(b"0\r\n\r\n")
        exchange.close()

    master.on_subscribe = removed
    driver = stage.make(kind, master.address, framework={"name": "t", "id": {"value": "old"}})
    if kind == "hardened":
        eventually(lambda: driver.sched.of("error"))
    count = subscribes_in_a_while(master, eventually, kind)
    if kind == "stock":
        assert count > RUDE
        assert not driver.aborted
    else:
        assert count == 1
        assert driver.aborted
        assert driver.failure == "Framework has been removed"
        assert driver.sched.of("error") == [("Framework has been removed",)]


@BOTH
def test_18_two_schedulers_with_one_id_take_turns_with_stock_only(kind, master, stage, eventually):
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
    first = stage.make(kind, master.address, framework=dict(framework))
    eventually(lambda: first.connected)
    second = stage.make(kind, master.address, framework=dict(framework))
    eventually(lambda: len(master.subscribes) >= 2)
    if kind == "hardened":
        eventually(lambda: first.failure and second.connected)
    count = subscribes_in_a_while(master, eventually, kind)
    if kind == "stock":
        assert count > RUDE
    else:
        assert count == 2
        assert first.failure == "Framework failed over"
        assert second.connected


def test_the_back_off_grows_to_its_maximum_and_starts_afresh_after_a_reset(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda _low, high: high)
    backoff = Backoff(0.5, 15.0)
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
