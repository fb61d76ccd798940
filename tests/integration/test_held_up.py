"""Connections that ask for nothing, or too slowly, or for too much: no client waits for them."""

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from embedded_mesos import AgentConfig, EmbeddedCluster
from embedded_mesos.wire import http_server
from untrusted_input import bounded_connection
from untrusted_input.asgi_server import AsgiServer
from waiting import eventually

FEW = 8


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(body)(scope, receive, send)


async def _much(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/health":
        await PlainTextResponse("well")(scope, receive, send)
    else:
        size = 200 if scope["path"] == "/" else 1
        parts = (b"x" * (20_000_000 // size) for _ in range(size))
        await StreamingResponse(parts)(scope, receive, send)


@pytest.fixture
def much(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server whose answers are more than the kernel keeps for a client that reads none."""
    monkeypatch.setattr(bounded_connection, "MOST_CONNECTIONS", FEW)
    server = AsgiServer("it", "127.0.0.1", 0, grace_seconds=1)
    server.bind()
    server.serve(_much, "much")
    yield server.address
    server.stop()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(bounded_connection, "MOST_CONNECTIONS", FEW)
    server = AsgiServer("it", "127.0.0.1", 0, grace_seconds=1)
    server.bind()
    server.serve(_echo, "echo")
    yield server.address
    server.stop()


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setattr(http_server, "MOST_CONNECTIONS", FEW)
    agents = [AgentConfig(address="127.0.0.1", cpus=1, mem=64)]
    with EmbeddedCluster(agents, tmp_path, credentials={"me": "secret"}) as cluster:
        yield cluster.master


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def health(address: str, path: str = "/health") -> int:
    client = http.client.HTTPConnection(address, timeout=30)
    client.request("GET", path)
    try:
        return client.getresponse().status
    finally:
        client.close()


def is_well(address: str) -> bool:
    try:
        return health(address) == 200
    except ConnectionError:
        return False


@contextmanager
def idle(address: str, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connected(address)) for _ in range(count)]


def is_ended(connection: socket.socket) -> bool:
    """Wait for the other end, which says nothing more."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def is_refused(connection: socket.socket) -> bool:
    """Say whether the other end takes nothing any more; nothing is read."""
    try:
        connection.sendall(b"x")
    except ConnectionError:
        return True
    return False


def has_ended_while_dripping(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"x")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("server", ["api", "master"])
def test_a_request_is_answered_beside_many_silent_connections(
    server: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(server)
    with idle(address, 5 * FEW) as connections:
        assert health(address) == 200
        assert is_ended(connections[0]), "who has waited for longest goes"


def test_a_request_that_drips_ends_with_its_time(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "REQUEST_SECONDS", 0.5)
    with connected(api) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        connection.settimeout(0.02)
        eventually(lambda: has_ended_while_dripping(connection), seconds=30)


def test_the_next_request_of_a_connection_has_its_own_time(api: str) -> None:
    client = http.client.HTTPConnection(api, timeout=30)
    for _ in range(3):
        client.request("POST", "/", b"body")
        assert client.getresponse().read() == b"body"
    client.close()


def test_a_connection_may_rest_for_longer_than_a_request_may_take(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "REQUEST_SECONDS", 0.3)
    client = http.client.HTTPConnection(api, timeout=30)
    client.request("POST", "/", b"first")
    assert client.getresponse().read() == b"first"
    resting = client.sock
    with connected(api) as silent:
        assert is_ended(silent), "a later connection has run out of its time"
    client.request("POST", "/", b"second")
    assert client.getresponse().read() == b"second"
    assert client.sock is resting
    client.close()


def test_clients_that_rest_hold_no_place_of_others(api: str) -> None:
    with ExitStack() as stack:
        for _ in range(5 * FEW):
            client = stack.enter_context(closing(http.client.HTTPConnection(api, timeout=30)))
            client.request("POST", "/", b"x")
            client.getresponse().read()
        assert health(api) == 200


def test_a_client_that_takes_no_answer_holds_no_other_place(much: str) -> None:
    with ExitStack() as stack:
        for _ in range(5 * FEW):
            connection = stack.enter_context(connected(much))
            # The answer has begun: the connection waits for no request any more.
            with suppress(ConnectionError):
                connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                connection.recv(1)
        # As long as the kernel takes what is written, the server has not waited.
        soon = bounded_connection.REQUEST_SECONDS * 0.75
        eventually(lambda: is_well(much), seconds=soon)


def test_an_answer_that_is_not_taken_ends_with_its_time(
    much: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "REQUEST_SECONDS", 0.5)
    with connected(much) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        # More of a request is no sign that the answer is taken.
        eventually(lambda: is_refused(connection), seconds=30)


@pytest.mark.parametrize("path", ["/", "/in-one-piece"])
def test_an_answer_that_is_taken_slowly_is_given_whole(
    much: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    limit, began = 2.0, time.monotonic()
    monkeypatch.setattr(bounded_connection, "REQUEST_SECONDS", limit)
    client = http.client.HTTPConnection(much, timeout=30)
    client.request("GET", path)
    answer, read = client.getresponse(), 0
    while part := answer.read(1_000_000):
        read += len(part)
        # In all it takes several times as long as may pass with nothing taken.
        time.sleep(limit / 8)
    client.close()
    assert read == 20_000_000
    assert time.monotonic() - began > 2 * limit


def test_nothing_long_is_read_of_whom_the_master_does_not_know(master: str) -> None:
    with connected(master) as connection:
        length = http_server.MAX_STRANGERS_BODY_BYTES + 1
        connection.sendall(
            f"POST /api/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        assert connection.recv(12) == b"HTTP/1.1 413"


@pytest.mark.parametrize(
    "length",
    ["Content-Length: -1", "Content-Length: \xb2", "Transfer-Encoding: chunked\r\n\r\n-1"],
    ids=["negative", "no digit", "a negative chunk"],
)
def test_what_is_no_length_is_refused_and_nothing_is_read(master: str, length: str) -> None:
    with connected(master) as connection:
        head = f"POST /api/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}\r\n\r\n"
        connection.sendall(head.encode("latin-1"))
        # The other end of the connection stays open: a client that reads on waits for it.
        assert connection.recv(12) == b"HTTP/1.1 400"


def test_a_line_without_an_end_before_a_chunk_is_not_read(master: str) -> None:
    with connected(master) as connection:
        head = "POST /api/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + b"0" * 2000)
        assert connection.recv(12) == b"HTTP/1.1 400"


@pytest.mark.parametrize("server", ["api", "master"])
def test_headers_without_an_end_are_not_kept(server: str, request: pytest.FixtureRequest) -> None:
    with connected(request.getfixturevalue(server)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 70_000)
        assert connection.recv(10)[9:] in (b"4", b""), "refused, or cut off"


def test_what_a_stranger_can_repeat_is_written_seldom(
    master: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(20):
        with connected(master) as connection:
            # No URL: what reads it raises, before anybody is asked who he is.
            connection.sendall(b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert is_ended(connection)
    assert capfd.readouterr().err.count("Traceback") <= 1
