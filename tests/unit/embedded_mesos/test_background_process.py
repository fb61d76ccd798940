"""Whether a background process answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from embedded_mesos.background_process import answers

#: A server may be as slow on a busy machine, and is not dead.
SLOW_SECONDS = 2.5


@pytest.fixture
def slow_server() -> Iterator[str]:
    class Slow(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            return

        def do_GET(self) -> None:
            time.sleep(SLOW_SECONDS)
            self.send_response(200)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_server_that_is_slow_answers(slow_server: str) -> None:
    assert answers(slow_server, "/")


def test_without_a_listener_there_is_no_answer() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        address = f"127.0.0.1:{closed.server_address[1]}"
    began = time.monotonic()
    assert not answers(address, "/")
    assert time.monotonic() - began < 5
