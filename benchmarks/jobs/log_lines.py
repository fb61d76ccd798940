"""How fast a job may print through its task runner, beside a bare pipe.

    python -m benchmarks.jobs.log_lines --json build/bench/log_lines.json

A runner is packed as the scheduler packs it. Its job writes lines as fast as they are taken: each
tells a step and a loss, which is what costs the runner most, or nothing of these. The bare pipe has
a reader that throws away what it reads. Of several rounds the best counts, so that a busy machine
is not taken for a slow program.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import figures
from benchmarks.jobs.runner_memory import free_port
from dcos_tensorflow.task.pack import build_zipapp

#: Writes so many lines of this text and a number, and says how many seconds that has taken.
JOB = """
import os, sys, time
lines, text, told = int(sys.argv[1]), sys.argv[2], sys.argv[3]
many = 1000
began = time.monotonic()
for first in range(0, lines, many):
    left = "".join(text % number for number in range(first, first + many)).encode()
    while left:
        left = left[os.write(1, left):]
with open(told, "w") as file:
    file.write(str(time.monotonic() - began))
"""
NUMBERS = "INFO:train: step %d loss 0.123456 accuracy 0.98 lr 0.001\n"
WORDS = "2026-11-26 12:00:00 I reading a file of the data, number %d\n"


def main() -> int:
    """Measure, print, and write the figures where ``--json`` says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    figures.add_option(parser)
    parser.add_argument("--lines", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runner = build_zipapp(folder / "task-runner.pyz")

        def best(text: str, runner: Path | None) -> float:
            lines: int = arguments.lines
            rounds = range(arguments.rounds)
            return max(lines / _seconds(folder, lines, text, runner) for _ in rounds)

        found = {
            "runner_lines_per_second": best(NUMBERS, runner),
            "runner_plain_lines_per_second": best(WORDS, runner),
            "bare_pipe_lines_per_second": best(NUMBERS, None),
        }
    for name, value in found.items():
        print(f"{name:30} {value:12,.0f}")
    figures.write(arguments.json, found)
    return 0


def _seconds(folder: Path, lines: int, text: str, runner: Path | None) -> float:
    """Return how long a job's lines take, through a runner or through a bare pipe."""
    told = folder / "seconds"
    job = [sys.executable, "-c", JOB, str(lines), text, str(told)]
    if runner is None:
        with subprocess.Popen(job, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            while os.read(process.stdout.fileno(), 1 << 16):
                pass
        return float(told.read_text())
    script = folder / "job.py"
    script.write_text(JOB)
    spec = {
        "version": 1,
        "service": "benchmark",
        "task": "worker-0",
        "cluster": {"epoch": 1},
        "job": {
            "contract": "command",
            "command": f'exec "{sys.executable}" "{script}" {lines} "$LINE" "{told}"',
        },
    }
    environment = {
        "PATH": os.environ["PATH"],
        "MESOS_SANDBOX": str(folder),
        "TASK_RUNNER_SPEC": json.dumps(spec),
        "TASK_RUNNER_PORT": str(free_port()),
        "TASK_RUNNER_TOKEN": "of the benchmark",
        "LINE": text,
    }
    with (folder / "stdout").open("wb") as output:
        subprocess.run(
            [sys.executable, str(runner)],
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    return float(told.read_text())


if __name__ == "__main__":
    sys.exit(main())
