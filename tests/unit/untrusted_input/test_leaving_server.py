"""A server that stops while a client connects to it."""

import gc
import socket
import sys
import threading

import pytest
from starlette.types import Receive, Scope, Send

from untrusted_input.asgi_server import AsgiServer

ROUNDS = 20


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def connect_until_it_is_gone(host: str, port: int) -> None:
    try:
        for _ in range(50):
            socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_client_that_connects_while_a_server_stops_leaves_no_socket_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_open: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", left_open.append)
    for _ in range(ROUNDS):
        server = AsgiServer("it", "127.0.0.1", 0, grace_seconds=1)
        host, _, port = server.bind().rpartition(":")
        server.serve(answer, "server")
        crowd = threading.Thread(target=connect_until_it_is_gone, args=(host, int(port)))
        crowd.start()
        server.stop()
        crowd.join()
    gc.collect()
    assert left_open == []
