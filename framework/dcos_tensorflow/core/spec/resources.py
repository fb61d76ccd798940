"""Resources as Mesos counts them: cpus, megabytes of memory and disk, whole GPUs, ports.

Used by offers, placement and launches. Mesos rounds scalars to three decimals
(``src/common/values.cpp``); comparisons here do the same, so that 0.1 + 0.2 fits into 0.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dcos_tensorflow.records import dataclass

#: Half of Mesos' fixed-point step of 0.001.
EPSILON = 0.0005


@dataclass(frozen=True)
class Resources:
    """An amount of each scalar resource. ``mem`` and ``disk`` are megabytes."""

    cpus: float = 0.0
    mem: float = 0.0
    disk: float = 0.0
    gpus: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            round(self.cpus + other.cpus, 3),
            round(self.mem + other.mem, 3),
            round(self.disk + other.disk, 3),
            self.gpus + other.gpus,
        )

    def __sub__(self, other: Resources) -> Resources:
        """Return the difference, rounded as Mesos rounds."""
        return Resources(
            round(self.cpus - other.cpus, 3),
            round(self.mem - other.mem, 3),
            round(self.disk - other.disk, 3),
            self.gpus - other.gpus,
        )

    def fits_in(self, available: Resources) -> bool:
        """Say whether this much can be taken from ``available``."""
        return (
            self.cpus <= available.cpus + EPSILON
            and self.mem <= available.mem + EPSILON
            and self.disk <= available.disk + EPSILON
            and self.gpus <= available.gpus
        )

    def common(self, other: Resources) -> Resources:
        """Return what both have."""
        return Resources(
            min(self.cpus, other.cpus),
            min(self.mem, other.mem),
            min(self.disk, other.disk),
            min(self.gpus, other.gpus),
        )


@dataclass(frozen=True)
class PortRanges:
    """Free ports of an agent: disjoint ``(first, last)`` pairs in ascending order, inclusive."""

    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(ranges: Iterable[tuple[int, int]]) -> PortRanges:
        """Build from pairs in any order, overlapping or adjacent ones merged."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return PortRanges(tuple(merged))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __contains__(self, port: int) -> bool:
        return any(first <= port <= last for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        """Yield every port, lowest first."""
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def __add__(self, other: PortRanges) -> PortRanges:
        return PortRanges.of(self.ranges + other.ranges)

    def without(self, ports: Iterable[int]) -> PortRanges:
        """Return what is left when ``ports`` are taken."""
        left = list(self.ranges)
        for port in ports:
            for position, (first, last) in enumerate(left):
                if first <= port <= last:
                    pieces = [(first, port - 1), (port + 1, last)]
                    left[position : position + 1] = [p for p in pieces if p[0] <= p[1]]
                    break
        return PortRanges(tuple(left))
