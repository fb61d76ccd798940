"""How memory, descriptors, threads, files and nodes grow over a long run: slopes with their errors.

``Growth.take`` notes a value of one *series* (a process, a folder); a kind has many series, because
processes die and others follow. The slope of a kind is that within its series: each has a level of
its own, and what it takes to warm up (imports, first connections) does not count. The error knows
that values close in time are alike (an autoregression of the first order).

``Watch`` measures in a process of its own: what is measured keeps no values.

    python tests/growth.py FOLDER PID ZOOKEEPER SECONDS
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.client import KazooClient

from processes import processes

#: Until a process has done everything once.
WARM_SECONDS = 60.0
HOUR = 3600.0
#: What the command line of each kind of process has; the first that fits counts.
KINDS = {
    "runner": "task-runner.pyz",
    "executor": "executor",
    "scheduler": "dcos_tensorflow scheduler",
}

Values = list[tuple[float, float]]


@dataclass(frozen=True)
class Slope:
    """How one measure of one kind grows."""

    kind: str
    measure: str
    #: Mean of the values that count.
    mean: float
    #: Growth an hour, and its standard error.
    per_hour: float
    error: float
    values: int

    @property
    def surely(self) -> float:
        """The least growth an hour that these values allow (two standard errors)."""
        return self.per_hour - 2 * self.error


@dataclass
class Growth:
    """Values over time, in seconds of any clock that goes on."""

    #: So many seconds of a series do not count, by its kind.
    warm_seconds: dict[str, float] = field(default_factory=dict)
    _series: dict[tuple[str, str], dict[object, list[tuple[float, float]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def take(self, now: float, kind: str, series: object, **values: float) -> None:
        for measure, value in values.items():
            self._series[kind, measure][series].append((now, value))

    def slopes(self) -> list[Slope]:
        return [
            slope
            for (kind, measure), series in sorted(self._series.items())
            if (slope := _slope(kind, measure, self._warm(kind, series.values()))) is not None
        ]

    def _warm(self, kind: str, series: Iterable[Values]) -> list[Values]:
        """Return what counts of each series."""
        seconds = self.warm_seconds.get(kind, WARM_SECONDS)
        return [
            [(at, value) for at, value in each if at >= each[0][0] + seconds] for each in series
        ]


def _slope(kind: str, measure: str, series: list[Values]) -> Slope | None:
    centred: list[list[tuple[float, float]]] = []
    counted: list[float] = []
    for warm in series:
        if len(warm) > 2:
            time = sum(at for at, _ in warm) / len(warm)
            level = sum(value for _, value in warm) / len(warm)
            centred.append([(at - time, value - level) for at, value in warm])
            counted += [value for _, value in warm]
    spread = sum(at * at for each in centred for at, _ in each)
    free = len(counted) - len(centred) - 1
    if not spread or free < 1:
        return None
    slope = sum(at * value for each in centred for at, value in each) / spread
    left = [[value - slope * at for at, value in each] for each in centred]
    squares = sum(one * one for each in left for one in each)
    pairs = sum(a * b for each in left for a, b in itertools.pairwise(each))
    alike = min(max(pairs / squares, 0.0), 0.99) if squares else 0.0
    error = math.sqrt(squares / free / spread * (1 + alike) / (1 - alike))
    mean = sum(counted) / len(counted)
    return Slope(kind, measure, mean, slope * HOUR, error * HOUR, len(counted))


class Watch:
    """Measures all processes and files of a killed training, in a process of its own.

    ``pid`` is the process that masters and agents live in.
    """

    def __init__(self, folder: Path, pid: int, zookeeper: str, seconds: float) -> None:
        self._file = folder / "measured"
        command = [sys.executable, __file__, str(folder), str(pid), zookeeper, str(seconds)]
        with self._file.open("wb") as told:
            self._process = subprocess.Popen(command, stdout=told)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def growth(self, **warm_seconds: float) -> Growth:
        """Return what has been measured by now; ``warm_seconds`` are by kind."""
        found = Growth(warm_seconds)
        for line in self._file.read_text().splitlines():
            with contextlib.suppress(ValueError):  # the last one may be half written
                now, kind, series, values = json.loads(line)
                found.take(now, kind, series, **values)
        return found


def watch(folder: Path, pid: int, zookeeper: str, seconds: float) -> None:
    """Print what is measured, for ever."""
    while True:
        now = time.monotonic()
        for kind, series, values in _measured(folder, pid, zookeeper):
            if values:
                print(json.dumps((now, kind, series, values)), flush=True)
        time.sleep(max(0.0, now + seconds - time.monotonic()))


def _measured(
    folder: Path, pid: int, zookeeper: str
) -> Iterator[tuple[str, int, dict[str, float]]]:
    yield "masters and agents", 0, process_values(pid)
    for one in processes(str(folder)):
        for kind, text in KINDS.items():
            if text in one.command:
                yield kind, one.pid, process_values(one.pid)
                break
    yield "agents' folders", 0, folder_values(folder / "mesos")
    yield "scheduler's folder", 0, folder_values(folder / "scheduler-home")
    yield "ZooKeeper", 0, znodes(zookeeper)


def znodes(zookeeper: str) -> dict[str, float]:
    """Return how many nodes the service has; empty while ZooKeeper starts again."""
    client = KazooClient(zookeeper, timeout=5)
    try:
        client.start(timeout=5)
        return {"nodes": _count(client, "/dcos-service-target")}
    except Exception:  # it may be killed at any moment
        return {}
    finally:
        client.stop()
        client.close()


def _count(client: KazooClient, path: str) -> int:
    return 1 + sum(_count(client, f"{path}/{child}") for child in client.get_children(path))


def process_values(pid: int) -> dict[str, float]:
    """Return memory in MB, descriptors and threads of a process; empty when it is gone."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        told = dict(line.split(":", 1) for line in lines)
        return {
            "memory_mb": int(told["VmRSS"].split()[0]) / 1024,
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": int(told["Threads"]),
        }
    return {}


def folder_values(folder: Path) -> dict[str, float]:
    """Return how many files are below a folder, and how many MB they have."""
    sizes = list(_sizes(folder))
    return {"files": len(sizes), "size_mb": sum(sizes) / 1e6}


def _sizes(folder: Path) -> Iterator[int]:
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(path, name)).st_size


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
