"""What a job needs is killed or closed while ``run`` follows it: it says so, and leaves nothing."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import CommandLine, write_options
from processes import processes
from waiting import eventually

pytestmark = pytest.mark.timeout(120)

ROOMY = ("--cpus", "4", "--mem", "2000", "--disk", "1000", "--gpus", "0")


class Home(CommandLine):
    """A command line with a work directory of its own."""

    def processes(self, pattern: str = "") -> list[int]:
        """Return the processes that name this home, and the pattern, on their command line."""
        return [p.pid for p in processes(str(self.home)) if re.search(pattern, p.command)]

    def shells(self) -> list[int]:
        """Return the shells of the job.

        What a shell forks looks the same until it is another program, but leads no session.
        """
        found = []
        for pid in self.processes("^sh -c while"):
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(pid) == pid:
                    found.append(pid)
        return found

    def running(self, file: Path) -> subprocess.Popen[str]:
        """Start a run and return once its task runs."""
        process = self.start("run", file, *ROOMY)
        assert process.stdout is not None
        assert any("worker-0 running" in line for line in process.stdout)
        return process


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    yield found
    assert found.processes() == []


@pytest.fixture
def job(tmp_path: Path, home: Home) -> Path:
    """A job that ends once its file ``finish`` is there."""
    command = f"while ! test -e {home.home}/finish; do sleep 0.1; done"
    service = {"name": "job", "strategy": "independent", "job_cmd": command}
    return write_options(tmp_path, service=service, retry={"limit": 0})


def kill(pids: list[int]) -> None:
    assert pids
    for pid in pids:
        # With the first one others may end, and be waited for.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_killed_cluster_ends_the_run_with_a_message_and_the_job_starts_again(home, job):
    process = home.running(job)
    kill(home.processes("embedded_mesos serve"))
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "has ended, and the tasks with it" in out
    (home.home / "finish").touch()
    again = home.ask("run", job, *ROOMY)
    assert again.code == 0, again.out
    assert "this run takes it over" in again.out


def test_a_killed_task_runner_takes_its_process_along_and_another_goes_on(home, job):
    process = home.running(job)
    before = eventually(home.shells)
    kill(home.processes("task-runner.*pyz"))
    eventually(lambda: home.shells() not in ([], before))
    assert set(home.shells()).isdisjoint(before)
    (home.home / "finish").touch()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0, out
    assert "Command terminated with signal Killed" in out


def test_a_killed_process_is_told_and_started_again_at_no_cost(home, job):
    process = home.running(job)
    before = eventually(home.shells)
    kill(before)
    eventually(lambda: home.shells() not in ([], before))
    (home.home / "finish").touch()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0, out
    assert "SIGKILL has ended the process: the task runner did not send it" in out


def test_a_run_whose_reader_has_gone_ends_quietly(home, job):
    process = subprocess.Popen(
        [sys.executable, "-m", "dcos_tensorflow", "run", str(job), *ROOMY],
        env=home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 128 + signal.SIGPIPE
    assert said == ""
