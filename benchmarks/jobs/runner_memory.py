"""What the task runner costs every task: memory of runner and guard, and CPU time of both.

    python -m benchmarks.jobs.runner_memory --json build/bench/runner_memory.json

A runner is packed as the scheduler packs it, and started on a command that only waits. Memory is
what the processes have in RAM while nothing happens, shared pages divided by those that share them.
The CPU time is that of a whole task whose command does nothing, from the runner's ``exec`` to its
end: the best of several, and no wall time, so that a busy machine is not taken for a slow program.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dcos_tensorflow.task.pack import build_zipapp
from dcos_tensorflow.task.supervise.guard import NAME
from dcos_tensorflow.task.supervise.memory import resident_bytes

#: A task without peers whose process does nothing: what is measured is ours alone.
SPEC = {
    "version": 1,
    "service": "benchmark",
    "task": "worker-0",
    "cluster": {"epoch": 1},
    "job": {"contract": "command", "command": "exec sleep 600"},
}
NOTHING = {**SPEC, "job": {"contract": "command", "command": "exec true"}}
DEADLINE_SECONDS = 60.0


def main() -> int:
    """Measure, print, and write the figures where ``--json`` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to write the figures, flat")
    parser.add_argument(
        "--starts", type=int, default=15, help="tasks that do nothing, of which the best"
    )
    parser.add_argument("--settle", type=float, default=3.0, help="seconds of peace before a look")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = build_zipapp(Path(folder) / "task-runner.pyz")
        figures = {
            **_memory(runner, Path(folder), arguments.settle),
            "runner_cpu_ms": round(
                min(_cpu_ms(runner, Path(folder)) for _ in range(arguments.starts)), 1
            ),
        }
    for name, value in figures.items():
        print(f"{name:20} {value}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _begin(runner: Path, folder: Path, spec: dict[str, object]) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": os.environ["PATH"],
        "MESOS_SANDBOX": str(folder),
        "TASK_RUNNER_SPEC": json.dumps(spec),
        "TASK_RUNNER_PORT": str(free_port()),
        "TASK_RUNNER_TOKEN": "of no task",
    }
    return subprocess.Popen(
        [sys.executable, str(runner)],
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


def _memory(runner: Path, folder: Path, settle: float) -> dict[str, float]:
    with _begin(runner, folder, SPEC) as process:
        try:
            guard = _child(process.pid, NAME)
            _child(process.pid, "sleep")
            time.sleep(settle)
            return {"runner_memory_mb": _mb(process.pid), "guard_memory_mb": _mb(guard)}
        finally:
            process.terminate()


def _child(parent: int, name: str) -> int:
    """Return the child of ``parent`` that is listed as ``name``, once there is one."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                return int(pid)
        time.sleep(0.05)
    raise SystemExit(f"the runner has started no {name} in {DEADLINE_SECONDS:g} s")


def _mb(pid: int) -> float:
    return round((resident_bytes([pid]) or 0) / 2**20, 1)


def _cpu_ms(runner: Path, folder: Path) -> float:
    with _begin(runner, folder, NOTHING) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the runner ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000


if __name__ == "__main__":
    sys.exit(main())
