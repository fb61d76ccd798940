"""A sweep and a batch whose scheduler and processes are killed: the same comes out.

Plain programs take the place of TensorFlow: what is looked at is which units run, and what of it
is kept.
"""

import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command_line import NEWEST
from embedded_mesos import AgentConfig, EmbeddedCluster
from jobs.worked_units import Work
from servers.s3_server import S3Server

pytestmark = pytest.mark.timeout(400)

SMALL = {"count": 1, "cpus": 0.1, "mem": 64, "disk": 10}

TRIAL = """
import os, pathlib, sys, time
marks, rate = pathlib.Path(sys.argv[1]), float(os.environ["PARAM_RATE"])
kept = pathlib.Path(os.environ["CHECKPOINT_DIR"]) / "step"
begun = int(kept.read_text()) if kept.exists() else 0
name = pathlib.Path(os.environ["CHECKPOINT_DIR"]).name
(marks / f"{name}.{os.getpid()}").write_text(str(os.getpid()))
for step in range(begun + 1, 11):
    print(f"step {step} score {1 - abs(rate - 0.3) - 0.1 / step:.6f}", flush=True)
    new = kept.with_suffix(".new")
    new.write_text(str(step))
    new.replace(kept)
    time.sleep(0.02)
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


SILENT_TRIAL = """
import os, time
import tensorflow as tf
rate = float(os.environ["PARAM_RATE"])
with tf.summary.create_file_writer(os.path.join(os.environ["LOG_DIR"], "validation")).as_default():
    for step in range(40):
        tf.summary.scalar("epoch_score", rate - 1 / (step + 1), step=step)
        tf.summary.flush()
        time.sleep(0.2)
"""


class Program(Work):
    """A program as the job, on a cluster of three agents; each of its processes leaves a mark."""

    def __init__(
        self,
        folder: Path,
        name: str,
        code: str,
        *,
        python: str = sys.executable,
        **sections: Mapping[str, Any],
    ) -> None:
        self.marks = folder / "marks"
        program = folder / "program.py"
        job = {"job_cmd": f"{python} {program} {self.marks}", "python": sys.executable}
        super().__init__(folder, name, job, worker=SMALL, **sections)
        self.marks.mkdir()
        program.write_text(code)

    @contextmanager
    def cluster(self) -> Iterator[str]:
        agents = [AgentConfig(address=f"127.0.0.{n}", cpus=1, mem=1024) for n in (1, 2, 3)]
        with EmbeddedCluster(agents, self.folder / "mesos") as cluster:
            yield cluster.master

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
            self.ends_well(self.scheduler(master))


def a_sweep(folder: Path) -> Program:
    sweep = {
        "parameters": {"rate": {"uniform": [0, 1]}},
        "objective": {"metric": "score"},
        "max_trials": 12,
        "parallelism": 3,
        "early_stopping": "asha",
        "seed": 1,
    }
    return Program(
        folder, "searched", TRIAL, sweep=sweep, checkpoints={"uri": str(folder / "kept")}
    )


def batch(folder: Path, shards: int) -> Program:
    inputs = {"range": [0, 5 * shards - 2, 5]}
    output = str(folder / "out" / "part-{index:03}")
    given = {"inputs": inputs, "output": output, "parallelism": 4}
    return Program(folder, "worked", SHARD, batch=given)


def check_shards(work: Program, shards: int) -> None:
    found = sorted((work.folder / "out").glob("[!.]*"))
    assert [file.name for file in found] == [f"part-{n:03}" for n in range(shards)]
    numbers = [int(line) for file in found for line in file.read_text().split()]
    assert numbers == list(range(5 * shards - 2))
    units = work.document()["units"]
    assert {unit["state"] for unit in units} == {"succeeded"}
    assert sum(unit["tries"] for unit in units) > shards, "a killed shard was tried again"


def test_a_sweep_finds_the_same_whatever_is_killed(tmp_path: Path) -> None:
    quiet, rough = a_sweep(tmp_path / "quiet"), a_sweep(tmp_path / "rough")
    quiet.play(kills=0)
    rough.play(kills=2)
    assert rough.finds_the_same_as(quiet)
    assert len(quiet.leaderboard()) == 12
    assert any(row[2] is not None for row in quiet.leaderboard())


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
@pytest.mark.parametrize("seed", range(2, 13))
def test_a_sweep_finds_the_same_whatever_many_times_is_killed(tmp_path: Path, seed: int) -> None:
    quiet, rough = a_sweep(tmp_path / "quiet"), a_sweep(tmp_path / "rough")
    quiet.play(kills=0)
    rough.play(kills=3, seed=seed)
    assert rough.finds_the_same_as(quiet)


@pytest.mark.soak
@pytest.mark.tensorflow
def test_trials_are_judged_by_event_files_where_they_print_nothing(
    tmp_path: Path, tensorflow: Callable[[str], str]
) -> None:
    sweep = {
        "parameters": {"rate": [0.9, 0.1, 0.5]},
        "objective": {"metric": "val_score"},
        "method": "grid",
        "parallelism": 1,
        "early_stopping": "asha",
    }
    python = f"{tensorflow(NEWEST)}/bin/python"
    work = Program(tmp_path, "silent", SILENT_TRIAL, python=python, sweep=sweep)
    work.play(kills=0)
    found = work.document()["units"]
    assert [unit["parameters"]["rate"] for unit in found] == [0.9, 0.5, 0.1]
    assert [unit["value"] for unit in found[:2]] == [pytest.approx(r - 1 / 40) for r in (0.9, 0.5)]
    assert [unit["state"] for unit in found] == ["succeeded", "succeeded", "pruned"]


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
    work = Program(tmp_path, "listed", LISTED, batch=given, s3=s3.options(tmp_path))
    work.play(kills=0)
    keys = [f"out/part-{index}" for index in range(7)]
    assert s3.list_keys("out/") == keys
    found = [s3.client.get_object(Bucket="bucket", Key=key)["Body"].read() for key in keys]
    assert b"".join(found).decode().split() == [f"s3://bucket/{name}" for name in names]
