"""The nouns of capacity: pools of machines that can be bought, demand, and limits.

Used by everything else in this room. Nothing here decides.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.records import dataclass


def exact(amount: float) -> Fraction:
    """Return a number as its shortest decimal form says it: 0.1 is a tenth."""
    return Fraction(str(amount))


class Market(StrEnum):
    """How a machine is paid for: at the market's price and taken back at will, or kept."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


@dataclass(frozen=True)
class Pool:
    """Machines of one kind that can be had at one price."""

    #: As the provider calls it: ``p3.2xlarge``.
    instance_type: str
    zone: str
    market: Market
    #: Of one machine, per hour, in the currency of all prices.
    price: float
    #: What an agent on one machine offers.
    resources: Resources
    #: How many can be had now; None where that is not known before trying.
    available: int | None = None

    @property
    def key(self) -> tuple[str, str, Market]:
        """Return what makes it this pool, whatever it costs and has now."""
        return self.instance_type, self.zone, self.market


@dataclass(frozen=True)
class WantedMachines:
    """So many more machines of one pool, or of others that would do as well."""

    pool: Pool
    count: int
    #: For whom: the gangs that wait for them.
    gangs: tuple[str, ...]
    #: Of the same market, the cheapest first: the provider chooses.
    others: tuple[Pool, ...] = ()

    @property
    def price(self) -> Fraction:
        """Return what all of them cost an hour, of the pool that they are planned for."""
        return self.count * exact(self.pool.price)

    @property
    def most(self) -> Fraction:
        """Return what all of them cost an hour at most, wherever they come from."""
        return self.count * exact(max(pool.price for pool in (self.pool, *self.others)))


def may_buy(pool: Pool, spec: CapacitySpec) -> bool:
    """Say whether the options let machines of this pool be bought at all."""
    return (
        (not spec.zones or pool.zone in spec.zones)
        and (not spec.instance_types or pool.instance_type in spec.instance_types)
        and spec.at_least.fits_in(pool.resources)
    )
