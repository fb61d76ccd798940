"""What makes stock pymesos hang, or goes unnoticed there, our driver notices.

13 (started before the masters' path exists in ZooKeeper) needs a ZooKeeper:
tests/integration/mesos/test_detector.py.
"""

import socket

import pytest

from dcos_tensorflow.mesos.address import Address, parse_masters
from dcos_tensorflow.mesos.detector import ZooKeeperDetector
from dcos_tensorflow.mesos.pymesos_import import import_pymesos

pymesos = import_pymesos()


def test_6_the_time_out_of_a_call_is_what_was_given(stage):
    driver = stage.hardened("127.0.0.1:1", start=False, timeout=7.0)
    assert driver._connect(Address("127.0.0.1", 1)).timeout == 7.0


def test_7_an_unanswered_call_does_not_block_stop(master, stage, eventually):
    master.on_call = lambda exchange: exchange.hold()
    driver = stage.registered(master.address, timeout=60.0)
    stage.apart(driver.killTask, {"value": "t"})
    eventually(lambda: master.calls("KILL"))
    stopping = stage.apart(driver.stop)
    stopping.join(20)
    assert not stopping.is_alive()


def test_8_a_silent_version_endpoint_does_not_block_the_start(master, stage):
    master.on_version = lambda exchange: exchange.hold()
    stage.registered(master.address)
    assert not master.requests_of("/version")


def test_9_missing_heartbeats_are_noticed(master, stage, eventually, caplog):
    def silent(exchange):
        exchange.subscribe(heartbeat=0.05)
        exchange.hold()

    master.on_subscribe = silent
    driver = stage.registered(master.address)
    eventually(lambda: len(master.subscribes) > 1)
    eventually(lambda: driver.sched.of("disconnected"))
    assert "no sign of life" in caplog.text


def test_10_an_unanswered_subscribe_is_tried_again(master, stage, eventually):
    master.on_subscribe = lambda exchange: exchange.hold()
    stage.hardened(master.address, timeout=0.3)
    eventually(lambda: master.subscribes)
    eventually(lambda: len(master.subscribes) > 1)


def test_10_a_master_that_answers_no_syn_is_passed_over(black_hole, master, stage):
    driver = stage.registered(f"{black_hole},{master.address}", timeout=0.3)
    assert driver.master == master.address


@pytest.mark.parametrize(
    "garbage",
    [b"1f\r\nno length, but very much record\r\n", b"zz\r\n", b"6\r\n3\n{]}\n\r\n"],
    ids=["record without a length", "corrupt chunk size", "record that is no JSON"],
)
def test_11_after_garbage_the_driver_subscribes_again(garbage, *, master, stage, eventually):
    driver = stage.registered(master.address, failover=True)
    master.streams[-1].raw(garbage)
    eventually(lambda: len(driver.sched.of("reregistered")) == 1)


def test_12_system_exit_in_a_callback_leaves_the_driver_alive(master, stage, eventually):
    driver = stage.hardened(master.address, failover=True)

    def leave(*_args):
        raise SystemExit(1)

    driver.sched.on["slaveLost"] = leave
    master.event({"type": "FAILURE", "failure": {"agent_id": {"value": "a"}}})
    eventually(lambda: driver.sched.of("slaveLost"))
    master.event({"type": "FAILURE", "failure": {"agent_id": {"value": "b"}}})
    eventually(lambda: len(driver.sched.of("slaveLost")) == 2)


@pytest.fixture
def nowhere():
    """Give an address where nothing listens, and nothing else will while the test runs."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


def test_14_a_start_while_zookeeper_is_down_waits_for_it(nowhere, stage, stays):
    driver = stage.hardened(f"zk://{nowhere}/mesos", start=False)
    driver.start()
    assert stays(lambda: not driver.aborted and not driver.failure, 0.5)


def test_14_zookeeper_credentials_are_used(nowhere):
    uri = parse_masters(f"zk://user:pass%40word@{nowhere}/mesos")
    client = ZooKeeperDetector(uri, print)._client()
    assert client.auth_data == {("digest", "user:pass@word")}
    client.close()
