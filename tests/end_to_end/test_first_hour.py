"""The first hour of a user who has a file that trains with Keras: what it takes, step by step.

Beside it the same by hand: a TF_CONFIG written for each task, and each task started in a terminal.
It prints a table (``pytest -s``). Thinking costs nothing: what is counted is typing and waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from command_line import EXAMPLES, NEWEST, OLD
from free_ports import free_port
from waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.tensorflow, pytest.mark.timeout(5400)]

DEADLINE = 600.0
#: More than anybody waits for: such a training ends when it is stopped.
ENDLESS = "--epochs 100000 --steps-per-epoch 50"
STEPS = (
    "one worker, to its end",
    "two workers, to their end",
    "two workers and a parameter server, to the end",
    "a third worker for a training that runs: until it trains",
    "a worker is killed: until the training goes on",
    "the curves: until they are shown",
    "the model: where is it",
)


@dataclass(frozen=True)
class Took:
    """What a step took of the user."""

    commands: int
    #: Files or variables written, other than the training's code, which is never edited.
    edits: int
    seconds: float

    @property
    def cells(self) -> str:
        return f"{self.commands} | {self.edits} | {self.seconds:.0f} s"


class Person:
    """A user at a terminal, in the folder of their file. Counts what they do."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self.left: list[subprocess.Popen[bytes]] = []
        self.commands = self.edits = 0
        self._began = time.monotonic()
        shutil.copy(EXAMPLES / "keras" / "train.py", folder)

    def begins(self) -> None:
        self.commands = self.edits = 0
        self._began = time.monotonic()

    def took(self) -> Took:
        return Took(self.commands, self.edits, time.monotonic() - self._began)

    def types(self, command: str) -> str:
        """Type a command and wait for its end; return what it says."""
        self.commands += 1
        ended = subprocess.run(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout[-4000:]}"
        return ended.stdout

    def leaves(self, command: str, out: Path, **more: str) -> subprocess.Popen[bytes]:
        """Type a command and turn to another terminal."""
        self.commands += 1
        with out.open("ab") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env={**self.environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.left.append(process)
        return process

    def leaves_nothing(self) -> None:
        for process in self.left:
            process.kill()
            process.wait()
        self.left.clear()


class ByHand:
    """The tasks of a training, each with a TF_CONFIG that the user has written."""

    def __init__(self, person: Person, python: str) -> None:
        self._person = person
        self._python = python
        self.tasks: dict[str, subprocess.Popen[bytes]] = {}
        self._configurations: dict[str, str] = {}

    def configure(self, **counts: int) -> None:
        members = {job: [f"127.0.0.1:{free_port()}" for _ in range(n)] for job, n in counts.items()}
        self._configurations = {
            f"{job}-{index}": json.dumps(
                {"cluster": members, "task": {"type": job, "index": index}}
            )
            for job, addresses in members.items()
            for index in range(len(addresses))
        }
        self._person.edits += len(self._configurations)

    def start(self, arguments: str = "") -> None:
        for task, configuration in self._configurations.items():
            self.tasks[task] = self._person.leaves(
                f"{self._python} -u train.py {arguments}", self.out(task), TF_CONFIG=configuration
            )

    def stop(self) -> None:
        self._person.commands += 1
        for process in self.tasks.values():
            process.kill()
        self.ended()

    def ended(self) -> None:
        """Wait until those that end by themselves have ended."""
        for process in self.tasks.values():
            process.wait(DEADLINE)
        self.tasks.clear()

    def out(self, task: str) -> Path:
        return self._person.folder / f"{task}.out"

    def epochs(self, task: str) -> int:
        return epochs_in(self.out(task).read_text()) if self.out(task).exists() else 0


def epochs_in(text: str) -> int:
    return len(re.findall(r"\bEpoch \d+/", text))


@pytest.mark.parametrize("version", [NEWEST, OLD])
def test_the_first_hour(tmp_path_factory, tensorflow, version):
    python = f"{tensorflow(version)}/bin/python"
    ours = list(with_us(tmp_path_factory.mktemp("ours"), version))
    hand = list(by_hand(tmp_path_factory.mktemp("hand"), python))
    assert len(ours) == len(hand) == len(STEPS)
    print(f"\nTensorFlow {version}")
    print("| step | commands | edits | time | by hand: commands | edits | time |")
    print("|---|---|---|---|---|---|---|")
    for step, us, them in zip(STEPS, ours, hand, strict=True):
        print(f"| {step} | {us.cells} | {them.cells} |")
    assert all(took.edits == 0 for took in ours)
    assert max(took.commands for took in ours) == 1


def with_us(folder: Path, version: str) -> Iterator[Took]:
    """Yield what each step takes with the service."""
    home = folder / "home"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "DCOS_TENSORFLOW_HOME": str(home)}
    job = folder / "mnist"
    job.mkdir()
    person = Person(job, environment)
    run = f"dcos-tensorflow run train.py --tensorflow {version}"
    try:
        said = []
        for flags in ("", " --name two --workers 2", " --name servers --workers 2 --ps 1"):
            person.begins()
            said.append(person.types(run + flags))
            yield person.took()
        person.begins()
        (model,) = re.findall(r"^ +model +(\S+)", said[-1], re.M)
        assert Path(model).expanduser().is_file()
        found = person.took()
        # A cluster that stays, and a training on it that is changed while it runs.
        person.types("dcos-tensorflow local up --agents 3 --cpus 4 --mem 16000")
        person.types(f"{run} --name grows --workers 2 --detach -- {ENDLESS}")
        trains(person, "worker-0")

        person.begins()
        person.types("dcos-tensorflow update start grows --set worker.count=3")
        trains(person, "worker-2")
        yield person.took()

        peer = process_of(home, "worker-0")
        person.begins()
        os.kill(process_of(home, "worker-1"), signal.SIGKILL)
        eventually(
            lambda: process_of(home, "worker-0") not in (0, peer),
            seconds=DEADLINE,
            what="another process of worker-0",
        )
        before = epochs_of(person, "worker-0")
        eventually(
            lambda: epochs_of(person, "worker-0") > before + 1,
            seconds=DEADLINE,
            what="the training after the kill",
        )
        yield person.took()

        person.begins()
        person.types("dcos-tensorflow update start grows --set service.use_tensorboard=true")
        eventually(lambda: shows_curves(board(person)), seconds=DEADLINE, what="the curves")
        yield person.took()

        yield found
    finally:
        subprocess.run(["dcos-tensorflow", "local", "down"], env=environment, check=False)
        person.leaves_nothing()


def by_hand(folder: Path, python: str) -> Iterator[Took]:
    """Yield what each step takes by hand, on one machine: as short as it gets."""
    job = folder / "mnist"
    (job / "checkpoints").mkdir(parents=True)
    (job / "logs").mkdir()
    person = Person(job, os.environ)
    gang = ByHand(person, python)
    try:
        person.begins()
        person.types(f"{python} train.py")
        yield person.took()

        begin_anew(job)
        person.begins()
        gang.configure(worker=2)
        gang.start()
        gang.ended()
        yield person.took()

        begin_anew(job)
        person.begins()
        gang.configure(chief=1, worker=2, ps=1)
        gang.start()
        assert gang.tasks["chief-0"].wait(DEADLINE) == 0
        gang.stop()
        yield person.took()

        begin_anew(job)
        gang.configure(worker=2)
        gang.start(ENDLESS)
        eventually(lambda: gang.epochs("worker-0") > 2, seconds=DEADLINE, what="the training")
        person.begins()
        gang.stop()
        gang.configure(worker=3)
        gang.start(ENDLESS)
        eventually(lambda: gang.epochs("worker-2") > 2, seconds=DEADLINE, what="the third")
        yield person.took()

        person.begins()
        gang.tasks["worker-1"].kill()
        gang.ended()
        before = gang.epochs("worker-0")
        gang.start(ENDLESS)
        eventually(
            lambda: gang.epochs("worker-0") > before + 1, seconds=DEADLINE, what="it goes on"
        )
        yield person.took()

        person.begins()
        port = free_port()
        tensorboard = Path(python).with_name("tensorboard")
        person.leaves(f"{tensorboard} --logdir logs --port {port}", job / "tensorboard.out")
        eventually(lambda: shows_curves(f"127.0.0.1:{port}"), seconds=DEADLINE, what="the curves")
        yield person.took()
        gang.stop()

        person.begins()
        assert "digits.keras" in person.types("find . -name '*.keras'")
        yield person.took()
    finally:
        person.leaves_nothing()


def begin_anew(job: Path) -> None:
    shutil.rmtree(job / "checkpoints")
    (job / "checkpoints").mkdir()
    for out in job.glob("*.out"):
        out.unlink()


def asked(person: Person, command: str) -> str:
    """Return what a command says that this test asks, not the person."""
    line = ["dcos-tensorflow", *command.split()]
    ended = subprocess.run(
        line, env=person.environment, capture_output=True, text=True, check=False
    )
    return ended.stdout


def epochs_of(person: Person, task: str) -> int:
    return epochs_in(asked(person, f"logs --name grows {task} --lines 10000"))


def trains(person: Person, task: str) -> None:
    eventually(lambda: epochs_of(person, task) > 2, seconds=DEADLINE, what=f"{task} training")


def board(person: Person) -> str:
    status = json.loads(asked(person, "status grows --json") or "{}")
    task = status.get("tasks", {}).get("tensorboard-0", {})
    return f"{task['address']}:{task['ports'][0]}" if task.get("state") == "running" else ""


def shows_curves(address: str) -> bool:
    """Say whether the TensorBoard at this address has a loss to show."""
    if not address:
        return False
    with contextlib.suppress(OSError, ValueError):
        url = f"http://{address}/data/plugin/scalars/tags"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return "epoch_loss" in json.load(answer).get("train", {})
    return False


def process_of(home: Path, task: str) -> int:
    """Return the process of a task's own code; 0 where there is none."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (path / "cmdline").read_bytes().decode(errors="replace")
            variables = (path / "environ").read_bytes().split(b"\0")
            of_the_job = str(home) in line and "/train.py" in line
            if of_the_job and f"TASK_NAME={task}".encode() in variables:
                return int(path.name)
    return 0
