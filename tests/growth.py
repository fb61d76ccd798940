"""How memory, descriptors, threads, files and nodes grow over a long run: slopes with their errors.

``Growth.take`` notes a value of one *series* (a process, a folder); a kind has many series, because
processes die and others follow. The slope of a kind is that within its series: each has a level of
its own, and its first minute (imports, first connections) does not count. The error knows that
values close in time are alike (an autoregression of the first order).
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

WARM_SECONDS = 60.0
HOUR = 3600.0


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
            if (slope := _slope(kind, measure, list(series.values()))) is not None
        ]


def _slope(kind: str, measure: str, series: list[list[tuple[float, float]]]) -> Slope | None:
    centred: list[list[tuple[float, float]]] = []
    counted: list[float] = []
    for each in series:
        warm = [(at, value) for at, value in each if at >= each[0][0] + WARM_SECONDS]
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
