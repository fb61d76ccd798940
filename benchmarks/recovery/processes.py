"""The processes of a job's tasks, found and signalled by what stands in /proc.

A process of the user's has TASK_NAME in its environment; a task runner has its spec there. Only
processes whose environment names the given folder are looked at: those of this benchmark.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TaskProcess:
    """The first process of a task's code. The start time tells it from a later one's id."""

    pid: int
    started: int


def user_processes(folder: Path) -> dict[str, TaskProcess]:
    """Return the process of the user's code of each task: the oldest that names the folder."""
    found: dict[str, TaskProcess] = {}
    for pid in _pids():
        environment = _environment(pid)
        task = environment.get("TASK_NAME")
        started = _start_time(pid)
        if task is None or started is None or not _names(environment, folder):
            continue
        if task not in found or started < found[task].started:
            found[task] = TaskProcess(pid, started)
    return found


def runners(folder: Path) -> dict[str, TaskProcess]:
    """Return the task runner of each task."""
    found = {}
    for pid in _pids():
        environment = _environment(pid)
        started = _start_time(pid)
        spec = environment.get("TASK_RUNNER_SPEC")
        if spec is None or started is None or not _names(environment, folder):
            continue
        task = json.loads(spec)["task"]
        if task not in found or started < found[task].started:
            found[task] = TaskProcess(pid, started)
    return found


def send(processes: Iterable[TaskProcess], number: signal.Signals) -> None:
    """Signal processes that are still there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _names(environment: dict[str, str], folder: Path) -> bool:
    return any(str(folder) in value for value in environment.values())


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environment(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}  # It has ended, or is another user's.
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)


def _start_time(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[19]) if fields and fields[0] not in (b"Z", b"X") else None
