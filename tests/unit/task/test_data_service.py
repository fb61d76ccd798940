"""The way to a dispatcher that moves, and what is said of data workers that are lost."""

import socket
import threading

import pytest

from dcos_tensorflow.task.data_service import lost_workers
from dcos_tensorflow.task.data_service.forwarder import Forwarder
from waiting import eventually


class Greeter:
    """Says its name to whatever connects, and then what it hears."""

    def __init__(self, name):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._name = name
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.sendall(self._name)
            threading.Thread(target=self._echo, args=(client,), daemon=True).start()

    def _echo(self, client):
        with client:
            while content := client.recv(100):
                client.sendall(content)

    def close(self):
        self._listener.close()


@pytest.fixture
def forwarder():
    found = Forwarder(lambda line: None)
    yield found
    found.close()


@pytest.fixture
def greeters():
    found = Greeter(b"one"), Greeter(b"two")
    yield found
    for greeter in found:
        greeter.close()


def dial(forwarder):
    host, port = forwarder.address.split(":")
    client = socket.create_connection((host, int(port)), 10)
    client.settimeout(10)
    return client


def test_bytes_come_and_go_as_they_are(forwarder, greeters):
    forwarder.lead_to(greeters[0].address)
    with dial(forwarder) as client:
        assert client.recv(3) == b"one"
        client.sendall(b"\x00\xff")
        assert client.recv(2) == b"\x00\xff"


def test_what_was_connected_connects_anew_when_the_dispatcher_has_moved(forwarder, greeters):
    forwarder.lead_to(greeters[0].address)
    with dial(forwarder) as client:
        assert client.recv(3) == b"one"
        forwarder.lead_to(greeters[1].address)
        assert client.recv(3) == b""
    with dial(forwarder) as client:
        assert client.recv(3) == b"two"


def test_the_same_address_again_ends_no_connection(forwarder, greeters):
    forwarder.lead_to(greeters[0].address)
    with dial(forwarder) as client:
        assert client.recv(3) == b"one"
        forwarder.lead_to(greeters[0].address)
        client.sendall(b"still here")
        assert client.recv(10) == b"still here"


def test_while_there_is_no_dispatcher_a_connection_ends_at_once(forwarder):
    with dial(forwarder) as client:
        assert client.recv(1) == b""


def test_a_dispatcher_that_comes_later_is_found(forwarder, greeters):
    def greeting():
        with dial(forwarder) as client:
            return client.recv(3)

    assert greeting() == b""
    forwarder.lead_to(greeters[1].address)
    eventually(lambda: greeting() == b"two", seconds=10, what="the dispatcher")


class Dispatcher:
    """Answers as TensorFlow's does to a worker with two tasks: ``ask`` notes what it is told."""

    def __init__(self):
        self.told = []

    def ask(self, method, request):
        self.told.append((method.rpartition("/")[2], request))
        # WorkerHeartbeatResponse: new_tasks (1) with path (2), dataset_id (3), task_id (4).
        tasks = b"".join(
            b"\x0a" + bytes([len(task)]) + task
            for task in (b"\x12\x01p\x18\x05\x20\x07", b"\x18\x05\x20\xac\x02")
        )
        return tasks if method.endswith("WorkerHeartbeat") else b""


def test_of_a_lost_worker_all_that_it_was_given_is_done():
    dispatcher = Dispatcher()
    lost_workers._finish(dispatcher, "host:1")
    name = b"\x0a\x06host:1"
    done = b"\x12\x04\x08\x07\x10\x01" + b"\x12\x05\x08\xac\x02\x10\x01"
    assert dispatcher.told == [("WorkerHeartbeat", name), ("WorkerUpdate", name + done)]


@pytest.mark.parametrize("answer", [b"\xff" * 20, b"\x0a\xff\xff", b"\x0d1234", b""])
def test_an_answer_that_is_none_tells_of_no_worker(answer):
    assert not [address for address in lost_workers._workers(answer) if ":" in address]
