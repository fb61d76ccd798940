"""What a job's processes cost, the user's and ours beside them, by what /proc says of them.

Used by ``start.py``. Ours are found by the folder that they work in, which stands in their command
lines; of the user's, the caller says which they are.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

#: Ours: what each task has of its own, and what there is once.
OF_TASK = ("executor", "runner", "guard")
ONCE = ("command", "cluster")
USER = "user"


@dataclass(frozen=True)
class Process:
    """One process as it is now."""

    pid: int
    parent: int
    #: Its command line, the words apart by blanks.
    command: str


@dataclass(frozen=True)
class Cost:
    """What one process has cost."""

    kind: str
    #: Since it began.
    cpu_seconds: float
    #: What it shares with others counts once, a part for each (PSS).
    memory_mb: float


def costs(folder: Path, users: Set[int]) -> list[Cost]:
    """Return what the processes of the job in a folder have cost until now."""
    kinds = kinds_of(_processes(), f"{folder}/", users)
    return [Cost(kind, _cpu_seconds(pid), _memory_mb(pid)) for pid, kind in kinds.items()]


def kinds_of(processes: Mapping[int, Process], folder: str, users: Set[int]) -> dict[int, str]:
    """Return the kind of each process of the job in this folder.

    A runner's child that is not the user's is its guard, and what has started a runner is its
    executor, where that is not the cluster itself. What executors come from is there once.
    """
    kinds = {pid: USER for pid in users if pid in processes}
    here = {
        pid: one for pid, one in processes.items() if folder in one.command and pid not in kinds
    }
    runs = {pid for pid, one in here.items() if "task-runner.pyz" in one.command}
    for pid, one in here.items():
        if pid in runs:
            kinds[pid] = "guard" if one.parent in runs else "runner"
        elif "dcos_tensorflow run " in one.command:
            kinds[pid] = "command"
    for pid in [pid for pid, kind in kinds.items() if kind == "runner"]:
        kinds |= _above(processes, here[pid].parent)
    return kinds


def _above(processes: Mapping[int, Process], pid: int) -> dict[int, str]:
    """Return the kinds of what has started a runner, up to the cluster."""
    kinds: dict[int, str] = {}
    kind = "executor"
    while pid in processes and "executor" in processes[pid].command:
        kinds[pid], kind = kind, "cluster"
        pid = processes[pid].parent
    kinds[pid] = "cluster"
    return kinds


def _processes() -> dict[int, Process]:
    found = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with contextlib.suppress(OSError):
            at = Path(f"/proc/{pid}")
            parent = int(at.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            command = at.joinpath("cmdline").read_bytes().decode(errors="replace")
            found[pid] = Process(pid, parent, command.replace("\0", " "))
    return found


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (shared,) = (line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(shared.split()[1]) / 1024
