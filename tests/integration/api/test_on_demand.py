"""The API of which only the socket is there until somebody asks."""

from __future__ import annotations

import http.client
import socket
import threading
from contextlib import closing
from typing import Any

import pytest

from dcos_tensorflow.api.on_demand import ApiOnDemand
from dcos_tensorflow.api.server import ApiServer, ServerNotStarted

DEADLINE_SECONDS = 10.0


async def application(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


class Served:
    """Serves ``application``, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, listening: socket.socket) -> ApiServer:
        self.times += 1
        server = ApiServer(application)
        server.start_at(listening)
        return server


def ask(address: str) -> int:
    return asked(address)[0]


def asked(address: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(address, timeout=DEADLINE_SECONDS)) as connection:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("api-")]


def test_whoever_asks_first_is_answered() -> None:
    served = Served()
    api = ApiOnDemand(served)
    address = api.start()
    assert api.address == address
    assert served.times == 0
    assert [ask(address) for _ in range(3)] == [204] * 3
    assert served.times == 1
    api.stop()
    assert threads() == []
    with pytest.raises(ConnectionRefusedError):
        ask(address)


def test_what_nobody_has_asked_is_never_made() -> None:
    served = Served()
    api = ApiOnDemand(served)
    address = api.start()
    api.stop()
    assert served.times == 0
    assert threads() == []
    with pytest.raises(ConnectionRefusedError):
        ask(address)


def test_at_once_it_is_made_before_anybody_asks() -> None:
    served = Served()
    api = ApiOnDemand(served, at_once=True)
    address = api.start()
    assert served.times == 1
    assert ask(address) == 204
    api.stop()


def test_a_taken_port_is_named_before_anybody_asks() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        api = ApiOnDemand(Served(), port=taken.getsockname()[1])
        with pytest.raises(ServerNotStarted, match="Address already in use"):
            api.start()
        api.stop()


def test_who_asks_for_what_cannot_be_made_is_told_why(caplog: pytest.LogCaptureFixture) -> None:
    def fails(listening: socket.socket) -> ApiServer:
        raise ServerNotStarted("there is no application")

    api = ApiOnDemand(fails)
    address = api.start()
    refusal = (500, "the API cannot be served: there is no application\n")
    assert [asked(address) for _ in range(2)] == [refusal] * 2
    assert "there is no application" in caplog.text
    api.stop()


def test_stopping_what_never_started_is_harmless() -> None:
    ApiOnDemand(Served()).stop()
