"""What the task runner costs every task: memory of runner and guard, and the guard's start.

    python benchmarks/runner_memory.py --json build/bench/runner_memory.json

A runner is packed as the scheduler packs it, and started on a command that only waits. Memory is
what the process has in RAM while nothing happens (``VmRSS``). The guard's start is the CPU time
from its ``exec`` to its end, where its runner is gone already: the best of several, and no wall
time, so that a busy machine is not taken for a slow program.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dcos_tensorflow.task.pack import build_zipapp

#: A task without peers whose process does nothing: what is measured is ours alone.
SPEC = {
    "version": 1,
    "service": "benchmark",
    "task": "worker-0",
    "cluster": {"epoch": 1},
    "job": {"contract": "command", "command": "exec sleep 600"},
}
DEADLINE_SECONDS = 60.0


def main() -> int:
    """Measure, print, and write the figures where ``--json`` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to write the figures, flat")
    parser.add_argument(
        "--starts", type=int, default=15, help="starts of the guard, of which the best"
    )
    parser.add_argument("--settle", type=float, default=3.0, help="seconds of peace before a look")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = build_zipapp(Path(folder) / "task-runner.pyz")
        figures = {
            **_memory(runner, Path(folder), arguments.settle),
            "guard_start_ms": round(min(_guard_start(runner) for _ in range(arguments.starts)), 1),
        }
    for name, value in figures.items():
        print(f"{name:20} {value}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _memory(runner: Path, folder: Path, settle: float) -> dict[str, float]:
    environment = {
        "PATH": os.environ["PATH"],
        "MESOS_SANDBOX": str(folder),
        "TASK_RUNNER_SPEC": json.dumps(SPEC),
    }
    with subprocess.Popen(
        [sys.executable, str(runner)],
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            guard = _child(process.pid, b"--guard")
            _child(process.pid, b"sleep")
            time.sleep(settle)
            return {
                "runner_memory_mb": _resident_mb(process.pid),
                "guard_memory_mb": _resident_mb(guard),
            }
        finally:
            process.terminate()


def _child(parent: int, word: bytes) -> int:
    """Return the child of ``parent`` on whose command line ``word`` is, once there is one."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return int(pid)
        time.sleep(0.05)
    raise SystemExit(f"the runner has started no {word.decode()} in {DEADLINE_SECONDS:g} s")


def _resident_mb(pid: int) -> float:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return round(int(status["VmRSS"].split()[0]) / 1024, 1)


def _guard_start(runner: Path) -> float:
    command = [sys.executable, str(runner), "--guard", "TASK_RUNNER_MARK=nobody"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the guard ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000


if __name__ == "__main__":
    sys.exit(main())
