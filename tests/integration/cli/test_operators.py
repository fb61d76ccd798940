"""A real job on the embedded cluster is paused, changed, scaled and uninstalled by its operator."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from command_line import UNTIL_FINISH
from waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def command_line(lasting):
    return lasting.command_line


@pytest.fixture
def name(tmp_path):
    """A service of the test's own: the tests share one cluster."""
    return tmp_path.name.replace("_", "-").strip("-")


class Operated:
    """A job in the background, and what is asked of it."""

    def __init__(self, command_line, name, file):
        self.command_line, self.name, self.file = command_line, name, file

    def begin(self):
        started = self.command_line("run", self.file, "--detach", "--json")
        assert started.code == 0, started.out
        self.pid = json.loads(started.out[started.out.index("{") :])["pid"]

    def ask(self, *arguments):
        ended = self.command_line.ask(*arguments, "--name", self.name)
        assert ended.code == 0, ended.out
        return ended.out

    def shows(self, text, *arguments):
        """Say whether a command's answer has ``text`` in it; false while no scheduler answers."""
        ended = self.command_line.ask(*arguments, "--name", self.name)
        return ended.code == 0 and text in ended.out

    def end(self):
        ended = self.command_line.ask("uninstall", self.name, "--yes")
        assert ended.code == 0, ended.out
        eventually(lambda: not Path(f"/proc/{self.pid}").exists())
        assert "No scheduler" in self.command_line.ask("plan", "list", "--name", self.name).out


@pytest.fixture
def operated(command_line, job, name):
    small = {"cpus": 0.2, "mem": 64, "disk": 16}
    file = job(
        f"echo started >> $CHECKPOINT_DIR/$TASK_NAME; {UNTIL_FINISH}",
        name,
        worker={"count": 2, **small},
    )
    found = Operated(command_line, name, file)
    found.begin()
    eventually(
        lambda: found.shows("deploy (serial strategy) (COMPLETE)", "plan", "status", "deploy")
    )
    eventually(lambda: starts(found, "worker-0") == starts(found, "worker-1") == 1)
    return found


def starts(operated, task):
    file = operated.command_line.home / "services" / operated.name / "checkpoints" / task
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_pause_outlives_the_scheduler(operated):
    operated.ask("pod", "pause", "worker-1")
    eventually(lambda: operated.shows("worker-1 (PAUSED)", "pod", "status"))
    os.kill(operated.pid, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{operated.pid}").exists())
    operated.begin()
    eventually(lambda: operated.shows("worker-1 (PAUSED)", "pod", "status"))
    assert starts(operated, "worker-1") == 1
    operated.ask("pod", "resume", "worker-1")
    eventually(lambda: starts(operated, "worker-1") == 2)
    operated.end()


def test_an_update_waits_behind_its_canary_and_can_be_taken_back(operated):
    original = json.loads(operated.ask("update", "configurations"))[0]
    options = ("--options", operated.file, "--set", "worker.cpus=0.3")
    operated.ask("update", "start", *options, "--set", "service.update_strategy=canary")
    eventually(lambda: operated.shows("deploy (canary strategy) (WAITING)", "update", "status"))
    assert "the canary runs" in operated.ask("update", "status", "--reasons")
    operated.ask("update", "resume")
    eventually(lambda: starts(operated, "worker-1") == 2)
    operated.ask("update", "rollback", original)
    eventually(lambda: starts(operated, "worker-1") == 3)
    operated.end()


def test_a_job_is_scaled_out_and_in(operated):
    more = ("--options", operated.file, "--set", "worker.count=3")
    operated.ask("update", "start", *more)
    eventually(lambda: operated.shows("worker-2 (RUNNING)", "pod", "status"))
    operated.ask("update", "start", "--options", operated.file)
    eventually(lambda: '"worker-2"' not in operated.ask("pod", "list"))
    assert starts(operated, "worker-0") == 1
    operated.end()
