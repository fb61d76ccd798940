"""A job of the operator's own user guesses the API's token, beside its operator who knows it."""

import http.client
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.callers.access import SECONDS_A_TRY, TRIES, Access
from dcos_tensorflow.api.server import ApiServer
from samples.state_source import Source
from samples.states import running

TOKEN = secrets.token_urlsafe(24)
#: What the operator asks, beside so many that guess.
ORDERS, GUESSERS = 200, 8


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path, running())


@pytest.fixture
def address(source: Source) -> Iterator[str]:
    server = ApiServer(create_app(source, access=Access(TOKEN)))
    yield server.start()
    server.stop()


def status_of(address: str, token: str, method: str = "GET", path: str = "/v1/plans") -> int:
    client = http.client.HTTPConnection(address, timeout=30)
    try:
        client.request(method, path, headers={"Authorization": f"Bearer {token}"})
        return client.getresponse().status
    finally:
        client.close()


def guesses(address: str, until: threading.Event) -> Counter[int]:
    found: Counter[int] = Counter()
    while not until.is_set():
        found[status_of(address, secrets.token_urlsafe(24))] += 1
    return found


def test_a_job_that_guesses_keeps_no_operator_of_the_same_user_out(
    source: Source, address: str
) -> None:
    enough = threading.Event()
    with ThreadPoolExecutor(GUESSERS) as pool:
        guessing: list[Future[Counter[int]]] = [
            pool.submit(guesses, address, enough) for _ in range(GUESSERS)
        ]
        try:
            operator = Counter(status_of(address, TOKEN) for _ in range(ORDERS))
            operator[status_of(address, TOKEN, "POST", "/v1/job/stop")] += 1
        finally:
            enough.set()
    answered = sum((guesser.result() for guesser in guessing), Counter[int]())
    assert operator == {200: ORDERS + 1}
    assert len(source.events) == 1
    assert set(answered) == {401, 429}, answered
    # One more has come back for every six seconds that it took.
    assert answered[401] <= TRIES + 30 / SECONDS_A_TRY, answered
    assert answered[429] > TRIES, answered


def test_a_monitor_with_an_old_token_keeps_no_operator_out(address: str) -> None:
    assert {status_of(address, "the token of last week") for _ in range(TRIES * 3)} == {401, 429}
    assert status_of(address, TOKEN) == 200
