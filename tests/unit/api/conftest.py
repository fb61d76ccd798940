"""A source that answers what a test says, and a client of the application over it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partialmethod
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from dcos_tensorflow.api.access import Access
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import ServiceSpec
from dcos_tensorflow.mesos.agent_files import FileNotFound, FilePart
from dcos_tensorflow.options import load, service_spec


class Source:
    """A StateSource whose state is set by the test and whose events are kept for it."""

    def __init__(self, directory: Path) -> None:
        self.current: ServiceState | None = None
        self.events: list[Event] = []
        self.options: dict[str, Any] = {}
        self.stored: dict[str, ServiceSpec] = {}
        self.directory = directory
        self.failure: Exception | None = None
        #: Files of sandboxes by agent, task and name; an exception is raised in their place.
        self.files: dict[tuple[str, str, str], bytes | Exception] = {}

    def state(self) -> ServiceState | None:
        if self.failure is not None:
            raise self.failure
        return self.current

    def submit(self, event: Event) -> None:
        self.events.append(event)

    def refused_options(self) -> Mapping[str, Any]:
        return {}

    def configuration(self) -> Mapping[str, Any]:
        return self.options

    def leader(self) -> str:
        return ""

    def change_configuration(
        self, options: Mapping[str, Any], *, restarted: bool = False
    ) -> ServiceSpec:
        return service_spec(load(options))

    def options_in_force(self) -> Mapping[str, Any] | None:
        return self.options or None

    def secret_texts(self) -> frozenset[str]:
        return frozenset()

    def configurations(self) -> Mapping[str, ServiceSpec]:
        return self.stored

    def artifact(self, name: str) -> Path | None:
        # Like the scheduler's: what was published is known by its name, and nothing else is.
        files = (p for p in self.directory.iterdir() if p.is_file() and not p.is_symlink())
        return {path.name: path for path in files}.get(name)

    def read_file(
        self, agent_id: str, task_id: str, file: str, offset: int, length: int
    ) -> FilePart:
        found = self.files.get((agent_id, task_id, file), FileNotFound("there is no such file"))
        if isinstance(found, Exception):
            raise found
        return FilePart(offset, found[offset : offset + length], len(found))


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
