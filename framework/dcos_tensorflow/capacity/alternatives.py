"""Which other pools would do as well as the planned ones: the provider chooses among them.

Called by ``planner`` once it knows the machines for a gang. The plan holds whichever machines come,
and however they are mixed: places, limits and zone are those of the worst of them. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dcos_tensorflow.capacity.market import Market, Pool, exact
from dcos_tensorflow.core.placement.constraints import ZONE_FIELD, depends_on_counts
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import PlacementConstraint

#: Machines of several pools, so many of each.
Mix = tuple[tuple[Pool, int], ...]

#: Others cost at most so many times what the planned pool costs: how EC2 protects the price where
#: it chooses types itself (EC2 API Reference, InstanceRequirements, the defaults of
#: SpotMaxPricePercentageOverLowestPrice and OnDemandMaxPricePercentageOverLowestPrice).
_PRICE_TIMES = {Market.SPOT: 2.0, Market.ON_DEMAND: 1.2}


def others_of(
    mix: Mix,
    pools: Sequence[Pool],
    rules: Sequence[PlacementConstraint],
    *,
    most: int,
    one_zone: bool,
    fits: Callable[[Mix], bool],
    is_within: Callable[[Fraction], bool],
) -> tuple[tuple[Pool, ...], ...]:
    """Return for each group of a mix up to ``most`` pools that would do as well, cheapest first.

    ``pools`` are those that may be bought from, sorted by price; ``rules`` the gang's placement
    rules. ``fits`` says whether a gang has its places on such machines, ``is_within`` whether the
    limits allow all of them to cost so much an hour.
    """
    kept = {(p.instance_type, p.zone): p.price for p in pools if p.market is Market.ON_DEMAND}
    counting = tuple(rule.field for rule in rules if depends_on_counts(rule))
    found: list[tuple[Pool, ...]] = []
    # What the machines of each group are at least.
    least = list(mix)
    price = sum((exact(pool.price) * count for pool, count in mix), Fraction())
    for at, (planned, count) in enumerate(mix):
        others: list[Pool] = []
        dearest = planned.price
        refused: set[tuple[str, str, Resources]] = set()
        for other in pools:
            if len(others) == most:
                break
            if one_zone and other.zone != planned.zone:
                continue
            is_cheap = other.market is Market.ON_DEMAND or other.price < kept.get(
                other.key[:2], math.inf
            )
            if not (is_cheap and _may_stand_in(planned, other, count, counting)):
                continue
            dearer = price + max(Fraction(), exact(other.price) - exact(dearest)) * count
            if not is_within(dearer):
                break
            common = least[at][0].resources.common(other.resources)
            # Without rules a machine is no more than what it has.
            shape = (*(other.key[:2] if rules else ("", "")), common)
            if shape in refused:
                continue
            least[at], before = (replace(other, resources=common), count), least[at]
            if fits(tuple(least)):
                others.append(other)
                price, dearest = dearer, max(dearest, other.price)
            else:
                refused.add(shape)
                least[at] = before
        least[at] = (replace(planned, resources=least[at][0].resources), count)
        found.append(tuple(others))
    return tuple(found)


def _may_stand_in(planned: Pool, other: Pool, count: int, counting: Sequence[str]) -> bool:
    """Say whether machines of a pool are like the planned ones, but for what they have."""
    return (
        other.market is planned.market
        and other.key != planned.key
        and (other.available is None or other.available >= count)
        and other.price <= planned.price * _PRICE_TIMES[planned.market]
        # A rule that counts holds for a mix only where all are the same to it.
        and all(_said(planned, field) == _said(other, field) for field in counting)
    )


def _said(pool: Pool, field: str) -> str:
    """Return what rules see of a pool's machines; empty for what all pools have alike."""
    zone = pool.zone
    return {"instance_type": pool.instance_type, "zone": zone, ZONE_FIELD: zone}.get(field, "")
