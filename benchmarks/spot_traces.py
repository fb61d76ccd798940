"""Recorded spot markets: how many machines a zone had, and what they cost, point by point.

Read by ``spot_market.py``. A trace is JSON: ``source`` (kind / N-node / provider and first day /
zone _ accelerator _ count), ``gap_seconds`` between two points, and ``runs``, pairs of a value and
for how many points in a row it was so. The value is how many machines could be had, of the N that
were asked for. Beside such a file may lie one whose kind is ``price``: its values are the price
of a spot machine, as a share of an on-demand one's; else ``SPOT_PRICE`` is taken.

``made_up`` makes traces from a seed, for those who have none.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Of a p3.2xlarge in 2023: 0.918 over 3.06 dollars an hour.
SPOT_PRICE = 0.3

Counts = NDArray[np.int64]
Prices = NDArray[np.float64]


class TraceError(Exception):
    """A file that is no trace."""


@dataclass(frozen=True)
class Trace:
    """What one zone had of one kind of machine."""

    #: As in its file, without the kind.
    name: str
    gap_seconds: float
    #: How many were asked for.
    machines: int
    available: Counts
    prices: Prices

    @property
    def market(self) -> str:
        """Return what traces of the same machines, days and number in other zones share."""
        *before, last = self.name.split("/")
        return "/".join([*before, last.partition("_")[2]])


def read(folder: Path) -> list[Trace]:
    """Return the traces of a folder. Raises TraceError for what is none."""
    files = {path: _load(path) for path in sorted(folder.glob("*.json"))}
    prices = {
        name: _values(told, path, float)
        for path, told in files.items()
        for kind, name in (_named(told, path),)
        if kind == "price"
    }
    traces = []
    for path, told in files.items():
        kind, name = _named(told, path)
        if kind == "price":
            continue
        available = _values(told, path, int)
        asked = re.search(r"(\d+)-node", name)
        machines = int(asked[1]) if asked else max(1, int(available.max()))
        price = np.resize(prices.get(name, np.array([SPOT_PRICE])), len(available))
        traces.append(Trace(name, float(told["gap_seconds"]), machines, available, price))
    if not traces:
        raise TraceError(f"no trace in {folder}")
    return traces


def _load(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text())
    except ValueError as error:
        raise TraceError(f"{path}: {error}") from None
    missing = {"gap_seconds", "runs"} - set(told) if isinstance(told, dict) else {"gap_seconds"}
    if missing:
        raise TraceError(f"{path}: no {' and no '.join(sorted(missing))}")
    return dict(told)


def _named(told: dict[str, Any], path: Path) -> tuple[str, str]:
    source = str(told.get("source") or path.stem.replace("__", "/")).removesuffix(".json")
    kind, _, name = source.partition("/")
    return kind, name or kind


def _values(told: dict[str, Any], path: Path, kind: type) -> NDArray[Any]:
    runs = told["runs"]
    found = np.repeat([value for value, _ in runs], [count for _, count in runs]).astype(kind)
    if len(found) != told.get("points", len(found)) or len(found) == 0 or found.min() < 0:
        raise TraceError(f"{path}: its runs are not its points")
    return found


def write(folder: Path, traces: Sequence[Trace]) -> None:
    """Write traces as ``read`` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    for trace in traces:
        starts = np.flatnonzero(np.diff(trace.available, prepend=-1))
        lengths = np.diff(starts, append=len(trace.available))
        runs = [[int(trace.available[s]), int(n)] for s, n in zip(starts, lengths, strict=True)]
        source = f"availability/{trace.name}.json"
        told = {"source": source, "gap_seconds": trace.gap_seconds}
        told |= {"points": len(trace.available), "runs": runs}
        name = source.replace("/", "__")
        (folder / name).write_text(json.dumps(told, separators=(",", ":")) + "\n")


def gang_of(trace: Trace, machines: int, *, apart: bool) -> Trace:
    """Return what a gang of so many would have met where one machine was asked for.

    All of them come and go together; or each sees the market as it was at another moment, within
    hours of each other, so that they go one by one.
    """
    name = trace.name.replace("1-node", f"{machines}-node")
    if not apart:
        return replace(trace, name=name, machines=machines, available=trace.available * machines)
    chance = random.Random(machines)
    shifts = [int(chance.expovariate(1 / 10_800) / trace.gap_seconds) for _ in range(machines)]
    moved = np.sum([np.roll(trace.available, shift) for shift in shifts], axis=0)
    return replace(trace, name=name, machines=machines, available=moved)


def by_market(traces: Sequence[Trace]) -> list[list[Trace]]:
    """Return the traces that are zones of one market, where there are several."""
    found = defaultdict(list)
    for trace in traces:
        found[trace.market, trace.gap_seconds].append(trace)
    return [zones for zones in found.values() if len(zones) > 1]


def made_up(seed: int = 1, machines: Sequence[int] = (1, 4, 16), days: int = 10) -> list[Trace]:
    """Return traces that nobody has recorded: zones with much, some and little to be had.

    In each zone stretches with and without machines follow each other, short ones mostly and a few
    very long ones; a gang's machines come one by one, and go one by one or all at once.
    """
    chance, gap, traces = random.Random(seed), 300, []
    for count in machines:
        for letter, share in zip("abc", (0.85, 0.5, 0.2), strict=True):
            points = days * 86_400 // gap
            available = np.zeros(points, dtype=np.int64)
            at, now = 0, 0
            while at < points:
                mean = 12 * 3600 * (share if now else 1 - share) / (1 if count == 1 else 4)
                stays = max(1, int(mean / 2.5 * chance.paretovariate(1.4) / gap))
                available[at : at + stays] = now
                at += stays
                if chance.random() < share:
                    now = min(count, now + chance.randint(1, count))
                else:
                    now = 0 if chance.random() < 0.5 else max(0, now - chance.randint(1, count))
            name = f"{count}-node/made-up-{seed}/zone-{letter}_machine_1"
            traces.append(Trace(name, gap, count, available, np.full(points, SPOT_PRICE)))
    return traces
