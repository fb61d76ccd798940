"""Bad options, bad jobs, impossible wishes: each gets its sentence, and nothing hangs."""

import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command_line import CommandLine, Ended, write_options
from servers.web_server import served_folder
from waiting import eventually

pytestmark = pytest.mark.timeout(120)

SMALL = {"cpus": 0.1, "mem": 64, "disk": 10}
#: How long anything may take to be said or to end on a busy machine.
PATIENCE = 60.0


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A service of the test's own: the tests share one cluster."""
    return (
        re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
        .strip("-")[:60]
        .strip("-")
    )


@pytest.fixture
def job(tmp_path: Path, name: str) -> Callable[..., Path]:
    """Write the options of a job that is started once; sections are added to them."""

    def write(**sections: dict[str, object]) -> Path:
        service = {"name": name, "strategy": "independent", **sections.pop("service", {})}
        if not service.keys() & {"job_cmd", "job_name"}:
            service["job_cmd"] = "true"
        sections = {"retry": {"limit": 0}, **sections}
        return write_options(tmp_path, service=service, **sections)

    return write


@pytest.fixture
def module(tmp_path: Path, job: Callable[..., Path]) -> Callable[..., Path]:
    """Write the options of a job whose module ``train`` has this text."""

    def write(text: str, **service: object) -> Path:
        folder = tmp_path / "code"
        folder.mkdir()
        (folder / "train.py").write_text(text)
        return job(service={"job_name": "train", "job_url": "code", **service})

    return write


def says(ended: Ended, code: int, *sentences: str) -> None:
    """Check how a command ended, and what a person reads."""
    assert ended.code == code, ended.out
    assert [each for each in sentences if each not in ended.out] == [], ended.out
    assert "Traceback" not in ended.out.split("The last lines of")[0], ended.out
    assert "this is a mistake of dcos-tensorflow" not in ended.out, ended.out


class Running:
    """A command under way, whose output is read as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen = ""
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.seen += line
                self._news.notify_all()

    def until(self, text: str) -> None:
        """Wait until the command has printed this."""
        with self._news:
            found = self._news.wait_for(lambda: text in self.seen, PATIENCE)
        assert found, f"{text!r} was never printed:\n{self.seen}"

    def end(self, number: int = 0) -> Ended:
        """Send a signal, if any, and wait for the end."""
        if number:
            self.process.send_signal(number)
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return Ended(self.process.returncode, self.seen)

    def close(self) -> None:
        """End it whatever has become of it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start(local_cluster: CommandLine) -> Iterator[Callable[..., Running]]:
    """Start a command and go on."""
    started: list[Running] = []

    def begin(*arguments: str | Path) -> Running:
        started.append(Running(local_cluster.start(*arguments)))
        return started[-1]

    yield begin
    for each in started:
        each.close()


def nothing_is_left(local_cluster: CommandLine, service: str) -> None:
    """Wait until the cluster has no framework of this service, nor a task: the job's end is told
    before its scheduler has left.
    """

    def has_left() -> bool:
        frameworks = json.loads(local_cluster.mesos("/state"))["frameworks"]
        return service not in [each["name"] for each in frameworks]

    eventually(has_left, seconds=PATIENCE, what=f"a cluster without {service}")


# Options.


# The other mistakes are those of ``unit/options``, ``unit/cli/test_preparation`` and
# ``unit/cli/test_job_archive``.
def test_options_that_make_no_sense_are_named_and_no_job_begins(command_line, job):
    says(
        command_line.ask("run", job(worker={"cuont": 2}, gpu_worker={"gpus": 0.5})),
        *(2, "2 problems in", "worker.cuont: unknown option; did you mean worker.count?"),
        "gpu_worker.gpus: Mesos only has whole GPUs (given: 0.5",
    )


def test_an_options_file_that_is_missing_is_named(command_line, tmp_path):
    file = tmp_path / "nowhere.json"
    says(command_line.ask("run", file), 2, f"There is no file {file}")


# The job's code.


@pytest.mark.parametrize("url", ["nowhere.zip", "file:///nowhere/job.zip"])
def test_a_job_that_does_not_exist_here_is_refused_at_once(command_line, job, url):
    file = job(service={"job_name": "train", "job_url": url})
    says(
        command_line.ask("run", file), 2, "service.job_url: there is no file or folder /", url[-11:]
    )


def test_a_job_that_the_web_server_does_not_have_is_named(local_cluster, job, tmp_path):
    with served_folder(tmp_path) as server:
        url = f"{server}/job.zip"
        file = job(service={"job_name": "train", "job_url": url})
        says(local_cluster.ask("run", file), 1, f"Failed to fetch '{url}'", "404", "has failed")


def test_code_that_is_not_python_is_told_with_its_line(command_line, module):
    says(command_line.ask("run", module("x = 1\ndef f(:\n")), 2, "train.py, line 2 is not Python")


# The job's process.


def test_an_error_at_import_is_told_by_its_last_line(local_cluster, module):
    ended = local_cluster.ask("run", module("import collections\ncollections.nonsense\n"))
    line = "AttributeError: module 'collections' has no attribute 'nonsense'"
    told = f"{line} (train.py, line 2) (before the first step, in all tasks that run the code"
    says(ended, 1, f"with exit code 1: {told}", f"  | {line}")


def test_the_exit_code_is_that_of_the_process_after_its_retries(local_cluster, job, tmp_path):
    script = f"echo start >> {tmp_path}/starts; echo these are my last words; exit 3"
    ended = local_cluster.ask("run", job(service={"job_cmd": script}, retry={"limit": 1}))
    says(ended, 3, "1 retry is used up", "and 1 restart", "  | these are my last words")
    assert (tmp_path / "starts").read_text() == "start\n" * 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import tensorflow as tf\n", id="script"),
        pytest.param(
            "def main(server, log_dir, context): pass\n", id="function", marks=pytest.mark.soak
        ),
    ],
)
def test_a_python_without_tensorflow_is_told_with_the_option_that_mends_it(
    local_cluster, module, text
):
    ended = local_cluster.ask("run", module(text))
    says(ended, 78, "There is no TensorFlow in the Python", "; set service.python", "never run")


TAKES_ITS_PORT = """
import json, os, pathlib, socket, sys, time
marks = pathlib.Path(sys.argv[1])
port = int(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][0].rpartition(":")[2])
with (marks / "ports").open("a") as ports:
    ports.write(f"{port}\\n")
while not (marks / "held").exists():
    time.sleep(0.02)
try:
    socket.create_server(("", port)).close()
except OSError as error:
    sys.exit(f"Could not start gRPC server: {error}")
"""


def test_a_task_whose_port_is_taken_gets_another_at_no_cost(start, job, tmp_path):
    (tmp_path / "member.py").write_text(TAKES_ITS_PORT)
    command = f"if test $TASK_NAME = worker-0; then python3 {tmp_path}/member.py {tmp_path}; fi"
    file = job(
        service={"job_cmd": command, "strategy": "multi_worker"}, worker={"count": 2, **SMALL}
    )
    running = start("run", file)
    ports = tmp_path / "ports"
    eventually(lambda: ports.exists() and ports.read_text().endswith("\n"), seconds=PATIENCE)
    with socket.create_server(("", int(ports.read_text()))):
        (tmp_path / "held").touch()
        ended = running.end()
    says(ended, 0, "TensorFlow could not listen on port", "has succeeded", "and 1 restart")
    first, second = ports.read_text().split()
    assert first != second


def test_a_task_that_ignores_sigterm_ends_all_the_same(start, job, local_cluster, name, tmp_path):
    command = f"trap '' TERM INT; (exec sleep 100) & echo $! > {tmp_path}/pid; wait"
    running = start("run", job(service={"job_cmd": command}))
    running.until("worker-0 running")
    file = tmp_path / "pid"
    eventually(lambda: file.exists() and file.read_text().endswith("\n"), seconds=PATIENCE)
    says(running.end(signal.SIGINT), 130, f"The job {name} was stopped", ": Ctrl-C")
    nothing_is_left(local_cluster, name)
    pid = int(file.read_text())
    eventually(lambda: not Path(f"/proc/{pid}").exists(), seconds=PATIENCE)


# Wishes.


def test_a_detached_job_that_waits_says_why(local_cluster, job, name):
    file, reason = job(worker={"count": 2, **SMALL, "cpus": 6}), "needs 6 cpus, best agent"
    says(local_cluster("run", file, "--detach"), 0, f"{name} runs in the background")
    eventually(lambda: reason in local_cluster.ask("why", name).out, seconds=PATIENCE)
    says(local_cluster.ask("status", name), 0, "placing", reason)
    says(local_cluster.ask("why", name), 0, "worker-0", "worker-1", reason, "too little cpus")
    says(local_cluster.ask("stop", name), 0)
    nothing_is_left(local_cluster, name)


# What is around the job.


def test_a_master_that_does_not_answer_is_named_and_waited_for(start, job, name):
    running = start("run", job(), "--master", "127.0.0.1:1")
    running.until("not registered with a Mesos master (127.0.0.1:1: Connection refused)")
    asked = time.monotonic()
    says(running.end(signal.SIGINT), 130, f"The job {name} was stopped: Ctrl-C")
    assert time.monotonic() - asked < 15


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("blocked/state.db", "blocked of the state file"),
        ("missing/state.db", "missing of the state file does not exist"),
        ("text.db", "text.db is damaged (file is not a database)"),
    ],
)
def test_a_state_file_that_cannot_be_used_is_refused(command_line, job, tmp_path, path, sentence):
    (tmp_path / "blocked").touch()
    (tmp_path / "text.db").write_text("not a database but a text\n" * 100)
    ended = command_line.ask("run", job(), "--state", f"sqlite:///{tmp_path}/{path}")
    says(ended, 8, "The state store: ", sentence)


def test_a_work_directory_that_cannot_be_made_is_refused(command_line, job, tmp_path):
    (tmp_path / "blocked").touch()
    ended = command_line.ask("run", job(), "--work-dir", tmp_path / "blocked" / "home")
    says(ended, 1, f"{tmp_path}/blocked")


def test_a_wish_that_cannot_be_fulfilled_waits_and_says_why(start, job, local_cluster, name):
    running = start("run", job(worker={"count": 1, "placement_constraint": "rack:IS:r1", **SMALL}))
    running.until("3 offers rejected by placement rule rack:IS:r1")
    says(running.end(signal.SIGINT), 130, "placing", f"The job {name} was stopped: Ctrl-C")
    nothing_is_left(local_cluster, name)


def test_masters_whose_zookeeper_does_not_answer_are_named_and_waited_for(start, job, tmp_path):
    state = f"sqlite:///{tmp_path}/state.db"
    running = start("run", job(), "--master", "zk://127.0.0.1:1/mesos", "--state", state)
    running.until("(ZooKeeper at zk://127.0.0.1:1/mesos does not answer)")
    says(running.end(signal.SIGINT), 130, "was stopped")


def test_state_in_a_zookeeper_that_is_not_there_is_refused(local_cluster, job):
    ended = local_cluster.ask("run", job(), "--state", "zk://127.0.0.1:1/jobs")
    says(ended, 8, "The state store: No ZooKeeper server of zk://127.0.0.1:1/jobs answered")
    assert "Connection dropped" not in ended.out
