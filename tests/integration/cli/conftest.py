"""The command line as a person uses it, with a work directory of its own for each test."""

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from command_line import CommandLine, write_options
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.work_directory import WorkDirectory
from servers.answering_service import TOKEN, Service


class LastingCluster(NamedTuple):
    """A command line whose embedded cluster is up, and the cluster's master."""

    command_line: CommandLine
    master: str


@pytest.fixture
def command_line(tmp_path: Path) -> Iterator[CommandLine]:
    """The command with a work directory of its own, and nothing of it left running."""
    found = CommandLine(tmp_path / "home")
    yield found
    end_schedulers(found)


def end_schedulers(command_line: CommandLine) -> None:
    """End the schedulers that a test left in the background."""
    for file in command_line.home.glob("services/*/scheduler.json"):
        pid = json.loads(file.read_text())["pid"]
        if pid > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    # The window of ``open`` ends by itself without its file.
    (command_line.home / "window.json").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LastingCluster]:
    """The command with an embedded cluster of two agents that was left running."""
    found = CommandLine(tmp_path_factory.mktemp("home"))
    size = ("--agents", "2", "--cpus", "2", "--mem", "1000", "--disk", "500", "--gpus", "0")
    up = found("local", "up", *size, "--attributes", "rack:r1,r2", "--json")
    assert up.code == 0, up.out
    yield LastingCluster(found, json.loads(up.out)["master"])
    end_schedulers(found)
    assert found.ask("local", "down").code == 0


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Path]:
    """Write the options of a command job of one worker."""

    def write(command: str, name: str = "job", **sections: dict[str, object]) -> Path:
        service = {"name": name, "job_cmd": command, "strategy": "independent"}
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        return write_options(folder, service=service, **sections)

    return write


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service in whose place a state answers, as commands of this machine find it."""
    found = Service()
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    directory = WorkDirectory(tmp_path).service("tensorflow")
    directory.prepare()
    api, state = found.server.start(), f"sqlite:///{tmp_path}/state.db"
    registry.register(directory, Registration("tensorflow", os.getpid(), api, TOKEN, state))
    yield found
    found.end()
