"""The nouns of capacity: pools of machines that can be had, what is wanted, what is allowed.

Used by everything else in this room. Nothing here decides.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from fractions import Fraction

from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.records import dataclass

#: Enough for a provider to find room. Each may be dearer than the planned one, and the limits have
#: to allow the dearest.
POOLS_PER_ORDER = 10


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


@dataclass(frozen=True)
class Limits:
    """What the user allows; None is no limit."""

    max_instances: int | None = None
    #: Of all machines together.
    max_price_per_hour: float | None = None
    #: Money in all.
    budget: float | None = None
    #: Empty: any.
    zones: frozenset[str] = frozenset()
    #: Empty: any that has ``at_least``.
    instance_types: frozenset[str] = frozenset()
    #: What each machine must have.
    at_least: Resources = field(default_factory=Resources)
    #: A gang's machines lie in one zone: traffic between zones is slow, and billed.
    one_zone: bool = True
    #: So many machines are on-demand whatever the market has.
    on_demand_base: int = 0
    #: A gang that has waited for spot machines for so long gets on-demand ones; seconds.
    spot_wait_seconds: float = 300.0
    #: Among so many pools the provider has the choice, for one order.
    pools_per_order: int = POOLS_PER_ORDER

    def allow(self, pool: Pool) -> bool:
        """Say whether machines of this pool may be bought at all."""
        return (
            (not self.zones or pool.zone in self.zones)
            and (not self.instance_types or pool.instance_type in self.instance_types)
            and self.at_least.fits_in(pool.resources)
        )
