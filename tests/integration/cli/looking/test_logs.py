"""What the tasks of real jobs print, followed through whatever happens to them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from waiting import eventually

pytestmark = pytest.mark.timeout(150)

#: Prints a line each tenth of a second, until it is told to end.
CHATTING = (
    "i=0; until test -e $CHECKPOINT_DIR/finish;"
    " do i=$((i+1)); echo $TASK_NAME says $i; sleep 0.1; done; printf 'that is all'"
)
SMALL = {"cpus": 0.2, "mem": 64, "disk": 16}


class Follower:
    """``logs --follow --json`` in a process of its own, and what it has printed so far."""

    def __init__(self, command_line: CommandLine, folder: Path, *arguments: str) -> None:
        self._file = folder / "followed"
        with self._file.open("w") as out, (folder / "told").open("w") as told:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dcos_tensorflow", "logs", "--follow", "--json", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=told,
                env=command_line.environment,
            )

    def seen(self) -> list[dict[str, Any]]:
        text = self._file.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def texts(self) -> dict[str, str]:
        """Return what was printed of each attempt, by its Mesos task id."""
        found: dict[str, list[str]] = {}
        for each in self.seen():
            found.setdefault(each["task_id"], []).append(each["line"])
        return {task_id: "\n".join(lines) for task_id, lines in found.items()}

    def attempts(self, task: str) -> list[str]:
        """Return the task's attempts in the order of their first lines."""
        return list(dict.fromkeys(s["task_id"] for s in self.seen() if s["task"] == task))


def in_sandboxes(root: Path, task_ids: list[str]) -> dict[str, str]:
    """Return what the attempts have written, as it lies on the disk."""
    return {
        task_id: next(root.glob(f"**/executors/{task_id}/runs/*/task-console.log"))
        .read_text()
        .removesuffix("\n")
        for task_id in task_ids
    }


@pytest.fixture
def name(tmp_path: Path) -> str:
    return tmp_path.name.replace("_", "-").strip("-")


@pytest.fixture
def chatting(lasting: Any, job: Any, name: str, tmp_path: Path) -> Iterator[Any]:
    """A job of two tasks that chat, in the background."""
    retry = {"limit": 5, "initial_backoff_seconds": 0.2}
    file = job(CHATTING, name, worker={"count": 2, **SMALL}, retry=retry)
    command_line = lasting.command_line

    def begin() -> int:
        started = command_line("run", file, "--detach", "--json")
        assert started.code == 0, started.out
        return int(json.loads(started.out[started.out.index("{") :])["pid"])

    yield begin
    command_line.ask("uninstall", name, "--yes")


def finish(command_line: CommandLine, name: str) -> None:
    (command_line.home / "services" / name / "checkpoints" / "finish").touch()


def test_every_line_of_every_attempt_is_shown_once_through_restarts_of_all_kinds(
    lasting: Any, chatting: Any, name: str, tmp_path: Path
) -> None:
    command_line = lasting.command_line
    pid = chatting()
    eventually(lambda: command_line.ask("logs", "worker", "--name", name).out.count("says") > 2)
    follower = Follower(command_line, tmp_path, "--name", name, "--lines", "10000")
    eventually(lambda: len(follower.texts()) == 2)

    # A new process in the same container.
    assert command_line.ask("pod", "restart", "worker-1", "--name", name).code == 0
    eventually(lambda: follower_says(follower, "worker-1 says 1", 2), seconds=40)
    # Another container.
    assert command_line.ask("pod", "replace", "worker-1", "--name", name).code == 0
    eventually(lambda: len(follower.attempts("worker-1")) == 2, seconds=40)
    # Another scheduler.
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{pid}").exists())
    told = tmp_path / "told"
    eventually(lambda: "Waiting for it to come back" in told.read_text(), seconds=40)
    chatting()
    before = len(follower.seen())
    eventually(lambda: len(follower.seen()) > before + 10, seconds=40)
    finish(command_line, name)

    assert follower.process.wait(60) == 0
    shown = follower.texts()
    assert len(shown) == 3
    assert shown == in_sandboxes(command_line.home, list(shown))
    assert all("that is all" in text for text in list(shown.values())[-1:])


def follower_says(follower: Follower, line: str, times: int) -> bool:
    return [each["line"] for each in follower.seen()].count(line) >= times


def test_of_a_run_whose_cluster_ends_with_it_nothing_is_missed(
    command_line: CommandLine, job: Any, tmp_path: Path
) -> None:
    run = command_line.start("run", job(CHATTING, "brief", worker={"count": 2, **SMALL}))
    eventually(
        lambda: command_line.ask("logs", "--name", "brief").out.count("says") > 2, seconds=60
    )
    follower = Follower(command_line, tmp_path, "--lines", "10000")
    eventually(lambda: len(follower.texts()) == 2)
    finish(command_line, "brief")
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, out

    assert follower.process.wait(60) == 0, (tmp_path / "told").read_text()
    shown = follower.texts()
    assert shown == in_sandboxes(command_line.home, list(shown))

    # Its scheduler has gone, and so has the cluster: the sandboxes are read.
    last = command_line.ask("logs", "worker-0", "--lines", "1")
    assert (last.code, last.out) == (0, "that is all\n")
    both = command_line.ask("logs", "brief", "--lines", "1")
    assert both.out == "worker-0 | that is all\nworker-1 | that is all\n"
    unknown = command_line.ask("logs", "worker-7")
    assert unknown.code == 1
    assert "There is no task worker-7; there are worker-0, worker-1" in unknown.out


def test_a_run_shows_what_its_tasks_print_to_both_streams_in_its_order(
    command_line: CommandLine, job: Any
) -> None:
    both = "for n in 1 2 3; do echo out $n; sleep 0.3; echo err $n >&2; sleep 0.3; done"
    ended = command_line("run", job(both, "both", worker={"count": 1, **SMALL}), "--logs")
    assert ended.code == 0, ended.out
    said = ["out 1", "err 1", "out 2", "err 2", "out 3", "err 3"]
    assert [line for line in ended.out.splitlines() if line in said] == said
    kept = command_line.ask("logs", "both", "worker-0", "--lines", "100").out.splitlines()
    assert [line for line in kept if line in said] == said
    assert not any(line.startswith("{") for line in kept)


def test_a_reader_that_goes_ends_it_quietly_though_the_job_is_quiet(
    lasting: Any, job: Any, name: str
) -> None:
    command_line = lasting.command_line
    quiet = "echo one line; until test -e $CHECKPOINT_DIR/finish; do sleep 0.1; done"
    started = command_line("run", job(quiet, name, worker={"count": 1, **SMALL}), "--detach")
    assert started.code == 0, started.out
    eventually(lambda: "one line" in command_line.ask("logs", "--name", name).out)
    follower = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "dcos_tensorflow",
            "logs",
            "--follow",
            "--name",
            name,
            "--file",
            "stdout",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=command_line.environment,
    )
    assert follower.stdout is not None
    assert follower.stdout.readline() == "one line\n"
    follower.stdout.close()
    with contextlib.closing(follower.stderr):  # type: ignore[type-var]
        assert follower.wait(30) == 141
        assert follower.stderr.read() == ""  # type: ignore[union-attr]
    command_line.ask("uninstall", name, "--yes")


def test_a_file_that_is_not_there_is_told_and_the_code_says_so(
    lasting: Any, chatting: Any, name: str
) -> None:
    command_line = lasting.command_line
    chatting()
    eventually(lambda: "says" in command_line.ask("logs", "--name", name).out)
    missing = command_line.ask("logs", "--file", "no/such.txt", "--name", name)
    assert missing.code == 1
    assert "worker-0: there is no no/such.txt" in missing.out
    secret = command_line.ask("logs", "--file", ".secrets/keytab", "--name", name)
    assert secret.code == 1
    assert "holds a secret" in secret.out
    assert command_line.ask("logs", "--file", "../x", "--name", name).code == 2
