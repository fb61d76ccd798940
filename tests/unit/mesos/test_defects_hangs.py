"""Defects that make stock pymesos hang, or not notice, and their absence in the hardened driver.

13 (started before the masters' path exists in ZooKeeper) needs a ZooKeeper:
tests/integration/mesos/test_detector.py.
"""

import functools
import socket

import pytest

from dcos_tensorflow.mesos.address import Address, parse_masters
from dcos_tensorflow.mesos.calls import CallUnanswered
from dcos_tensorflow.mesos.detector import ZooKeeperDetector
from dcos_tensorflow.mesos.pymesos_import import import_pymesos
from scripted_master import BOTH

pymesos = import_pymesos()

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.soak
def test_6_the_time_out_of_a_call_is_a_day_with_stock(stage):
    assert stage.stock("127.0.0.1:1", start=False)._timeout == 86400


def test_6_the_time_out_of_a_call_is_what_was_given(stage):
    driver = stage.hardened("127.0.0.1:1", start=False, timeout=7.0)
    assert driver._connect(Address("127.0.0.1", 1)).timeout == 7.0


@BOTH
def test_7_an_unanswered_call_blocks_stop_with_stock_only(kind, master, stage, eventually):
    master.on_call = lambda exchange: exchange.hold()
    driver = stage.make(kind, master.address, timeout=60.0 if kind == "hardened" else 86400)
    eventually(lambda: driver.sched.of("registered"))
    stage.apart(driver.killTask, {"value": "t"})
    eventually(lambda: master.calls("KILL"))
    stopping = stage.apart(driver.stop)
    stopping.join(20 if kind == "hardened" else 0.5)
    assert stopping.is_alive() is (kind == "stock")


def test_7_an_unanswered_call_raises_in_time(master, stage, eventually):
    master.on_call = lambda exchange: exchange.hold()
    driver = stage.hardened(master.address, timeout=0.3)
    eventually(lambda: driver.sched.of("registered"))
    with pytest.raises(CallUnanswered, match="no answer in time"):
        driver.killTask({"value": "t"})
    assert driver.connected


@BOTH
def test_8_a_silent_version_endpoint_blocks_the_start_with_stock_only(
    kind, master, stage, stays, eventually
):
    master.on_version = lambda exchange: exchange.hold()
    driver = stage.make(kind, master.address)
    if kind == "stock":
        eventually(lambda: master.requests_of("/version"))
        assert stays(lambda: not master.subscribes, 0.5)
    else:
        eventually(lambda: driver.sched.of("registered"))
        assert not master.requests_of("/version")


@BOTH
def test_9_missing_heartbeats_are_not_noticed_by_stock_only(kind, master, stage, stays, eventually):
    def silent(exchange):
        exchange.subscribe(heartbeat=0.05)
        exchange.hold()

    master.on_subscribe = silent
    driver = stage.make(kind, master.address)
    eventually(lambda: driver.sched.of("registered"))
    if kind == "stock":
        assert stays(lambda: driver.connected and len(master.subscribes) == 1, 0.75)
    else:
        eventually(lambda: len(master.subscribes) > 1)
        eventually(lambda: driver.sched.of("disconnected"))


@BOTH
def test_10_an_unanswered_subscribe_is_waited_for_forever_by_stock_only(
    kind, master, stage, stays, eventually
):
    master.on_subscribe = lambda exchange: exchange.hold()
    stage.make(kind, master.address, timeout=0.3 if kind == "hardened" else 86400)
    eventually(lambda: master.subscribes)
    if kind == "stock":
        assert stays(lambda: len(master.subscribes) == 1, 0.75)
    else:
        eventually(lambda: len(master.subscribes) > 1)


@pytest.mark.soak
def test_10_stock_takes_a_connection_in_progress_for_established(black_hole):
    class Callback:
        def gen_request(self):
            return b""

        def on_close(self):
            pass

    connection = pymesos.process.Connection(black_hole, Callback())
    connection.handle_connect_event()
    assert connection.connected
    connection.close()


def test_10_a_master_that_answers_no_syn_is_passed_over(black_hole, master, stage, eventually):
    driver = stage.hardened(f"{black_hole},{master.address}", timeout=0.3)
    eventually(lambda: driver.sched.of("registered"))
    assert driver.master == master.address


@BOTH
@pytest.mark.parametrize(
    "garbage",
    [b"1f\r\nno length, but very much record\r\n", b"zz\r\n", b"6\r\n3\n{]}\n\r\n"],
    ids=["record without a length", "corrupt chunk size", "record that is no JSON"],
)
def test_11_after_garbage_stock_never_subscribes_again(
    kind, garbage, *, master, stage, stays, eventually
):
    driver = stage.make(kind, master.address, failover=True)
    eventually(lambda: driver.sched.of("registered"))
    master.streams[-1].raw(garbage)
    if kind == "stock":
        assert stays(lambda: len(master.subscribes) == 1, 0.5)
    else:
        eventually(lambda: len(driver.sched.of("reregistered")) == 1)


@BOTH
def test_12_system_exit_in_a_callback_leaves_a_dead_driver_with_stock_only(
    kind, master, stage, eventually
):
    driver = stage.make(kind, master.address, failover=True)

    def leave(*_args):
        raise SystemExit(1)

    driver.sched.on["slaveLost"] = leave
    master.event({"type": "FAILURE", "failure": {"agent_id": {"value": "a"}}})
    eventually(lambda: driver.sched.of("slaveLost"))
    if kind == "stock":
        eventually(lambda: not driver._io_thread.is_alive())
        assert driver.connected
        assert not driver.aborted
    else:
        master.event({"type": "FAILURE", "failure": {"agent_id": {"value": "b"}}})
        eventually(lambda: len(driver.sched.of("slaveLost")) == 2)


@pytest.fixture
def nowhere():
    """Give an address where nothing listens, and nothing else will while the test runs."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


@pytest.mark.soak
def test_14_stock_fails_to_start_while_zookeeper_is_down(nowhere, stage, eventually, monkeypatch):
    from pymesos.detector import ZKClient

    monkeypatch.setattr(ZKClient, "start", functools.partialmethod(ZKClient.start, 0.2))
    driver = stage.stock(f"zk://{nowhere}/mesos")
    eventually(lambda: stage.failures)
    assert type(stage.failures[0]).__name__ == "KazooTimeoutError"
    assert driver._io_thread.is_alive()


def test_14_a_start_while_zookeeper_is_down_waits_for_it(nowhere, stage, stays):
    driver = stage.hardened(f"zk://{nowhere}/mesos", start=False)
    driver.start()
    assert stays(lambda: not driver.aborted and not driver.failure, 0.5)


@pytest.mark.soak
def test_14_stock_drops_zookeeper_credentials(nowhere, stage, eventually):
    from pymesos.detector import MasterDetector

    detector = MasterDetector(f"user:password@{nowhere}/mesos", None)
    assert not detector.zk.auth_data
    detector.zk.close()


def test_14_zookeeper_credentials_are_used(nowhere):
    uri = parse_masters(f"zk://user:pass%40word@{nowhere}/mesos")
    client = ZooKeeperDetector(uri, print)._client()
    assert client.auth_data == {("digest", "user:pass@word")}
    client.close()
