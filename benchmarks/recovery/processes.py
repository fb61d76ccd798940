"""The processes of a service's tasks, found and signalled by what stands in /proc.

Only processes whose environment names the given folder are looked at: those of this benchmark.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TaskProcess:
    """The first process of a task's code, or its runner. The start time tells it from others."""

    task: str
    task_id: str
    pid: int
    started: int
    directory: Path

    @property
    def started_at(self) -> float:
        """Return when it started, in seconds of the monotonic clock (a hundredth exactly)."""
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
        return self.started / os.sysconf("SC_CLK_TCK") - since_boot

    @property
    def lives(self) -> bool:
        """Say whether it is still there."""
        return start_time(str(self.pid)) == self.started


def user_processes(folder: Path) -> dict[str, TaskProcess]:
    """Return the process of the user's code by Mesos task id: the oldest of each."""
    return _oldest(folder, _task_of_user)


def runners(folder: Path) -> dict[str, TaskProcess]:
    """Return the task runners by Mesos task id."""
    return _oldest(folder, _task_of_runner)


def _task_of_user(environment: dict[str, str]) -> str | None:
    # The runner has the task's name in its environment, too; its mark is its children's alone.
    return environment.get("TASK_NAME") if "TASK_RUNNER_MARK" in environment else None


def _task_of_runner(environment: dict[str, str]) -> str | None:
    spec = environment.get("TASK_RUNNER_SPEC")
    return None if spec is None else str(json.loads(spec)["task"])


def _oldest(
    folder: Path, task_of: Callable[[dict[str, str]], str | None]
) -> dict[str, TaskProcess]:
    found: dict[str, TaskProcess] = {}
    for name in os.listdir("/proc"):
        environment = _environment(name) if name.isdigit() else {}
        sandbox = environment.get("MESOS_SANDBOX", "")
        task = task_of(environment) if sandbox.startswith(str(folder)) else None
        started = start_time(name) if task is not None else None
        if started is None:
            continue
        assert task is not None
        task_id = environment["MESOS_EXECUTOR_ID"]
        if task_id not in found or started < found[task_id].started:
            found[task_id] = TaskProcess(task, task_id, int(name), started, Path(sandbox))
    return found


def send(processes: Iterable[TaskProcess], number: signal.Signals) -> None:
    """Signal processes that are still there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _environment(pid: str) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}  # It has ended, or is another user's.
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)


def end_in_order() -> None:
    """From now on, a signal that ends this program ends what it has started, too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def start_time(pid: str) -> int | None:
    """Return when a process started, in ticks from the machine's boot; None once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[19]) if fields and fields[0] not in (b"Z", b"X") else None
