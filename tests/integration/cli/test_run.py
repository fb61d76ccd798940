"""``run`` on the embedded cluster: to the end, to a failure, and interrupted."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from command_line import UNTIL_FINISH, CommandLine, Ended, write_options
from processes import processes
from waiting import eventually

ROOMY = ("--cpus", "4", "--mem", "2000", "--disk", "1000", "--gpus", "0")
TRAINS = (
    "echo step 1 loss 0.5; echo kept > $CHECKPOINT_DIR/mark; "
    "echo model > $OUTPUT_DIR/model.keras; echo 1 > history.csv; "
    "echo 'result: {\"test_accuracy\": 0.97}'"
)

pytestmark = pytest.mark.timeout(120)


def clusters_of(command_line: CommandLine) -> list[int]:
    """Return the process ids of embedded clusters that work below this home."""
    home = str(command_line.home)
    return [one.pid for one in processes("embedded_mesos") if home in one.command]


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Return what the process printed up to a line with ``text``."""
    seen = ""
    assert process.stdout is not None
    for line in process.stdout:
        seen += line
        if text in line:
            return seen
    pytest.fail(f"{text!r} was never printed:\n{seen}")


class DoneJob(NamedTuple):
    """A job that was run to its end."""

    command_line: CommandLine
    file: Path
    ended: Ended


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run to the end, looked at by several tests: what they add, the next run keeps."""
    folder = tmp_path_factory.mktemp("done")
    command_line = CommandLine(folder / "home")
    service = {"name": "job", "job_cmd": TRAINS, "strategy": "independent"}
    file = write_options(folder, service=service)
    return DoneJob(command_line, file, command_line.ask("run", file, *ROOMY))


def test_a_job_runs_to_its_end_and_leaves_its_work_behind(done):
    command_line, _, ended = done
    home = command_line.home / "services" / "job"
    assert ended.code == 0, ended.out
    assert "test accuracy  0.97" in ended.out
    assert (home / "checkpoints" / "mark").read_text() == "kept\n"
    assert "step 1" in (home / "tasks" / "worker-0" / "stdout").read_text()
    assert clusters_of(command_line) == []


def test_what_a_run_made_is_found_and_named_with_its_number_and_what_comes_next(done):
    command_line, file, ended = done
    home = command_line.home / "services" / "job"
    model = home / "output" / "1" / "worker-0" / "model.keras"
    assert model.read_text() == "model\n"
    assert "run            1\n" in ended.out
    assert f"output         {model.parent}\n" in ended.out
    assert f"worker-0 left  {home}/tasks/worker-0: history.csv\n" in ended.out
    assert f"run again  dcos-tensorflow run {file} " in ended.out
    assert "its logs   dcos-tensorflow logs --name=job\n" in ended.out


def test_the_exit_code_is_that_of_the_failed_process_and_its_last_words_are_shown(
    command_line, job
):
    file = job("echo this is why >&2; exit 3", retry={"limit": 0})
    ended = command_line.ask("run", file, *ROOMY)
    assert ended.code == 3, ended.out
    assert "The last lines of worker-0:" in ended.out
    assert "  | this is why" in ended.out


def test_with_json_standard_output_is_one_document(command_line, job):
    file = str(job(TRAINS))
    done = subprocess.run(
        [sys.executable, "-m", "dcos_tensorflow", "run", file, *ROOMY, "--json"],
        env=command_line.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    document = json.loads(done.stdout)
    assert (document["outcome"], document["exit_code"]) == ("succeeded", 0)
    assert document["result"] == {"test_accuracy": 0.97}


def test_a_job_that_was_done_runs_again_with_its_checkpoints_until_fresh_removes_them(done):
    command_line, file, _ = done
    kept = command_line.home / "services" / "job" / "checkpoints"
    (kept / "older").touch()
    again = command_line.ask("run", file, *ROOMY)
    assert again.code == 0
    assert "Training goes on from the checkpoints" in again.out
    refused = command_line.ask("run", file, *ROOMY, "--fresh")
    assert refused.code == 1
    assert "--yes" in refused.out
    assert (kept / "older").exists()
    assert command_line.ask("run", file, *ROOMY, "--fresh", "--yes").code == 0
    assert sorted(path.name for path in kept.iterdir()) == ["mark"]
    outputs = command_line.home / "services" / "job" / "output"
    assert sorted(path.name for path in outputs.iterdir()) == ["1", "2", "3"]


def test_a_job_that_cannot_fit_is_refused_at_once(command_line, job):
    file = job("true", worker={"count": 3, "cpus": 2, "mem": 64, "disk": 10})
    ended = command_line.ask("run", file, *ROOMY)
    assert ended.code == 2
    assert "6 cpus (4 available)" in ended.out


def test_a_job_larger_than_the_machine_runs_and_says_what_is_overcommitted(command_line, job):
    cpus = os.cpu_count() or 1
    file = job("true", worker={"count": 2, "cpus": cpus, "mem": 64, "disk": 10})
    ended = command_line.ask("run", file)
    assert ended.code == 0, ended.out
    assert "overcommitted: the 2 tasks need" in ended.out
    refused = command_line.ask("run", file, "--strict")
    assert refused.code == 2
    assert "does not fit on this machine" in refused.out


def pid_of_task(command_line: CommandLine) -> int:
    """Return what the job's command has written into ``pid``: its task runs before it does."""

    def written() -> str:
        files = command_line.home.glob("**/runs/*/pid")
        return next((text for file in files if (text := file.read_text()).endswith("\n")), "")

    return int(eventually(written, what="the pid of the task"))


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM]
)
def test_a_signal_ends_the_job_its_tasks_and_its_cluster(command_line, job, number):
    process = command_line.start("run", job("echo $$ > /proc/self/cwd/pid; sleep 60"), *ROOMY)
    read_until(process, "worker-0 running")
    task = pid_of_task(command_line)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert "was stopped" in out
    assert clusters_of(command_line) == []
    eventually(lambda: not Path(f"/proc/{task}").exists())


def test_a_run_that_was_killed_is_taken_up_again_with_its_tasks_alive_as_soon_as_it_can_be(
    command_line, job
):
    file = job(f"echo started >> $CHECKPOINT_DIR/starts; {UNTIL_FINISH}")
    process = command_line.start("run", file, *ROOMY)
    read_until(process, "worker-0 running")
    second = command_line.ask("run", file, *ROOMY)
    assert (second.code, "Another run of job is under way" in second.out) == (8, True), second.out
    process.kill()
    process.communicate()
    other = command_line.ask("run", file, *ROOMY, "--set", "worker.cpus=0.2")
    assert other.code == 2
    assert "has other options" in other.out
    folder = command_line.home / "services/job"
    (lock,) = folder.glob("state.db.*.lock")
    lock.unlink()
    # The state can be read, and not be led.
    lock.mkdir()
    refused = command_line("run", file, *ROOMY)
    assert (refused.code, str(lock) in refused.out) == (8, True), refused.out
    assert len(clusters_of(command_line)) == 1
    lock.rmdir()
    again = command_line.start("run", file, *ROOMY)
    read_until(again, "this run takes it over")
    (folder / "checkpoints/finish").touch()
    out, _ = again.communicate(timeout=60)
    assert again.returncode == 0, out
    assert (folder / "checkpoints/starts").read_text() == "started\n"
    assert clusters_of(command_line) == []


@pytest.mark.soak
def test_a_job_of_published_parameter_servers_keeps_them_when_its_run_is_repeated(
    command_line, job
):
    file = job(f"if [ $JOB_NAME = ps ]; then sleep 600; fi; {UNTIL_FINISH}")
    options = json.loads(file.read_text())
    del options["parameter_server"], options["service"]["strategy"]
    file.write_text(json.dumps(options))
    process = command_line.start("run", file, "--published-defaults")
    read_until(process, "ps-1 running")
    process.kill()
    process.communicate()
    again = command_line.start("run", file)
    told = read_until(again, "this run takes it over")
    assert "tasks of parameter_server by the published default, and keeps them" in told
    (command_line.home / "services" / "job" / "checkpoints" / "finish").touch()
    out, _ = again.communicate(timeout=60)
    assert again.returncode == 0, out
    assert clusters_of(command_line) == []


def test_a_job_whose_run_was_killed_can_be_stopped(command_line, job):
    process = command_line.start("run", job("echo $$ > /proc/self/cwd/pid; sleep 60"), *ROOMY)
    read_until(process, "worker-0 running")
    task = pid_of_task(command_line)
    process.kill()
    process.communicate()
    assert "stop ends it" in command_line.ask("status", "job").out
    stopped = command_line.ask("stop", "job")
    assert stopped.code == 0, stopped.out
    assert clusters_of(command_line) == []
    eventually(lambda: not Path(f"/proc/{task}").exists())
    assert "was stopped" in command_line.ask("status", "job").out


def test_a_detached_job_without_a_cluster_starts_one_that_lives_on(command_line, job):
    try:
        assert command_line("run", job("sleep 60"), "--detach", *ROOMY).code == 0
        assert command_line.ask("local", "status").code == 0
        assert command_line.ask("stop", "job").code == 0
    finally:
        down = command_line.ask("local", "down")
    assert "is down" in down.out
    assert clusters_of(command_line) == []


class Terminal:
    """A run on a terminal of its own, as a person has it."""

    def __init__(self, command_line: CommandLine, *arguments: str | Path) -> None:
        pid, self.fd = pty.fork()
        if pid == 0:
            command = [sys.executable, "-m", "dcos_tensorflow", *map(str, arguments)]
            environment = {**command_line.environment, "TERM": "xterm-256color"}
            os.execve(sys.executable, command, environment)
        self.pid = pid
        self.seen = ""

    def expect(self, text: str, seconds: float = 40.0) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} was never shown:\n{self.seen[-3000:]}"
            if select.select([self.fd], [], [], left)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen.split(text, 1)[1]

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def end(self) -> int:
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass  # Linux answers EIO once the other side is closed.
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


CTRL_C = "\x03"


def test_on_a_terminal_progress_is_live_and_ctrl_c_asks_before_it_stops(command_line, job):
    file = job("for i in $(seq 300); do echo step $i loss 0.5; sleep 0.2; done")
    terminal = Terminal(command_line, "run", file, *ROOMY)
    terminal.expect("running")
    terminal.expect("0.5")
    terminal.type(CTRL_C)
    terminal.expect("Stop the job? [y/N]")
    terminal.type("n\n")
    terminal.expect("worker-0")
    terminal.type(CTRL_C)
    terminal.expect("Stop the job? [y/N]")
    terminal.type(CTRL_C)
    terminal.expect("was stopped")
    assert terminal.end() == 130
