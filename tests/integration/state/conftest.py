"""Both backends behind one fixture, and a process that uses the store for real."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.state.store import StateStore, open_store
from servers.zookeeper_server import ZooKeeperServer

CHILD = Path(__file__).with_name("store_process.py")
FRAMEWORK = Path(__file__).resolve().parents[3] / "framework"

_numbers = itertools.count()


class StoreProcess:
    """A child process with a store of its own; it reads commands and answers each in JSON."""

    def __init__(self, url: str, service: str, session_seconds: float = 1.0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD), url, service, str(session_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "PYTHONPATH": str(FRAMEWORK)},
        )
        assert self.read() == "ready"

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, *command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")

    def read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the store's process is gone"
        return json.loads(line)

    def ask(self, *command: Any) -> Any:
        self.send(*command)
        return self.read()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class Backend:
    """Opens stores at one place and closes them all at the end of the test."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self._open: list[StateStore | StoreProcess] = []

    def store(self, service: str = "tf", url: str | None = None, **options: Any) -> StateStore:
        store = open_store(url or self.url, service, **options)
        self._open.append(store)
        return store

    def leader(self, service: str = "tf") -> StateStore:
        store = self.store(service)
        store.lead("test", 10.0, lambda why: None)
        return store

    def process(self, service: str = "tf", session_seconds: float = 1.0) -> StoreProcess:
        process = StoreProcess(self.url, service, session_seconds)
        self._open.append(process)
        return process

    def close(self) -> None:
        for item in reversed(self._open):
            item.close()


@pytest.fixture(params=["sqlite", pytest.param("zookeeper", marks=pytest.mark.zookeeper)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    if request.param == "zookeeper":
        yield request.getfixturevalue("session_backend")
        return
    backend = Backend("sqlite", f"sqlite:///{tmp_path}/state.db")
    yield backend
    backend.close()


@pytest.fixture
def session_backend(zookeeper_server: ZooKeeperServer) -> Iterator[Backend]:
    """ZooKeeper on the session's server, below a chroot of the test's own."""
    backend = Backend("zookeeper", zookeeper_server.url(f"/contract-{next(_numbers)}"))
    yield backend
    backend.close()


@pytest.fixture
def own_backend(own_zookeeper: ZooKeeperServer) -> Iterator[Backend]:
    """ZooKeeper on a server that the test may kill."""
    backend = Backend("zookeeper", own_zookeeper.url())
    yield backend
    backend.close()
