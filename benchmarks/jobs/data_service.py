"""A training whose input is the bottleneck, with 0, 1, 2, 4 data workers, beside the same by hand.

Read it so: images per second that reach the training, ``by hand`` (a DispatchServer, so many
WorkerServers and the training, each started as a Python process) and ``under us`` (the same script
as a job with ``data_worker.count``), in the same round; ``ratio`` is the second over the first.

Each image waits for 20 ms in one thread, as if it came from slow storage, and costs next to no CPU:
so that the figure shows what more workers bring on a machine of two cores, too. An input that costs
CPU has as much as there are cores. Without workers the training itself waits for each image.

    python -m benchmarks.jobs.data_service --python .venvs/tensorflow-2.21.0/bin/python
        [--workers 0 1 2 4] [--rounds 1] [--seconds 15] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks import figures

ROOT = Path(__file__).resolve().parents[2]
WARM_UP_SECONDS, DEADLINE_SECONDS = 4, 600
SMALL = {"cpus": 0.2, "mem": 700, "disk": 50}

#: Runs a training in a folder with so many data workers, by a Python.
Way = Callable[[Path, int, str], AbstractContextManager["subprocess.Popen[bytes]"]]

TRAINING = """
import json, os, time
import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing

def image(index):
    return tf.random.stateless_uniform([64, 64, 3], tf.stack([index, index]))

images = tf.data.Dataset.range(2**40).apply(testing.sleep(20_000)).map(image).batch(8)
if "TF_DATA_SERVICE" in os.environ:
    served = tf.data.experimental.service.distribute(
        "distributed_epoch", service=os.environ["TF_DATA_SERVICE"])
    images = images.apply(served)
steps = iter(images.prefetch(2))
mean = tf.Variable(0.0)

def train(seconds):
    seen, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        batch = next(steps)
        mean.assign(0.9 * mean + 0.1 * tf.reduce_mean(batch))
        seen += int(batch.shape[0])
    return seen / (time.monotonic() - began)

# All workers are to be there before it counts.
until = time.monotonic() + {deadline}
next(steps)
while not os.path.exists({go!r}) and time.monotonic() < until:
    next(steps)
train({warm_up})
with open({told!r}, "w") as file:
    json.dump(train({seconds}), file)
"""
DISPATCHER = """
import sys
import tensorflow as tf
service = tf.data.experimental.service
config = service.DispatcherConfig(
    port=int(sys.argv[1]), work_dir=sys.argv[2], fault_tolerant_mode=True)
server = service.DispatchServer(config)
print("is serving", flush=True)
server.join()
"""
WORKER = """
import sys
import tensorflow as tf
service = tf.data.experimental.service
config = service.WorkerConfig(dispatcher_address=sys.argv[1], worker_address=sys.argv[2],
    port=int(sys.argv[2].rpartition(":")[2]), heartbeat_interval_ms=1000)
server = service.WorkerServer(config)
print("is serving", flush=True)
server.join()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    python = ROOT / ".venvs/tensorflow-2.21.0/bin/python"
    parser.add_argument("--python", type=os.path.abspath, default=str(python))
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=15)
    figures.add_option(parser)
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    print("data workers    by hand   under us  ratio")
    for workers in arguments.workers:
        hand, ours = [], []
        for _ in range(arguments.rounds):
            hand.append(measured(by_hand, workers, arguments.python, arguments.seconds))
            ours.append(measured(under_us, workers, arguments.python, arguments.seconds))
        ratio = statistics.median(o / h for o, h in zip(ours, hand, strict=True))
        known = {"by_hand": statistics.median(hand), "under_us": statistics.median(ours)}
        print(
            f"{workers:>12} {known['by_hand']:>8.1f}/s {known['under_us']:>8.1f}/s {ratio:>6.2f}",
            flush=True,
        )
        for way, value in {**known, "ratio": ratio}.items():
            found[f"data_service_{workers}_{way}"] = value
    figures.write(arguments.json, found)


def measured(way: Way, workers: int, python: str, seconds: int) -> float:
    """Return images per second of one training."""
    with tempfile.TemporaryDirectory(prefix="data-service-") as name:
        folder = Path(name)
        told, go = folder / "told", folder / "go"
        text = TRAINING.format(
            deadline=DEADLINE_SECONDS,
            warm_up=WARM_UP_SECONDS,
            seconds=seconds,
            told=str(told),
            go=str(go),
        )
        (folder / "train.py").write_text(text)
        with way(folder, workers, python) as training:
            training_ends(training, folder, told)
        return float(json.loads(told.read_text()))


def training_ends(training: subprocess.Popen[bytes], folder: Path, told: Path) -> None:
    training.wait(DEADLINE_SECONDS)
    if training.returncode or not told.exists():
        logs = "\n".join(log.read_text()[-2_000:] for log in folder.glob("*.log"))
        raise SystemExit(f"the training failed:\n{logs}")


@contextlib.contextmanager
def by_hand(folder: Path, workers: int, python: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start dispatcher, workers and training as a person would, without the product."""
    processes: list[subprocess.Popen[bytes]] = []
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "1"}

    def start(name: str, *command: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [python, *command], cwd=folder, env=variables, stdout=log, stderr=log
            )
        processes.append(process)
        return process

    try:
        if workers:
            address = f"127.0.0.1:{free_port()}"
            start("dispatcher", "-c", DISPATCHER, address.rpartition(":")[2], f"{folder}/journal")
            for index in range(workers):
                own = f"127.0.0.1:{free_port()}"
                start(f"worker-{index}", "-c", WORKER, address, own)
            variables["TF_DATA_SERVICE"] = f"grpc://{address}"
        training = start("training", "train.py")
        logs = [folder / f"worker-{index}.log" for index in range(workers)]
        wait_for(lambda: all("is serving" in log.read_text() for log in logs), training)
        (folder / "go").touch()
        yield training
    finally:
        end(processes)


@contextlib.contextmanager
def under_us(folder: Path, workers: int, python: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the same as a user does."""
    options = {
        "service": {
            "name": "images",
            "python": python,
            "job_cmd": f"{python} {folder}/train.py",
            "strategy": "independent",
        },
        "worker": {"count": 1, **SMALL},
        "data_dispatcher": SMALL,
        "data_worker": {"count": workers, **SMALL},
    }
    (folder / "options.json").write_text(json.dumps(options))
    home = {**os.environ, "DCOS_TENSORFLOW_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "dcos_tensorflow"]
    with (folder / "run.log").open("wb") as log:
        training = subprocess.Popen(
            [*command, "run", "options.json", "--yes"],
            cwd=folder,
            env=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

    def serving() -> int:
        sandboxes = (folder / "home").rglob("stdout")
        return sum("a data-worker of tf.data is serving" in log.read_text() for log in sandboxes)

    try:
        wait_for(lambda: serving() >= workers, training)
        (folder / "go").touch()
        yield training
    finally:
        end([training])
        subprocess.run([*command, "local", "down"], env=home, capture_output=True, check=False)


def wait_for(condition: Callable[[], bool], training: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + DEADLINE_SECONDS
    while not condition() and training.poll() is None:
        if time.monotonic() > until:
            raise SystemExit("the data workers do not serve")
        time.sleep(0.2)


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
