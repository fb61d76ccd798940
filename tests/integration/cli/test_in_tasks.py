"""``exec`` and ``cp`` on a job that runs, and ``cp`` from what is left of one that has ended."""

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

from command_line import CommandLine, write_options
from waiting import eventually

pytestmark = pytest.mark.timeout(150)

SMALL = {"cpus": 0.2, "mem": 64, "disk": 16}
LEAVES = (
    "mkdir -p made/deep; printf '\\000\\377\\001' > made/deep/bytes; ln -s /etc/passwd made/link;"
    " echo ready; until test -e $CHECKPOINT_DIR/finish; do sleep 0.1; done"
)


@pytest.fixture
def name(tmp_path: Path) -> str:
    return tmp_path.name.replace("_", "-").strip("-")


def begun(command_line: CommandLine, folder: Path, name: str) -> None:
    """Begin a job that makes something and waits."""
    service = {"name": name, "job_cmd": LEAVES, "strategy": "independent"}
    options = write_options(folder, service=service, worker={"count": 1, **SMALL})
    started = command_line("run", options, "--detach")
    assert started.code == 0, started.out
    eventually(lambda: "ready" in command_line.ask("logs", name).out, seconds=40)


@pytest.fixture(scope="module")
def serving(lasting: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A command line with the job ``serving``, which no test ends."""
    command_line: CommandLine = lasting.command_line
    begun(command_line, tmp_path_factory.mktemp("serving"), "serving")
    yield command_line
    command_line.ask("uninstall", "serving", "--yes")


@pytest.fixture
def own(lasting: Any, tmp_path: Path, name: str) -> Iterator[CommandLine]:
    """A command line with a job that the test ends."""
    command_line: CommandLine = lasting.command_line
    begun(command_line, tmp_path, name)
    yield command_line
    command_line.ask("uninstall", name, "--yes")


def test_a_command_runs_in_the_task_and_its_exit_code_is_the_answers(serving: CommandLine) -> None:
    ran = serving.ask("exec", "serving", "worker-0", "--", "sh", "-c", "echo $TASK_NAME; exit 3")
    assert (ran.code, ran.out) == (3, "worker-0\n")
    told = serving.ask("exec", "worker-0", "--name", "serving", "--json", "--", "cat", "no-such")
    document = json.loads(told.out)
    assert (told.code, document["exit_code"], document["stdout"]) == (1, 1, "")
    assert "no-such" in document["stderr"]
    late = serving.ask("exec", "serving", "worker-0", "--timeout", "1", "--", "sleep", "60")
    assert (late.code, "sleep was killed: it ran for 1 s" in late.out) == (137, True)


def test_one_that_is_interrupted_ends_in_the_task_too(serving: CommandLine) -> None:
    words = ["exec", "serving", "worker-0", "--", "sh", "-c", "echo begun; exec sleep 600"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dcos_tensorflow", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=serving.environment,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    eventually(lambda: serving.ask("exec", "serving", "worker-0", "--", "true").code == 0)


def test_a_folder_is_copied_while_the_task_runs_and_when_it_has_ended(
    own: CommandLine, name: str, tmp_path: Path
) -> None:
    copied = own.ask("cp", name, "worker-0:made", tmp_path)
    assert copied.code == 0, copied.out
    assert (tmp_path / "made/deep/bytes").read_bytes() == b"\x00\xff\x01"
    # An agent would follow the link.
    assert not (tmp_path / "made/link").is_symlink()
    again = own.ask("cp", name, "worker-0:made", tmp_path)
    assert (again.code, f"{tmp_path}/made is a folder already" in again.out) == (2, True)
    (own.home / "services" / name / "checkpoints" / "finish").touch()
    eventually(lambda: "succeeded" in own.ask("status", name).out, seconds=40)
    ended = own.ask("cp", name, "worker-0:made/deep/bytes", tmp_path / "later", "--json")
    assert json.loads(ended.out) == {"path": str(tmp_path / "later"), "files": 1, "bytes": 3}
    refused = own.ask("exec", name, "worker-0", "--", "ls")
    assert refused.code == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("exec", "worker-0"), "The command stands behind --"),
        (("exec", "--", "ls"), "Which task is meant?"),
        (("cp", "worker-0"), "Name the files to copy:"),
    ],
)
def test_what_is_missing_is_asked_for(
    serving: CommandLine, words: tuple[str, ...], told: str
) -> None:
    given = (*words[:1], "--name=serving", *words[1:])
    refused = serving.ask(*given)
    assert (refused.code, told in refused.out) == (2, True), refused.out


def test_top_shows_what_each_task_uses_of_what_it_was_given(serving: CommandLine) -> None:
    def used() -> Any:
        return json.loads(serving.ask("top", "serving", "--json").out)["worker-0"]

    found = eventually(used, seconds=40)
    assert (found["cpus"], found["mem_limit_bytes"]) == (0.2, 64 << 20)
    assert 0 < found["mem_bytes"] < 64 << 20
    head, titles, row = serving.ask("top", "serving").out.splitlines()
    assert (head, titles.split()[:2]) == ("serving is running", ["task", "cpu"])
    assert row.startswith("worker-0  running")
    assert "of 64 MB" in row


def test_a_command_goes_on_though_its_scheduler_is_killed(
    lasting: Any, job: Any, name: str, tmp_path: Path
) -> None:
    command_line: CommandLine = lasting.command_line
    file = job(LEAVES, name, worker={"count": 1, **SMALL})

    def served() -> int:
        started = command_line("run", file, "--detach", "--json")
        assert started.code == 0, started.out
        return int(json.loads(started.out[started.out.index("{") :])["pid"])

    pid = served()
    try:
        eventually(lambda: "ready" in command_line.ask("logs", name).out, seconds=40)
        waits = f"echo begun; until test -e {tmp_path}/go; do sleep 0.1; done; echo over; exit 5"
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "dcos_tensorflow"),
                *("exec", name, "worker-0", "--", "sh", "-c", waits),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=command_line.environment,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{pid}").exists())
        served()
        (tmp_path / "go").touch()
        out, told = process.communicate(timeout=60)
        assert (process.returncode, out) == (5, "over\n"), told
    finally:
        command_line.ask("uninstall", name, "--yes")


def test_on_a_terminal_top_goes_on_until_the_job_has_ended(
    own: CommandLine, name: str, tmp_path: Path
) -> None:
    ours, theirs = os.openpty()
    seen = tmp_path / "seen"
    with seen.open("wb") as file, os.fdopen(ours, "rb", 0) as terminal:
        process = subprocess.Popen(
            [sys.executable, "-m", "dcos_tensorflow", "top", name],
            stdout=theirs,
            stderr=theirs,
            env={**own.environment, "TERM": "xterm"},
        )
        os.close(theirs)
        # Its end closes the terminal, which Linux tells as an error.
        with contextlib.suppress(OSError):
            while told := terminal.read(4096):
                file.write(told)
                if b"worker-0" in told:
                    (own.home / "services" / name / "checkpoints" / "finish").touch()
    assert process.wait(30) == 0
    shown = seen.read_text()
    assert "worker-0" in shown
    assert f"{name} has ended." in shown
