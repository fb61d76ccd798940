"""What is known of a machine's use when it has to be paid: facts alone, no money.

Filled by ``uses`` from the ledger of whoever buys, read by ``bill``. All moments are of one clock;
how long a machine lived is what its provider says, for that is billed.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dcos_tensorflow.capacity.market import Market
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


BY_THE_SECOND = Tariff()
BY_THE_HOUR = Tariff(increment=3600, minimum=3600, free_when_interrupted_before=0)
