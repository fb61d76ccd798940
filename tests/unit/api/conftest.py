"""A source that answers what a test says, and a client of the application over it."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.core.model.service_state import ServiceState
from samples.state_source import Source


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "artifacts").mkdir()
    return Source(tmp_path / "artifacts")


class Client:
    """Asks an application in the test's own thread: nothing waits for another thread's turn."""

    def __init__(self, app: Starlette) -> None:
        self.app = app
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://testserver", follow_redirects=True
        )
        self._loop = asyncio.new_event_loop()

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self._loop.run_until_complete(self.http.request(method, path, **more))

    get = partialmethod(request, "GET")
    head = partialmethod(request, "HEAD")
    post = partialmethod(request, "POST")
    put = partialmethod(request, "PUT")

    def close(self) -> None:
        self._loop.run_until_complete(self.http.aclose())
        self._loop.close()


ClientOf = Callable[..., Client]


@pytest.fixture
def client_of(source: Source) -> Iterator[ClientOf]:
    """Make a client of an application with a token, and what else the application takes."""
    made: list[Client] = []

    def make(*, token: str = "", **more: Any) -> Client:
        made.append(Client(create_app(source, **{"access": Access(token), **more})))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(client_of: ClientOf) -> Client:
    return client_of()


Ask = Callable[[str, ServiceState], Any]


@pytest.fixture
def ask(source: Source, client: Client) -> Ask:
    """Return what GET of a path answers for a state."""

    def get(path: str, state: ServiceState) -> Any:
        source.current = state
        return client.get(path, follow_redirects=False)

    return get
