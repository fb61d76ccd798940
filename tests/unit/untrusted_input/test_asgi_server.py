"""A server of ours: what each answer carries, and a stop while a client connects."""

import gc
import http.client
import socket
import sys
import threading
import time
from contextlib import closing
from email.utils import parsedate_to_datetime

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


def test_each_answer_of_one_connection_carries_the_time_at_which_it_was_given() -> None:
    server = AsgiServer("it", "127.0.0.1", 0, grace_seconds=1)
    with closing(http.client.HTTPConnection(server.bind(), timeout=30)) as client:
        server.serve(answer, "server")
        try:
            for _ in range(2):
                before = int(time.time())
                client.request("GET", "/")
                response = client.getresponse()
                response.read()
                given = parsedate_to_datetime(response.headers["Date"]).timestamp()
                assert before <= given <= time.time()
                wait_for_another_second(given)
        finally:
            client.close()
            server.stop()


def wait_for_another_second(one: float) -> None:
    while time.time() < one + 1:
        time.sleep(0.05)
