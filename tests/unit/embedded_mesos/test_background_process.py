"""Whether a background process answers."""

import time
from collections.abc import Iterator

import pytest

from embedded_mesos.background_process import answers
from servers.web_server import Handler, served

#: A server may be as slow on a busy machine, and is not dead.
SLOW_SECONDS = 2.5


@pytest.fixture
def slow_server() -> Iterator[str]:
    class Slow(Handler):
        def do_GET(self) -> None:
            time.sleep(SLOW_SECONDS)
            self.answer(200)

    with served(Slow) as address:
        yield address


def test_server_that_is_slow_answers(slow_server: str) -> None:
    assert answers(slow_server, "/")


def test_without_a_listener_there_is_no_answer() -> None:
    with served(Handler) as address:
        pass
    began = time.monotonic()
    assert not answers(address, "/")
    assert time.monotonic() - began < 5
