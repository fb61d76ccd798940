"""A runner sees which peers' machines it cannot reach, and why, whatever listens there."""

import socket
import threading
from collections.abc import Iterator

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.network.peers import ReachCheck, unreachable
from dcos_tensorflow.task.report import listening
from free_ports import free_port
from waiting import eventually


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that answers nothing: as many wait there as may."""
    waiting = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.2", 0))
        listener.listen(0)
        for _ in range(3):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(listener.getsockname())
        yield f"127.0.0.2:{listener.getsockname()[1]}"
    for each in waiting:
        each.close()


def test_a_port_that_refuses_does_so_until_a_server_listens() -> None:
    address = f"127.0.0.3:{free_port()}"
    assert unreachable([address]) == {address: contract.UNREACHABLE_REFUSED}
    host, _, port = address.rpartition(":")
    with socket.create_server((host, int(port))):
        assert unreachable([address]) == {}


def test_a_port_that_has_refused_for_long_is_no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dcos_tensorflow.task.network.peers.REACH_MOST_SECONDS", 0.5)
    monkeypatch.setattr("dcos_tensorflow.task.network.peers.REACH_SELDOM_SECONDS", 0.1)
    address = f"127.0.0.3:{free_port()}"
    told: list[object] = []
    check = ReachCheck([address], lambda: told.append(check.found), patience=0.1, pause=0.1)
    eventually(lambda: len(told) == 2, what="that it is told, and taken back")
    assert told == [((address, contract.UNREACHABLE_REFUSED),), ()]


def test_a_machine_that_drops_packets_gives_no_answer(silent: str) -> None:
    assert unreachable([silent], 0.2) == {silent: contract.UNREACHABLE_SILENT}


@pytest.mark.parametrize("address", ["worker-0.mnist.invalid:2222", "no port", "a..b:1"])
def test_a_name_that_means_nothing_is_unknown(address: str) -> None:
    assert unreachable([address]) == {address: contract.UNREACHABLE_NAME}


def test_an_address_that_no_way_leads_to_has_no_route() -> None:
    # Of a link, and it is not said of which one.
    assert unreachable(["[fe80::1]:80"], 0.2) == {"[fe80::1]:80": contract.UNREACHABLE_ROUTE}


def test_two_hundred_that_give_no_answer_are_dialled_at_once(silent: str) -> None:
    assert len(unreachable([f"{silent}{' ' * n}" for n in range(200)], 0.5)) == 200


def test_what_was_not_reached_is_told_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [{"a:1": "no answer"}, {"a:1": "no answer"}, {}]
    monkeypatch.setattr("dcos_tensorflow.task.network.peers.unreachable", lambda _: answers.pop(0))
    monkeypatch.setattr("dcos_tensorflow.task.network.peers.REACH_SELDOM_SECONDS", 0.0)
    looks_left: list[int] = []
    check = ReachCheck(["a:1"], lambda: looks_left.append(len(answers)), patience=0.0, pause=0.0)
    eventually(lambda: len(looks_left) == 2, what="both")
    assert looks_left == [2, 0]
    assert check.found == ()


def test_a_peer_that_is_reached_in_time_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, done = [{"a:1": "unknown name"}, {}], threading.Event()

    def look(_: object) -> dict[str, str]:
        found = answers.pop(0)
        if not answers:
            done.set()
        return found

    monkeypatch.setattr("dcos_tensorflow.task.network.peers.unreachable", look)
    check = ReachCheck(["a:1"], lambda: pytest.fail("it was told"), patience=60.0, pause=0.0)
    assert done.wait(30)
    assert check.found == ()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_runner_listens_by_both_protocols(host: str) -> None:
    if host == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("this kernel has no IPv6")
    with listening.listen(free_port()) as listener:
        socket.create_connection((host, listener.getsockname()[1]), 10).close()
