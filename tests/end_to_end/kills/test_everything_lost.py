"""A training whose checkpoints are in S3, and everything else is lost, again and again.

The gate trains without TensorFlow.
``LOSSES=20`` plays the long version; a seed in ``LOSSES_SEED`` plays the same moments again.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command_line import NEWEST, NO_KERAS, OLD, CommandLine
from data_files import PROGRAMS
from servers.s3_server import KEY_ID, SECRET_KEY, S3Server
from waiting import eventually

LOSSES = int(os.environ.get("LOSSES", "1"))
SEED = int(os.environ.get("LOSSES_SEED", "1"))
TRAINER = PROGRAMS / "s3_trainer.py"
#: The same without TensorFlow, and the environment that it runs in.
FILES = TRAINER.with_name("s3_files.py")
WITHOUT = sys.prefix
#: Generous: an unhurried machine needs a tenth of it.
DEADLINE = float(os.environ.get("LOSSES_DEADLINE", "180"))
INTERVAL_SECONDS = 1.0
#: How long after the interval a small checkpoint may need on a busy machine.
UPLOAD_SECONDS = 5.0
SMALL = {"cpus": 0.5, "mem": 1024, "disk": 100}
JOBS = {
    "parameter_server": {
        "chief": {"count": 1, **SMALL},
        "parameter_server": {"count": 2, **SMALL},
        "worker": {"count": 1, **SMALL},
    },
    "multi_worker": {"parameter_server": {"count": 0}, "worker": {"count": 2, **SMALL}},
    "independent": {"parameter_server": {"count": 0}, "worker": {"count": 1, **SMALL}},
}


class Training:
    """One job and one bucket, and a new cluster for each life of it."""

    def __init__(self, s3: S3Server, folder: Path, strategy: str) -> None:
        self.s3 = s3
        self.folder = folder
        self.strategy = strategy
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.keys = folder / "keys"
        self.keys.write_text(
            f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET_KEY}\n"
        )
        self.lives = 0
        self.running: list[tuple[CommandLine, subprocess.Popen[str]]] = []

    def begin(self, environment: str, **checkpoints: object) -> None:
        """A new cluster, and the job on it: nothing of an earlier one is known to them."""
        self.lives += 1
        (self.marks / "finish").unlink(missing_ok=True)
        home = CommandLine(self.folder / f"home-{self.lives}")
        options = self.folder / f"job-{self.lives}.json"
        options.write_text(json.dumps(self.options(environment, **checkpoints)))
        up = home("local", "up", "--agents", "2", "--cpus", "4", "--mem", "6000", "--gpus", "0")
        assert up.code == 0, up.out
        self.running.append((home, home.start("run", options, "--yes")))

    def options(self, environment: str, **checkpoints: object) -> dict[str, object]:
        trainer = FILES if environment == WITHOUT else TRAINER
        return {
            "service": {
                "name": "training",
                "job_cmd": f"{environment}/bin/python {trainer} {self.marks}",
                "python": environment,
                **NO_KERAS,
                "strategy": self.strategy,
                "kill_grace_seconds": 5,
                # Workers of a ParameterServerStrategy never end by themselves.
                "outcome_grace_seconds": 1,
            },
            "checkpoints": {
                "uri": f"s3://{self.s3.bucket}/job",
                "interval_seconds": INTERVAL_SECONDS,
                "keep": 3,
                **checkpoints,
            },
            "s3": {
                "endpoint_url": self.s3.url,
                "region": "us-east-1",
                "credentials": {"file": str(self.keys)},
            },
            **JOBS[self.strategy],
        }

    def lose_everything(self) -> None:
        """Kill each process of the cluster at once."""
        home, run = self.running.pop()
        while found := processes_of(home.home, run.pid):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        run.communicate()
        # A request that they have sent may be carried out after their end.
        self.s3.settle()

    def end(self) -> str:
        """Let the job finish; return what its command has printed."""
        (self.marks / "finish").write_text(str(self.newest_save() + 50))
        _, run = self.running[-1]
        out, _ = run.communicate(timeout=DEADLINE)
        assert run.returncode == 0, out[-4000:]
        self.lose_everything()
        return out

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        eventually(condition, seconds=DEADLINE, what=lambda: f"{what}: {self.told()}")

    def told(self) -> str:
        """Return what the scheduler and the tasks of this life have logged at last."""
        home, _ = self.running[-1]
        logs = [home.home / "services" / "training" / "scheduler.log"]
        logs += sorted((home.home / "local" / "work").rglob("runs/*/stderr"))
        return "\n".join(f"{log.parent}:\n{log.read_text()[-3000:]}" for log in logs)

    def close(self) -> None:
        while self.running:
            self.lose_everything()

    def saves(self) -> list[tuple[float, int]]:
        file = self.marks / "saves"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(float(at), int(step)) for at, step in map(str.split, lines)]

    def newest_save(self) -> int:
        return self.saves()[-1][1] if self.saves() else 0

    def restored(self) -> list[tuple[str, int]]:
        file = self.marks / "restored"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(task, int(step)) for task, step in map(str.split, lines)]

    def published(self) -> int:
        if "job/latest.json" not in self.s3.list_keys("job/latest"):
            return 0
        latest = self.s3.client.get_object(Bucket=self.s3.bucket, Key="job/latest.json")
        published = json.loads(latest["Body"].read())["published"]
        return published[0]["step"] if published else 0


def processes_of(home: Path, *roots: int) -> list[int]:
    """Return the processes that have ``home`` in their environment, and all below them."""
    mark = str(home).encode()
    parents, found = {}, set(roots)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
                if mark in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found & set(parents))


@pytest.fixture
def training(s3: S3Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Training]:
    made = Training(s3, tmp_path, request.param)
    yield made
    made.close()


WITH_TENSORFLOW = [pytest.mark.tensorflow, pytest.mark.soak]


@pytest.mark.parametrize(
    ("training", "version"),
    [
        ("multi_worker", None),
        pytest.param("multi_worker", NEWEST, marks=WITH_TENSORFLOW),
        pytest.param("parameter_server", NEWEST, marks=WITH_TENSORFLOW),
    ],
    indirect=["training"],
)
@pytest.mark.timeout(300 + 120 * LOSSES)
def test_a_training_survives_the_loss_of_everything(training, tensorflow, version):
    environment = tensorflow(version) if version else WITHOUT
    dice = random.Random(SEED)
    members = 1 if training.strategy == "parameter_server" else 2
    published = 0
    for _ in range(LOSSES):
        earlier = len(training.saves())
        assert begin_again(training, environment, members) == [published] * members
        eventually(
            lambda published=published: training.published() > published,
            seconds=DEADLINE,
            what="a newer checkpoint",
        )
        moment = time.monotonic() + dice.uniform(0.0, 2 * INTERVAL_SECONDS)
        eventually(lambda moment=moment: time.monotonic() >= moment, what="the moment")
        training.lose_everything()
        published = training.published()
        # What is lost was trained in the last interval. A life before this one has trained some
        # of the same steps, and lost them.
        lost = [at for at, step in training.saves()[earlier:] if step >= published]
        assert not lost or lost[-1] - lost[0] < INTERVAL_SECONDS + UPLOAD_SECONDS
    assert begin_again(training, environment, members) == [published] * members
    if training.strategy == "multi_worker":
        lose_a_process_and_go_on_from_the_same_published_step(training, published)
    training.end()
    assert training.published() == training.newest_save()


def lose_a_process_and_go_on_from_the_same_published_step(training: Training, before: int) -> None:
    """Kill the process of one member of a gang of two that has begun at the step ``before``."""
    begun = len(training.restored())
    training.wait_for(lambda: training.published() > before, "a checkpoint")
    os.kill(process_of(training, "worker-1"), signal.SIGKILL)
    training.wait_for(lambda: len(training.restored()) >= begun + 2, "what is restored")
    first, second = (step for _, step in training.restored()[begun : begun + 2])
    assert first == second > before


def begin_again(training: Training, environment: str, members: int) -> list[int]:
    """Begin another life; return the step that each member goes on from."""
    before = len(training.restored())
    training.begin(environment)
    training.wait_for(lambda: len(training.restored()) >= before + members, "what is restored")
    return [step for _, step in training.restored()[before:]]


def process_of(training: Training, task: str) -> int:
    """Return the process of the user's code of ``task``."""
    home, run = training.running[-1]
    for pid in processes_of(home.home, run.pid):
        with contextlib.suppress(OSError):
            command = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
            environment = (Path("/proc") / str(pid) / "environ").read_bytes().split(b"\0")
            trains = {str(TRAINER).encode(), str(FILES).encode()} & set(command)
            if trains and f"TASK_NAME={task}".encode() in environment:
                return pid
    raise AssertionError(f"no process of {task}")


# Given weights are those of ``integration/storage`` and ``integration/task_storage``.
@pytest.mark.soak
@pytest.mark.tensorflow
@pytest.mark.timeout(500)
@pytest.mark.parametrize("training", ["independent"], indirect=True)
def test_a_new_tensorflow_begins_from_the_weights_of_an_old_one_that_was_lost(training, tensorflow):
    training.begin(tensorflow(OLD))
    training.wait_for(lambda: training.published() > 0, "a checkpoint")
    training.lose_everything()
    published, begun = training.published(), len(training.restored())
    bucket = f"s3://{training.s3.bucket}"
    training.begin(tensorflow(NEWEST), uri=f"{bucket}/other", initial_uri=f"{bucket}/job")
    training.wait_for(lambda: len(training.restored()) > begun, "what is restored")
    assert training.restored()[-1][1] == published > 0
    training.end()
