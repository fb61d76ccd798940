"""What ends stock pymesos, or confuses it, our driver bears."""

import contextlib
import os
import resource
import threading

import pytest

from dcos_tensorflow.mesos.calls import CallRefused, NotConnected, NotLeading
from dcos_tensorflow.mesos.pymesos_import import import_pymesos

pymesos = import_pymesos()

OFFER = {"type": "OFFERS", "offers": {"offers": [{"id": {"value": "o"}}]}}
UPDATE = {"type": "UPDATE", "update": {"status": {"task_id": {"value": "t"}}}}


def test_27_the_reason_of_a_refusal_is_told(master, stage, eventually):
    def refuse(exchange):
        exchange.raw(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\n")
        threading.Event().wait(0.2)
        exchange.raw(b"who are you?")

    master.on_subscribe = refuse
    driver = stage.hardened(master.address)
    eventually(lambda: driver.sched.of("error"))
    assert driver.failure == "SUBSCRIBE refused with HTTP 401: who are you?"
    assert driver.aborted
    assert len(master.subscribes) == 1


@pytest.mark.parametrize("status", [400, 403, 405, 406, 415])
def test_27_a_judgement_on_the_call_is_final(status, master, stage, eventually):
    master.on_subscribe = lambda exchange: exchange.respond(status, b"not so")
    driver = stage.hardened(master.address)
    eventually(lambda: driver.sched.of("error"))
    assert driver.failure == f"SUBSCRIBE refused with HTTP {status}: not so"
    assert len(master.subscribes) == 1


@pytest.mark.parametrize(
    "status", [202, 302, 307, 404, 407, 408, 410, 421, 425, 429, 500, 502, 503, 504]
)
def test_27_what_a_master_says_before_it_is_ready_passes(status, master, stage):
    def recovering(exchange):
        if len(master.subscribes) == 1:
            exchange.respond(status)
        else:
            master.healthy(exchange)

    master.on_subscribe = recovering
    stage.registered(master.address)


def test_28_calls_succeed_on_connections_that_the_peer_closed(master, stage, eventually):
    def answer_and_close(exchange):
        exchange.respond()
        exchange.close()

    master.on_call = answer_and_close
    driver = stage.registered(master.address)
    for count in range(1, 5):
        driver.acceptOffers([{"value": "o"}], [{"type": "LAUNCH"}])
        eventually(lambda wanted=count: len(master.calls("ACCEPT")) == wanted)
        eventually(lambda least=count: master.closed_connections >= least)


def test_29_a_redirected_call_moves_the_driver_to_the_new_leader(masters, stage, eventually):
    old, new = masters(), masters()
    old.on_call = lambda exchange: exchange.respond(
        307, Location=f"//{new.address}/master/api/v1/scheduler"
    )
    driver = stage.registered(old.address)
    with pytest.raises(NotLeading):
        driver.reviveOffers()
    eventually(lambda: driver.sched.of("reregistered"))
    assert driver.master == new.address


def test_30_a_name_that_does_not_resolve_is_tried_again(master, stage, stays, eventually):
    driver = stage.hardened("master.invalid:5050")
    assert stays(lambda: not driver.aborted, 0.5)
    driver.change_master(master.address)
    eventually(lambda: driver.sched.of("registered"), seconds=30)


@pytest.fixture
def many_open_files():
    """Hold so many descriptors that any new one is beyond what select() can take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"the limit of open files is {hard}, 2048 are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    with contextlib.ExitStack() as stack:
        while True:
            held = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, held)
            if held > 1100:
                break
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_31_more_than_1024_open_files_do_no_harm(many_open_files, master, stage):
    driver = stage.registered(master.address)
    driver.reviveOffers()
    driver.reviveOffers()
    assert len(master.calls("REVIVE")) == 2


def test_32_a_master_may_have_an_ipv6_address(master, stage):
    address = f"[::ffff:127.0.0.1]:{master.port}"
    driver = stage.registered(address)
    driver.reviveOffers()
    assert driver.master == address


def test_32_a_secret_may_go_beyond_ascii(master, stage, eventually):
    stage.hardened(master.address, principal="tf", secret="gehüim")
    eventually(lambda: master.subscribes)
    sent = master.requests_of("SUBSCRIBE")[0].headers["authorization"]
    assert sent == "Basic dGY6Z2Vow7xpbQ=="


def test_33_a_stream_needs_no_chunks(master, stage):
    def unchunked(exchange):
        exchange.raw(b"HTTP/1.0 200 OK\r\nMesos-Stream-Id: s\r\n\r\n")
        exchange.chunk = exchange.raw
        exchange.subscribed()
        exchange.hold()

    master.on_subscribe = unchunked
    driver = stage.registered(master.address)
    driver.reviveOffers()


def test_34_the_driver_is_connected_when_it_is_subscribed_and_not_before(master, stage, eventually):
    def headers_only(exchange):
        exchange.begin_stream()
        exchange.hold()

    master.on_subscribe = headers_only
    driver = stage.hardened(master.address)
    eventually(lambda: master.subscribes)
    with pytest.raises(NotConnected):
        driver.reviveOffers()
    assert not driver.connected


def test_34_a_call_without_connection_is_an_error(stage):
    driver = stage.hardened("127.0.0.1:1", start=False)
    with pytest.raises(NotConnected):
        driver.killTask({"value": "t"})


def test_35_a_blocking_callback_does_not_stop_the_subscription(master, stage, eventually):
    driver = stage.hardened(master.address, failover=True)
    release = threading.Event()
    driver.sched.on["statusUpdate"] = lambda *_args: release.wait(10)
    master.event(UPDATE)
    eventually(lambda: driver.sched.of("statusUpdate"))
    master.streams[-1].close()
    try:
        eventually(lambda: len(master.subscribes) == 2)
    finally:
        release.set()


def test_35_offers_of_an_ended_subscription_are_not_handed_out(master, stage, eventually):
    driver = stage.hardened(master.address)
    release = threading.Event()
    driver.sched.on["statusUpdate"] = lambda *_args: release.wait(10)
    master.event(UPDATE)
    eventually(lambda: driver.sched.of("statusUpdate"))
    master.event(OFFER)
    master.streams[-1].close()
    eventually(lambda: len(master.subscribes) == 2)
    release.set()
    eventually(lambda: driver.sched.of("reregistered"))
    assert not driver.sched.of("resourceOffers")
    master.event(OFFER)
    eventually(lambda: driver.sched.of("resourceOffers"))


def test_a_refused_call_tells_status_and_text(master, stage):
    master.on_call = lambda exchange: exchange.respond(400, b"Framework cannot be found")
    driver = stage.registered(master.address)
    with pytest.raises(CallRefused, match="HTTP 400: Framework cannot be found") as caught:
        driver.reviveOffers()
    assert not caught.value.ambiguous
