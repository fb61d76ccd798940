"""Defects of stock pymesos in robustness, and their absence in the hardened driver."""

import contextlib
import os
import resource
import threading

import pytest

from dcos_tensorflow.mesos.calls import CallRefused, NotConnected, NotLeading
from dcos_tensorflow.mesos.pymesos_import import import_pymesos
from scripted_master import BOTH

pymesos = import_pymesos()

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

OFFER = {"type": "OFFERS", "offers": {"offers": [{"id": {"value": "o"}}]}}
UPDATE = {"type": "UPDATE", "update": {"status": {"task_id": {"value": "t"}}}}


def registered(driver, eventually):
    eventually(lambda: driver.sched.of("registered"))
    return driver


@BOTH
def test_27_the_reason_of_a_refusal_is_lost_with_stock_only(kind, master, stage, eventually):
    def refuse(exchange):
        exchange.raw(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\n")
        threading.Event().wait(0.2)
        exchange.raw(b"who are you?")

    master.on_subscribe = refuse
    driver = stage.make(kind, master.address)
    if kind == "stock":
        eventually(lambda: stage.interrupts)
        assert isinstance(pymesos.process._exc_info[1], TypeError)
    else:
        eventually(lambda: driver.sched.of("error"))
        assert driver.failure == "SUBSCRIBE refused with HTTP 401: who are you?"
        assert driver.aborted
        assert len(master.subscribes) == 1


@BOTH
@pytest.mark.parametrize("status", [500, 502, 504])
def test_27_a_passing_server_error_ends_stock_only(kind, status, master, stage, eventually):
    def recovering(exchange):
        if len(master.subscribes) == 1:
            exchange.respond(status)
        else:
            master.healthy(exchange)

    master.on_subscribe = recovering
    driver = stage.make(kind, master.address)
    if kind == "stock":
        eventually(lambda: driver.aborted and stage.interrupts)
    else:
        registered(driver, eventually)


@BOTH
def test_28_calls_fail_on_connections_that_the_peer_closed_with_stock_only(
    kind, master, stage, eventually
):
    def answer_and_close(exchange):
        exchange.respond()
        exchange.close()

    master.on_call = answer_and_close
    driver = registered(stage.make(kind, master.address), eventually)
    failed = 0
    for count in range(1, 5):
        try:
            driver.acceptOffers([{"value": "o"}], [{"type": "LAUNCH"}])
        except OSError:
            failed += 1
        eventually(lambda wanted=count - failed: len(master.calls("ACCEPT")) == wanted)
        already = 1 if kind == "stock" else 0
        eventually(lambda least=count - failed + already: master.closed_connections >= least)
    assert (failed > 0) is (kind == "stock")


@BOTH
def test_29_a_redirected_call_does_not_move_stock_to_the_new_leader(
    kind, masters, stage, stays, eventually
):
    old, new = masters(), masters()
    old.on_call = lambda exchange: exchange.respond(
        307, Location=f"//{new.address}/master/api/v1/scheduler"
    )
    driver = registered(stage.make(kind, old.address), eventually)
    with pytest.raises(RuntimeError if kind == "stock" else NotLeading):
        driver.reviveOffers()
    if kind == "stock":
        assert stays(lambda: not new.subscribes, 0.5)
    else:
        eventually(lambda: driver.sched.of("reregistered"))
        assert driver.master == new.address


@BOTH
def test_30_a_name_that_does_not_resolve_ends_stock_only(kind, master, stage, stays, eventually):
    driver = stage.make(kind, "master.invalid:5050")
    if kind == "stock":
        eventually(lambda: driver.aborted and stage.interrupts, seconds=30)
    else:
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


@BOTH
def test_31_more_than_1024_open_files_end_stock_only(
    kind, many_open_files, master, stage, eventually
):
    driver = stage.make(kind, master.address)
    if kind == "stock":
        eventually(lambda: driver.aborted and stage.interrupts)
    else:
        registered(driver, eventually).reviveOffers()
        driver.reviveOffers()
        assert len(master.calls("REVIVE")) == 2


@BOTH
def test_32_stock_cannot_read_an_ipv6_master(kind, master, stage, eventually):
    address = f"[::ffff:127.0.0.1]:{master.port}"
    driver = stage.make(kind, address)
    if kind == "stock":
        eventually(lambda: stage.failures)
        assert isinstance(stage.failures[0], ValueError)
    else:
        registered(driver, eventually).reviveOffers()
        assert driver.master == address


@BOTH
def test_32_stock_cannot_take_a_secret_beyond_ascii(kind, master, stage, eventually):
    if kind == "stock":
        with pytest.raises(UnicodeEncodeError):
            stage.stock(master.address, principal="tf", secret="gehüim")
    else:
        stage.hardened(master.address, principal="tf", secret="gehüim")
        eventually(lambda: master.subscribes)
        sent = master.requests_of("SUBSCRIBE")[0].headers["authorization"]
        assert sent == "Basic dGY6Z2Vow7xpbQ=="


@BOTH
def test_33_a_stream_without_chunks_ends_stock_only(kind, master, stage, eventually):
    def unchunked(exchange):
        exchange.raw(b"HTTP/1.0 200 OK\r\nMesos-Stream-Id: s\r\n\r\n")
        exchange.chunk = exchange.raw
        exchange.subscribed()
        exchange.hold()

    master.on_subscribe = unchunked
    driver = stage.make(kind, master.address)
    if kind == "stock":
        eventually(lambda: driver.aborted and stage.interrupts)
    else:
        registered(driver, eventually).reviveOffers()


@BOTH
def test_34_stock_says_connected_before_it_is_subscribed(kind, master, stage, eventually):
    def headers_only(exchange):
        exchange.begin_stream()
        exchange.hold()

    master.on_subscribe = headers_only
    driver = stage.make(kind, master.address)
    eventually(lambda: master.subscribes)
    if kind == "stock":
        eventually(lambda: driver.connected)
    with pytest.raises(AssertionError if kind == "stock" else NotConnected):
        driver.reviveOffers()
    assert driver.connected is (kind == "stock")


@BOTH
def test_34_a_call_without_connection_is_dropped_silently_by_stock_only(kind, stage):
    driver = stage.make(kind, "127.0.0.1:1", start=False)
    if kind == "stock":
        assert driver.killTask({"value": "t"}) is None
    else:
        with pytest.raises(NotConnected):
            driver.killTask({"value": "t"})


@BOTH
def test_35_a_blocking_callback_stops_the_subscription_with_stock_only(
    kind, master, stage, stays, eventually
):
    driver = stage.make(kind, master.address, failover=True)
    release = threading.Event()
    driver.sched.on["statusUpdate"] = lambda *_args: release.wait(10)
    master.event(UPDATE)
    eventually(lambda: driver.sched.of("statusUpdate"))
    master.streams[-1].close()
    try:
        if kind == "stock":
            assert stays(lambda: len(master.subscribes) == 1, 0.7)
        else:
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


@BOTH
def test_37_a_scheduler_without_heartbeat_method_ends_stock_only(kind, master, stage, eventually):
    class Minimal:
        subscriptions = 0

        def registered(self, *_args):
            self.subscriptions += 1

        def disconnected(self, *_args):
            pass

    scheduler = Minimal()
    driver = stage.make(kind, master.address, sched=scheduler)
    eventually(lambda: scheduler.subscriptions)
    if kind == "stock":
        eventually(lambda: driver.aborted and stage.interrupts)
    else:
        driver.reviveOffers()
        assert not driver.aborted


def test_a_refused_call_tells_status_and_text(master, stage, eventually):
    master.on_call = lambda exchange: exchange.respond(400, b"Framework cannot be found")
    driver = registered(stage.hardened(master.address), eventually)
    with pytest.raises(CallRefused, match="HTTP 400: Framework cannot be found") as caught:
        driver.reviveOffers()
    assert not caught.value.ambiguous
