"""The facts of a machine's use when it has to be paid: no money.

Filled by ``uses`` from the ledger of the buyer, read by ``bill``. All moments are of one clock;
the provider says how long a machine lived, because that is billed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dcos_tensorflow.capacity.market import Market
from dcos_tensorflow.core.spec.capacity_spec import Billing
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class PriceChange:
    """From this moment on a machine of a pool costs so much."""

    #: Unix seconds.
    at: float
    #: Of one machine, per hour; not negative. Its shortest decimal form is what is meant: 0.918.
    price: float


@dataclass(frozen=True)
class MachineUse:
    """One machine from its beginning to its end, or until now."""

    machine_id: str
    #: Which purchase it belongs to.
    purchase_id: str
    instance_type: str
    zone: str
    market: Market
    #: Unix seconds; the end is None while it is there.
    started_at: float
    ended_at: float | None
    #: What a machine like it cost in its market, in any order; the first one also holds before its
    #: moment. Where none is known ``on_demand_price`` holds, so that nothing is made cheaper than
    #: it was.
    prices: tuple[PriceChange, ...]
    #: Of a machine like it that is not taken away, per hour.
    on_demand_price: float
    #: Seconds in which a task of ours ran on it; the others of its life it was idle.
    busy_seconds: float = 0.0
    #: Seconds in which its gang did not train because this machine went unasked.
    lost_seconds: float = 0.0
    #: Whether its provider took it back unasked, and says so.
    interrupted: bool = False


@dataclass(frozen=True)
class Tariff:
    """How seconds become what is paid; the defaults are EC2's for Linux."""

    #: What is paid is a multiple of this, rounded up; seconds. By the hour: 3600.
    increment: int = 1
    #: Less is paid as much; seconds.
    minimum: int = 60
    #: A spot machine that is taken back sooner costs nothing (EC2 User Guide, "Billing for
    #: interrupted Spot Instances"); seconds.
    free_when_interrupted_before: int = 3600

    def billed(self, seconds: float | Fraction) -> int:
        """Return for how many seconds a machine is paid that was there for so many."""
        return max(self.minimum, math.ceil(seconds / self.increment) * self.increment)


#: What ``Sums`` count in: millionths of a second, and billionths of a thousandth of money, paid for
#: so many of them an hour. Whole numbers add up exactly, and fast.
MICRO, PICO = 10**6, 10**12
HOURLY = 3600 * MICRO * PICO


@dataclass(frozen=True)
class Sums:
    """What machines of one type and market have been used for, and have cost: all whole numbers.

    ``paid`` and ``on_demand`` are money times ``HOURLY``, the times are millionths of a second.
    """

    instance_type: str
    market: Market
    machines: int = 0
    lived: int = 0
    idle: int = 0
    lost: int = 0
    paid: int = 0
    on_demand: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Return what puts lines in order: by type, spot machines first."""
        return self.instance_type, "" if self.market is Market.SPOT else self.market

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.instance_type,
            self.market,
            self.machines + other.machines,
            self.lived + other.lived,
            self.idle + other.idle,
            self.lost + other.lost,
            self.paid + other.paid,
            self.on_demand + other.on_demand,
        )


def summed(lines: Iterable[Sums]) -> tuple[Sums, ...]:
    """Return one line of each type and market, in order."""
    found: dict[tuple[str, str], Sums] = {}
    for line in lines:
        known = found.get(line.key)
        found[line.key] = line if known is None else known + line
    return tuple(found[key] for key in sorted(found))


@dataclass(frozen=True)
class Moment:
    """How many machines there were from a moment on, and what all had cost until then."""

    #: Unix seconds.
    at: float
    spot: int
    on_demand: int
    #: Money.
    paid: float


BY_THE_SECOND = Tariff()
BY_THE_HOUR = Tariff(increment=3600, minimum=3600, free_when_interrupted_before=0)


def tariff_of(billing: Billing) -> Tariff:
    """Return the tariff that options name."""
    return BY_THE_HOUR if billing is Billing.HOUR else BY_THE_SECOND
