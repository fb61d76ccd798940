"""The API over real sockets: started, asked, stopped, and started where it can not be."""

import http.client
import json
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer, ServerNotStarted
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from samples.state_source import Source
from samples.states import a_state, gang, running

DEADLINE_SECONDS = 10.0


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path, running())


@pytest.fixture
def address(source: Source) -> Iterator[str]:
    server = ApiServer(create_app(source))
    yield server.start()
    server.stop()


Answer = tuple[int, dict[str, str], bytes]


def ask(address: str, path: str, method: str = "GET") -> Answer:
    connection = http.client.HTTPConnection(address, timeout=DEADLINE_SECONDS)
    with closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


def raw(address: str, text: bytes) -> bytes:
    """Return everything that the server sends before it closes the connection."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), DEADLINE_SECONDS) as connection:
        connection.sendall(text)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_it_answers_at_the_address_that_start_returns(address: str) -> None:
    status, headers, body = ask(address, "/v1/plans/deploy")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["status"] == "COMPLETE"


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (204, a_state()),
        (205, a_state(JobPhase.STARTING, gang(), job={"deployed": True})),
        (318, a_state(registered=False)),
        (200, running()),
    ],
)
def test_after_every_health_number_the_connection_serves_on(
    address: str, source: Source, number: int, state: ServiceState
) -> None:
    source.current = state
    connection = http.client.HTTPConnection(address, timeout=DEADLINE_SECONDS)
    with closing(connection):
        found = []
        for path in ("/v1/health", "/v1/plans"):
            connection.request("GET", path)
            answer = connection.getresponse()
            found.append((answer.status, answer.read()))
    assert found[0][0] == number
    assert found[1] == (200, b'["deploy", "recovery"]')


def test_an_artifact_comes_over_whole(address: str, source: Source) -> None:
    content = bytes(range(256)) * 8192
    (source.directory / "job-1f.tar.gz").write_bytes(content)
    status, headers, body = ask(address, "/v1/artifacts/job-1f.tar.gz")
    assert (status, body) == (200, content)
    assert "content-encoding" not in headers


def test_what_is_no_http_is_refused(address: str) -> None:
    assert raw(address, b"\x00\x01\x02\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert ask(address, "/v1/plans")[0] == 200


def test_many_clients_at_once_all_get_their_answer(address: str) -> None:
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(ask(address, "/v1/pod/status")[0]))
        for _ in range(30)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
    assert statuses == [200] * 30


def test_a_taken_port_is_named(address: str, source: Source) -> None:
    port = int(address.rsplit(":", 1)[1])
    second = ApiServer(create_app(source), port=port)
    with pytest.raises(ServerNotStarted, match=f"127.0.0.1:{port}: Address already in use"):
        second.start()
    second.stop()


def test_an_address_that_is_none_is_named(source: Source) -> None:
    # Longer than a DNS label may be: found wrong without asking any name server.
    host = "x" * 64
    with pytest.raises(ServerNotStarted, match=f"can not listen on {host}"):
        ApiServer(create_app(source), host=host).start()


def test_a_stopped_server_gives_its_port_back(source: Source) -> None:
    first = ApiServer(create_app(source))
    port = int(first.start().rsplit(":", 1)[1])
    first.stop()
    second = ApiServer(create_app(source), port=port)
    try:
        assert ask(second.start(), "/v1/plans")[0] == 200
    finally:
        second.stop()


def test_it_stops_while_a_client_keeps_its_connection_open(source: Source) -> None:
    server = ApiServer(create_app(source))
    connection = http.client.HTTPConnection(server.start(), timeout=DEADLINE_SECONDS)
    with closing(connection):
        connection.request("GET", "/v1/plans")
        connection.getresponse().read()
        server.stop()

        assert [t.name for t in threading.enumerate() if t.name == "api-server"] == []


def test_stopping_what_never_started_is_harmless(source: Source) -> None:
    ApiServer(create_app(source)).stop()


def test_signal_handlers_are_left_alone(source: Source) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    server = ApiServer(create_app(source))
    server.start()
    during = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    server.stop()
    assert during == before


def test_nothing_is_logged_in_ordinary_use(
    source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        server = ApiServer(create_app(source))
        address = server.start()
        ask(address, "/v1/plans")
        ask(address, "/v1/nosuch")
        server.stop()
    assert caplog.records == []
