"""Recorded spot markets: how many machines a zone had, and what they cost, point by point.

Read by ``spot_market.py``. A trace is JSON: ``source`` (kind / N-node / provider and first day /
zone _ accelerator _ count), ``gap_seconds`` between two points, and ``runs``, pairs of a value and
for how many points in a row it was so. The value is how many machines could be had, of the N that
were asked for. Files as skypilot-org/spot-traces publishes them (``metadata``, ``data``) are read,
too. Beside such a file may lie one whose kind is ``price``: its values are the price of a spot
machine, as a share of an on-demand one's; else ``SPOT_PRICE`` is taken.

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
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, NonNegativeInt, ValidationError, model_validator

#: Of a p3.2xlarge in 2023: 0.918 over 3.06 dollars an hour.
SPOT_PRICE = 0.3
#: A minute for ten years: more is no trace.
MOST_POINTS = 5_256_000

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


class _File(BaseModel):
    """What a file has to say."""

    source: str = ""
    gap_seconds: float = Field(gt=0, allow_inf_nan=False)
    points: int | None = None
    runs: list[tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], NonNegativeInt]]

    @model_validator(mode="before")
    @classmethod
    def _published(cls, told: Any) -> Any:
        """Turn what is published into runs of one point each."""
        if isinstance(told, dict) and isinstance(told.get("metadata"), dict) and "data" in told:
            data = told["data"]
            runs = [(value, 1) for value in data] if isinstance(data, list) else data
            return {"gap_seconds": told["metadata"].get("gap_seconds"), "runs": runs}
        return told

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        points = sum(count for _, count in self.runs)
        if points == 0 or points != (self.points or points):
            raise ValueError(f"its runs are {points} points, not {self.points or 'some'}")
        if points > MOST_POINTS:
            raise ValueError(f"its runs are {points} points, more than {MOST_POINTS}")
        return self

    @property
    def values(self) -> Prices:
        """Return the value of each point."""
        return np.repeat([value for value, _ in self.runs], [count for _, count in self.runs])


def read(folder: Path) -> list[Trace]:
    """Return the traces of a folder and of those in it. Raises TraceError for what is none."""
    files = {path: _load(path) for path in sorted(folder.rglob("*.json"))}
    named = {path: _named(told, path.relative_to(folder)) for path, told in files.items()}
    prices = {name: files[path].values for path, (kind, name) in named.items() if kind == "price"}
    traces = []
    for path, (kind, name) in named.items():
        if kind == "price":
            continue
        available = files[path].values.astype(int)
        asked = re.search(r"(\d+)-node", name)
        # A market that never had all of them is one of so many all the same.
        machines = max(1, int(asked[1]) if asked else 1, int(available.max()))
        price = np.resize(prices.get(name, np.array([SPOT_PRICE])), len(available))
        traces.append(Trace(name, files[path].gap_seconds, machines, available, price))
    if not traces:
        raise TraceError(f"no trace in {folder}")
    return traces


def _load(path: Path) -> _File:
    try:
        return _File.model_validate_json(path.read_bytes())
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"])
        raise TraceError(f"{path}: {where + ': ' if where else ''}{first['msg']}") from None


def _named(told: _File, path: Path) -> tuple[str, str]:
    source = told.source or str(path.with_suffix("")).replace("__", "/")
    kind, _, name = source.removesuffix(".json").partition("/")
    return kind, name or kind


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
    """Return traces that were not recorded: zones with much, some and little to be had.

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
