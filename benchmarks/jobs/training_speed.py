"""How fast a training is under us beside the same by hand, and while it publishes checkpoints.

Read it so: steps per second of the same training ``by hand`` (``python job.py``), ``under us`` (the
task runner starts it, as in a container), and ``publishing`` (under us with ``checkpoints.uri``),
in turn; ``ratio`` is under us over by hand in the same round, ``publish`` is publishing over under
us (1: nothing is lost), and the last line has the medians of all rounds. The training saves equally
often in all of them. ``runner`` is the CPU of the task runner while it publishes, as a share of
what the training used: the most that publishing can cost where no core is left over. The S3 server
runs on this machine, at the lowest priority.

    python -m benchmarks.jobs.training_speed --python .venvs/tensorflow-2.21.0/bin/python
        [--rounds 5] [--seconds 60] [--megabytes 100] [--save-seconds 20] [--json FILE]

"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import figures
from benchmarks.jobs.moto_process import BUCKET, KEYS, moto_server
from dcos_tensorflow.task.pack import build_zipapp

ROOT = Path(__file__).resolve().parents[2]
WARM_UP_SECONDS = 5

HAND, OURS, PUBLISHING = WAYS = ("by hand", "under us", "publishing")

JOB = """
import json, os, time
import tensorflow as tf

seconds, megabytes, save_seconds = {seconds}, {megabytes}, {save_seconds}
variable = tf.Variable(tf.random.normal([megabytes * 250, 1000]))
small = tf.Variable(tf.random.normal([500, 500]))
checkpoint = tf.train.Checkpoint(variable=variable, small=small)
manager = tf.train.CheckpointManager(checkpoint, os.environ["CHECKPOINT_DIR"], max_to_keep=2)

@tf.function
def step():
    rows = variable[:500]
    small.assign(tf.tanh(tf.matmul(rows[:, :500], small)))
    variable[:500].assign(rows * 0.999)

def runner_cpu():
    fields = open("/proc/%d/stat" % os.getppid()).read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

def run(until):
    steps = saved = 0
    began = last = time.monotonic()
    while time.monotonic() < began + until:
        step()
        steps += 1
        if time.monotonic() >= last + save_seconds:
            manager.save()
            last = time.monotonic()
    return steps, time.monotonic() - began

run({warm_up})
cpu, theirs = time.process_time(), runner_cpu()
steps, took = run(seconds)
with open("measured.json", "w") as file:
    json.dump([steps / took, time.process_time() - cpu, runner_cpu() - theirs], file)
"""


@dataclass(frozen=True)
class Measured:
    """Steps per second, and the share of CPU that the runner took beside the training."""

    speed: float
    runner: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what we cost a training.")
    # Each training runs in a directory of its own: the path must not depend on ours.
    python = ROOT / ".venvs/tensorflow-2.21.0/bin/python"
    parser.add_argument("--python", type=os.path.abspath, default=str(python))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--save-seconds", type=float, default=20.0)
    figures.add_option(parser)
    arguments = parser.parse_args()
    ratios: dict[str, list[float]] = {"ratio": [], "publish": []}
    print(f"{'round':>5}" + "".join(f" {way:>10}" for way in (*WAYS, *ratios, "runner")))
    with tempfile.TemporaryDirectory(prefix="training-speed-") as folder:
        runner = build_zipapp(Path(folder) / "task-runner.pyz", storage=True)
        for number in range(arguments.rounds):
            found = {}
            # The first one finds other caches: the order changes.
            turn = number % len(WAYS)
            for way in WAYS[turn:] + WAYS[:turn]:
                sandbox = Path(folder) / f"{number}-{way.replace(' ', '-')}"
                with moto_server(nice=19) as url:
                    found[way] = measure(runner, sandbox, way, url, arguments)
            ratios["ratio"].append(found[OURS].speed / found[HAND].speed)
            ratios["publish"].append(found[PUBLISHING].speed / found[OURS].speed)
            speeds = "".join(f" {found[way].speed:>10.1f}" for way in WAYS)
            newest = "".join(f" {values[-1]:>10.3f}" for values in ratios.values())
            print(f"{number + 1:>5}{speeds}{newest} {found[PUBLISHING].runner:>10.1%}", flush=True)
    medians = {name: statistics.median(values) for name, values in ratios.items()}
    print("median " + ", ".join(f"{name} {value:.3f}" for name, value in medians.items()))
    names = {"training_ratio": "ratio", "training_publishing_ratio": "publish"}
    figures.write(arguments.json, {key: medians[name] for key, name in names.items()})


def measure(
    runner: Path, sandbox: Path, way: str, url: str, arguments: argparse.Namespace
) -> Measured:
    """Run the training once in this way; ``url`` is the S3 server's."""
    sandbox.mkdir()
    values = {
        "seconds": arguments.seconds,
        "megabytes": arguments.megabytes,
        "save_seconds": arguments.save_seconds,
        "warm_up": WARM_UP_SECONDS,
    }
    (sandbox / "job.py").write_text(JOB.format(**values))
    spec = {
        "version": 1,
        "service": "benchmark",
        "task": "chief-0",
        "cluster": {"epoch": 1},
        "job": {"name": "job"},
        "cpus": os.cpu_count(),
    }
    if way == PUBLISHING:
        writer = {"lineage": "benchmark", "generation": 1, "owner": "chief-0__1"}
        place = {"uri": f"s3://{BUCKET}/job", "interval_seconds": 5, "keep": 2, "writer": writer}
        spec.update(checkpoints=place, s3={"endpoint_url": url, "region": "us-east-1"})
    environment = {**os.environ, **KEYS}
    if way == HAND:
        program, environment["CHECKPOINT_DIR"] = "job.py", str(sandbox / "checkpoints")
    else:
        program, environment["MESOS_SANDBOX"] = str(runner), str(sandbox)
        environment["TASK_RUNNER_SPEC"] = json.dumps(spec)
    ended = subprocess.run(
        [arguments.python, program],
        check=False,
        cwd=sandbox,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if ended.returncode:
        raise SystemExit(ended.stderr.decode(errors="replace")[-3000:])
    if way == PUBLISHING and b"checkpoints: published" not in ended.stderr:
        raise SystemExit("nothing was published: train for longer")
    speed, training, of_runner = json.loads((sandbox / "measured.json").read_text())
    return Measured(speed, of_runner / max(training, 0.01))


if __name__ == "__main__":
    main()
