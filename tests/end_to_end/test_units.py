"""A sweep and a batch whose scheduler and processes are killed: the same comes out.

Plain programs take the place of TensorFlow: what is looked at is which units run, and what of it
is kept.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.local.cluster import AgentConfig, EmbeddedCluster
from s3_server import S3Server
from waiting import eventually

pytestmark = pytest.mark.timeout(400)

#: Generous: an unhurried machine needs a tenth of it.
DEADLINE = 240.0
SMALL = {"count": 1, "cpus": 0.1, "mem": 64, "disk": 10}

TRIAL = """
import os, pathlib, sys, time
marks, rate = pathlib.Path(sys.argv[1]), float(os.environ["PARAM_RATE"])
kept = pathlib.Path(os.environ["CHECKPOINT_DIR"]) / "step"
begun = int(kept.read_text()) if kept.exists() else 0
name = pathlib.Path(os.environ["CHECKPOINT_DIR"]).name
(marks / f"{name}.{os.getpid()}").write_text(str(os.getpid()))
for step in range(begun + 1, 11):
    time.sleep(0.02)
    print(f"step {step} score {1 - abs(rate - 0.3) - 0.1 / step:.6f}", flush=True)
    kept.write_text(str(step))
"""

SHARD = """
import os, pathlib, sys, time
marks, index = pathlib.Path(sys.argv[1]), os.environ["SHARD_INDEX"]
(marks / f"{index}.{os.getpid()}").write_text(str(os.getpid()))
with open(os.environ["SHARD_OUTPUT"], "w") as file:
    for number in range(int(os.environ["SHARD_BEGIN"]), int(os.environ["SHARD_END"])):
        file.write(f"{number}\\n")
        file.flush()
        time.sleep(0.01)
"""


class Work:
    """A service with units on a cluster of three agents; its scheduler is started and killed."""

    def __init__(self, folder: Path, name: str, code: str, **sections: Mapping[str, Any]) -> None:
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.folder, self.name = folder, name
        program = folder / "program.py"
        program.write_text(code)
        self.options = folder / "options.json"
        service = {
            "name": name,
            "job_cmd": f"{sys.executable} {program} {self.marks}",
            "python": sys.executable,
        }
        self.options.write_text(
            json.dumps(
                {
                    "service": service,
                    "worker": SMALL,
                    "retry": {"initial_backoff_seconds": 0.2},
                    **sections,
                }
            )
        )
        self.state = f"sqlite:///{folder}/state.db"

    @contextmanager
    def cluster(self) -> Iterator[str]:
        agents = [AgentConfig(address=f"127.0.0.{n}", cpus=1, mem=1024) for n in (1, 2, 3)]
        with EmbeddedCluster(agents, self.folder / "mesos") as cluster:
            yield cluster.master

    def scheduler(self, master: str) -> subprocess.Popen[bytes]:
        with (self.folder / "scheduler.log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "dcos_tensorflow", "scheduler", str(self.options)),
                    *("--master", master, "--state", self.state, "--artifacts", "file"),
                    *("--artifacts-dir", str(self.folder / "artifacts"), "--exit-when-done"),
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "DCOS_TENSORFLOW_HOME": str(self.folder / "home")},
            )

    def begun(self) -> set[str]:
        """Return the units of which a process has begun."""
        return {mark.name.partition(".")[0] for mark in self.marks.iterdir()}

    def kill_a_process(self, dice: random.Random) -> bool:
        """Kill one of the processes that have begun and still run; say whether there was one."""
        marks = sorted(self.marks.iterdir())
        dice.shuffle(marks)
        for mark in marks:
            pid = int(mark.name.rpartition(".")[2])
            try:
                # Its number may be another's by now.
                if str(self.marks).encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    continue
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, FileNotFoundError):
                continue
            return True
        return False

    def play(self, kills: int, seed: int = 1) -> None:
        """Work on everything; kill ``kills`` schedulers, and a process with each."""
        dice = random.Random(seed)
        with self.cluster() as master:
            for number in range(kills):
                process = self.scheduler(master)
                wanted = 2 + 3 * number
                self.wait(lambda n=wanted: len(self.begun()) >= n, f"{wanted} units")
                self.wait(lambda: self.kill_a_process(dice), "a process to kill")
                if number % 2:
                    self.wait(lambda n=wanted: len(self.begun()) > n, "one more unit")
                process.kill()
                process.wait()
            code = self.scheduler(master).wait(timeout=DEADLINE)
        assert code == 0, (self.folder / "scheduler.log").read_text()[-4000:]

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        eventually(condition, seconds=DEADLINE, what=what)

    def document(self) -> dict[str, Any]:
        """Return what became of each unit, as ``sweep --json`` shows it."""
        from dcos_tensorflow.api.views import units
        from dcos_tensorflow.cli.services.stored import stored_state

        state = stored_state(self.state, self.name)
        assert state is not None
        return dict(units.Units().shown(state))


def a_sweep(folder: Path) -> Work:
    folder.mkdir()
    sweep = {
        "parameters": {"rate": {"uniform": [0, 1]}},
        "objective": {"metric": "score"},
        "max_trials": 12,
        "parallelism": 3,
        "early_stopping": "asha",
        "seed": 1,
    }
    return Work(folder, "searched", TRIAL, sweep=sweep, checkpoints={"uri": str(folder / "kept")})


def leaderboard(work: Work) -> list[tuple[Any, ...]]:
    found = work.document()["units"]
    return [(u["number"], u["parameters"], u["value"], u["stopped_at"]) for u in found]


def batch(folder: Path, shards: int) -> Work:
    inputs = {"range": [0, 5 * shards - 2, 5]}
    output = str(folder / "out" / "part-{index:03}")
    given = {"inputs": inputs, "output": output, "parallelism": 4}
    return Work(folder, "worked", SHARD, batch=given)


def check_shards(work: Work, shards: int) -> None:
    found = sorted((work.folder / "out").iterdir())
    assert [file.name for file in found] == [f"part-{n:03}" for n in range(shards)]
    numbers = [int(line) for file in found for line in file.read_text().split()]
    assert numbers == list(range(5 * shards - 2))
    units = work.document()["units"]
    assert {unit["state"] for unit in units} == {"succeeded"}
    assert sum(unit["tries"] for unit in units) > shards, "whoever was killed was tried again"


def test_a_sweep_finds_the_same_whatever_is_killed(tmp_path: Path) -> None:
    quiet, rough = a_sweep(tmp_path / "quiet"), a_sweep(tmp_path / "rough")
    quiet.play(kills=0)
    rough.play(kills=2)
    assert leaderboard(rough) == leaderboard(quiet)
    assert len(leaderboard(quiet)) == 12
    assert any(row[2] is not None for row in leaderboard(quiet))


def test_every_shard_is_written_once_whatever_is_killed(tmp_path: Path) -> None:
    work = batch(tmp_path, 40)
    work.play(kills=2)
    check_shards(work, 40)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 6))
def test_every_shard_is_written_once_whatever_many_times_is_killed(
    tmp_path: Path, seed: int
) -> None:
    work = batch(tmp_path, 150)
    work.play(kills=12, seed=seed)
    check_shards(work, 150)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_sweep_finds_the_same_whatever_many_times_is_killed(tmp_path: Path, seed: int) -> None:
    quiet, rough = a_sweep(tmp_path / "quiet"), a_sweep(tmp_path / "rough")
    quiet.play(kills=0)
    rough.play(kills=3, seed=seed)
    assert leaderboard(rough) == leaderboard(quiet)


LISTED = """
import os
with open(os.environ["SHARD_INPUTS"]) as inputs, open(os.environ["SHARD_OUTPUT"], "w") as output:
    output.write(inputs.read())
"""


@pytest.mark.soak
def test_a_batch_takes_its_input_from_s3_and_leaves_its_output_there(
    tmp_path: Path, s3: S3Server
) -> None:
    names = [f"in/{number:02}" for number in range(25)]
    for name in names:
        s3.client.put_object(Bucket="bucket", Key=name, Body=b"x")
    given = {
        "inputs": {"s3_prefix": "s3://bucket/in", "per_shard": 4},
        "output": "s3://bucket/out/",
        "parallelism": "auto",
    }
    work = Work(tmp_path, "listed", LISTED, batch=given, s3=s3.options(tmp_path))
    work.play(kills=0)
    keys = [f"out/part-{index}" for index in range(7)]
    assert s3.list_keys("out/") == keys
    found = [s3.client.get_object(Bucket="bucket", Key=key)["Body"].read() for key in keys]
    assert b"".join(found).decode().split() == [f"s3://bucket/{name}" for name in names]
