"""An operator of bare metal: a scheduler under a supervisor, all asked of it from elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import UNTIL_FINISH, CommandLine
from waiting import eventually

pytestmark = pytest.mark.timeout(120)

#: As in packaging/systemd: wrong options stay wrong, what is uninstalled stays so.
NOT_AGAIN = (2, 11)


class Supervisor:
    """Starts a scheduler again whenever it has ended, as systemd does."""

    def __init__(self, start: Callable[[], subprocess.Popen[str]]) -> None:
        self._start = start
        self._over = threading.Event()
        self.process = start()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            self.process.communicate()
            if self._over.is_set() or self.process.returncode in NOT_AGAIN:
                return
            self.process = self._start()

    def end(self) -> None:
        self._over.set()
        self.process.kill()
        self._thread.join()


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def operated(lasting: Any, job: Any, tmp_path: Path) -> Iterator[tuple[Supervisor, CommandLine]]:
    """A service under a supervisor, and the command line of somebody who has its API's address."""
    token = tmp_path / "token"
    token.write_text("of-the-operator")
    token.chmod(0o600)
    port = free_port()
    line: CommandLine = lasting.command_line
    file = job(
        f"echo started >> $CHECKPOINT_DIR/$TASK_NAME; {UNTIL_FINISH}",
        "metal",
        checkpoints={"uri": str(tmp_path)},
    )
    api = ("--api-port", str(port), "--api-token-file", token)
    state = ("--state", f"sqlite:///{tmp_path}/state.db")
    supervisor = Supervisor(
        lambda: line.start("scheduler", file, "--local", "--work-dir", line.home, *api, *state)
    )
    person = CommandLine(tmp_path / "elsewhere")
    person.environment["DCOS_TENSORFLOW_API"] = f"http://127.0.0.1:{port}"
    person.environment["DCOS_TENSORFLOW_API_TOKEN_FILE"] = str(token)
    yield supervisor, person
    supervisor.end()


def test_everything_is_done_from_elsewhere_while_the_scheduler_dies_and_comes_back(
    operated: tuple[Supervisor, CommandLine], tmp_path: Path
) -> None:
    supervisor, person = operated

    def phase() -> str:
        ended = person.ask("status", "metal", "--json")
        return str(json.loads(ended.out)["phase"]) if ended.code == 0 else ended.out

    eventually(lambda: phase() == "running", seconds=40)
    following = person.start("status", "--follow")
    changed = person.ask("update", "start", "metal", "--set", "worker.count=2")
    assert changed.code == 0, changed.out
    eventually((tmp_path / "worker-1").exists)
    first = supervisor.process.pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: supervisor.process.pid != first)
    eventually(lambda: phase() == "running", seconds=40)
    # It was started with its own options again, and goes over to those.
    assert person.ask("why").code == 0
    assert following.poll() is None, "a scheduler that is away is no end of the job"
    uninstalled = person.ask("uninstall", "metal", "--yes")
    assert (uninstalled.code, uninstalled.out) == (0, "metal is uninstalled.\n")
    assert "metal" not in person.ask("list").out
    out, _ = following.communicate(timeout=60)
    assert following.returncode != 0, out
    assert "Waiting for it to come back" in out
    assert "The job metal was stopped" in out
