"""Steps per second of each strategy on the same model, with 1, 2 and 4 workers.

Each row is a training of processes on loopback, one thread of computing for each; the tasks that
the table names are all that runs. It writes the table of ``docs/strategies.md`` with ``--write``.

    python -m benchmarks.strategies --write [--steps 400] [--only multi_worker] [--json FILE]

About 5 minutes on two quiet cores. It needs an environment of TensorFlow with tf_keras, as ``make
test`` prepares it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOB = Path(__file__).with_name("job.py")
PAGE = ROOT / "docs" / "strategies.md"
BEGIN = "<!-- begin: written by python -m benchmarks.strategies -->"
END = "<!-- end -->"

WORKERS = (1, 2, 4)
#: Images in a batch of one worker, as in the job.
BATCH = 128
#: Longest time for one row, seconds; an unhurried one takes a tenth of it.
DEADLINE = 300.0


@dataclass(frozen=True)
class Way:
    """One way to distribute, as a row of the table has it."""

    #: What the job calls it: a value of service.strategy, and what is special about it.
    name: str
    #: How the training loop is written.
    loop: str
    #: The numbers of workers it is measured with.
    workers: tuple[int, ...] = WORKERS
    chiefs: int = 0
    servers: int = 0
    #: Whether every worker computes a batch of its own in each step.
    together: bool = False


WAYS = (
    Way("independent", "Keras `fit`", workers=(1,)),
    Way("multi_worker", "Keras `fit`", together=True),
    Way("parameter_server, fit", "Keras `fit`", chiefs=1, servers=1),
    Way("parameter_server", "`ClusterCoordinator`, 20 steps at a time", chiefs=1, servers=1),
    Way("between_graph", "`MonitoredTrainingSession`", servers=1),
)


@dataclass(frozen=True)
class Row:
    """What was measured of one way with one number of workers."""

    way: Way
    workers: int
    steps_per_second: float

    @property
    def images_per_second(self) -> float:
        return self.steps_per_second * BATCH * (self.workers if self.way.together else 1)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strategies", description=(__doc__ or "").splitlines()[0]
    )
    python = ROOT / ".venvs/tensorflow-2.21.0/bin/python"
    parser.add_argument("--python", type=os.path.abspath, default=str(python))
    parser.add_argument("--steps", type=int, default=400, help="a multiple of 20")
    parser.add_argument("--only", action="append", default=[], metavar="STRATEGY")
    parser.add_argument("--json", type=Path, help="write what was measured to this file")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args(arguments)
    began, rows = time.monotonic(), []
    for way in WAYS:
        if options.only and way.name.partition(",")[0] not in options.only:
            continue
        for workers in way.workers:
            row = Row(way, workers, measure(way, workers, options.python, options.steps))
            rows.append(row)
            print(f"{time.monotonic() - began:6.1f} s  {line(row, rows)}", flush=True)
    if options.json:
        found = {f"{row.way.name} x{row.workers}": row.steps_per_second for row in rows}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.write:
        write_into(PAGE, table(rows))
    return 0


def measure(way: Way, workers: int, python: str, steps: int) -> float:
    """Train once; return the steps of all workers together per second."""
    counts = {"chief": way.chiefs, "ps": way.servers, "worker": workers}
    cluster = {job: addresses(count) for job, count in counts.items() if count}
    first = "chief" if way.chiefs else "worker"
    with contextlib.ExitStack() as running, tempfile.TemporaryDirectory() as folder:
        processes = {
            (job, index): running.enter_context(
                begun(way, python, steps, cluster=cluster, job=job, index=index, folder=folder)
            )
            for job, members in cluster.items()
            for index in range(len(members))
        }
        out, _ = processes[first, 0].communicate(timeout=DEADLINE)
        if processes[first, 0].returncode:
            raise SystemExit(f"{way.name} with {workers} workers failed:\n{logs(folder)}")
    measured = json.loads(out.splitlines()[-1])
    return float(measured["steps"] / measured["seconds"])


@contextlib.contextmanager
def begun(
    way: Way,
    python: str,
    steps: int,
    *,
    cluster: dict[str, list[str]],
    job: str,
    index: int,
    folder: str,
) -> Iterator[subprocess.Popen[str]]:
    """Start a task; whatever happens, it ends with the training."""
    threads = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "2"}
    environment = {**os.environ, **threads, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    if sum(map(len, cluster.values())) > 1 or way.together:
        task = {"type": job, "index": index}
        environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    with (
        (Path(folder) / f"{job}-{index}").open("w") as log,
        subprocess.Popen(
            [python, str(JOB), way.name, str(steps)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def addresses(count: int) -> list[str]:
    """Return addresses on loopback that no process listens on."""
    with contextlib.ExitStack() as probes:
        found = []
        for _ in range(count):
            probe = probes.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            found.append(f"127.0.0.1:{probe.getsockname()[1]}")
        return found


def logs(folder: str) -> str:
    """Return the end of what each task wrote."""
    files = sorted(Path(folder).iterdir())
    return "\n".join(f"{file.name}: {file.read_text()[-1500:]}" for file in files)


def table(rows: Sequence[Row]) -> str:
    """Return what was measured as a table of Markdown."""
    head = ("strategy", "training loop", "workers", "steps/s", "images/s", "to one worker alone")
    return "\n".join(
        (f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(line(row, rows) for row in rows))
    )


def line(row: Row, rows: Sequence[Row]) -> str:
    """Return the row of the table; the last cell compares it with the first row of all."""
    alone = rows[0].images_per_second if rows[0].way is WAYS[0] else 0.0
    compared = f"{row.images_per_second / alone:.2f}" if alone else ""
    name = row.way.name.partition(",")[0]
    speeds = f"{row.steps_per_second:.0f} | {row.images_per_second:,.0f}"
    return f"| `{name}` | {row.way.loop} | {row.workers} | {speeds} | {compared} |"


def write_into(page: Path, table: str) -> None:
    """Write the table between the marks of the page."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} does not hold the lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
