"""Waiting gangs, turned into machines to buy: the fewest that fit, where they cost least.

Called with the demand of gangs, the offers of the machines that are there or on their way, and the
pools that can be bought from. Whether tasks fit is asked of ``core.placement``, with offers made up
for machines that are not bought yet: a machine is bought only if the core will use it, and every
placement rule holds. ``alternatives`` adds the pools that would do as well. Pure; buys nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from dcos_tensorflow.capacity.alternatives import Mix as _Mix
from dcos_tensorflow.capacity.alternatives import others_of
from dcos_tensorflow.capacity.deadline import NOTHING, Fleet
from dcos_tensorflow.capacity.market import Market, Pool, WantedMachines, exact, may_buy
from dcos_tensorflow.capacity.trial_placement import TrialPlacement, made_up
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.records import dataclass

#: Hours that whatever is bought is reckoned to stay: the budget must have them.
_LEAST_HOURS = 1.0

#: Enough for a provider to find room. Each may be dearer than the planned one, and the limits have
#: to allow the dearest.
_POOLS_PER_ORDER = 10


@dataclass(frozen=True)
class GangDemand:
    """What one gang waits for."""

    gang: str
    #: Its tasks without a place.
    requests: tuple[TaskRequest, ...]
    #: For how long already; seconds.
    waited: float = 0.0
    #: Where its other members are, if it has any: they have to be near.
    zone: str = ""
    #: With a deadline, what :func:`dcos_tensorflow.capacity.deadline.decide` has answered: so many
    #: of its machines are spot ones.
    fleet: Fleet | None = None


@dataclass(frozen=True)
class Owned:
    """What is there, or bought and on its way."""

    #: What is free on these machines; of one on its way what :func:`offer_of` makes up.
    offers: tuple[Offer, ...] = ()
    instances: int = 0
    #: Of them, on-demand ones.
    on_demand: int = 0
    #: Of all of them, and what all have cost so far.
    price_per_hour: Fraction = Fraction()
    spent: float = 0.0


@dataclass(frozen=True)
class PurchasePlan:
    """What to buy, and why some gangs get nothing."""

    wanted: tuple[WantedMachines, ...] = ()
    #: (gang, one sentence).
    waits: tuple[tuple[str, str], ...] = ()


def plan(
    demands: Sequence[GangDemand], owned: Owned, pools: Iterable[Pool], spec: CapacitySpec
) -> PurchasePlan:
    """Return the machines to buy, gang by gang in the order they come.

    A gang gets all the machines that it needs, or none. Those of an earlier gang that have room
    left serve the later ones. What the limits leave then is for pools that would do as well.
    """
    allowed = sorted((p for p in pools if may_buy(p, spec)), key=lambda p: (p.price, p.zone))
    purchases: list[_Purchase] = []
    waits: list[tuple[str, str]] = []
    for demand in demands:
        try:
            mix, zone = _for_gang(demand, owned, allowed, spec)
        except _Waits as reason:
            waits.append((demand.gang, str(reason)))
            continue
        there = tuple(offer for offer in owned.offers if zone in (None, offer.zone))
        purchases.append(_Purchase(demand, there, mix, zone))
        owned = _after(demand, owned, mix)
        allowed = [_less(pool, mix) for pool in allowed]
    wanted: list[WantedMachines] = []
    for purchase in purchases:
        some = _with_others(purchase, owned, allowed, spec)
        dearer = sum(each.most - each.price for each in some)
        owned = replace(owned, price_per_hour=owned.price_per_hour + dearer)
        wanted += some
    return PurchasePlan(tuple(wanted), tuple(waits))


class _Waits(Exception):
    """Nothing is bought, and why."""


@dataclass(frozen=True)
class _Purchase:
    demand: GangDemand
    #: What was free beside it.
    offers: tuple[Offer, ...]
    mix: _Mix
    #: None: in any.
    zone: str | None


def _for_gang(
    demand: GangDemand, owned: Owned, pools: Sequence[Pool], spec: CapacitySpec
) -> tuple[_Mix, str | None]:
    """Return what to buy for a gang, and in which zone, None for any. Raises _Waits."""
    if place(demand.requests, owned.offers).complete:
        return (), None
    if demand.fleet == NOTHING:
        raise _Waits("spot machines are waited for: its deadline leaves time")
    zones: Sequence[str | None] = sorted({pool.zone for pool in pools})
    chosen = demand.fleet.zone if demand.fleet else demand.zone
    if chosen or not spec.one_zone:
        zones = [chosen or None]
    search = _Search(demand, owned, spec)
    best: tuple[_Mix, str | None] | None = None
    for zone in zones:
        near = [pool for pool in pools if zone in (None, pool.zone)]
        mix = search.cheapest(near, zone, best and best[0])
        best = best if mix is None else (mix, zone)
    if best is None:
        raise _Waits(search.why)
    return best


def _pools_per_order(spec: CapacitySpec) -> int:
    # The rule for deadlines has reckoned with one kind of machine, in one zone.
    return 1 if spec.deadline_at or spec.deadline_seconds else _POOLS_PER_ORDER


def _with_others(
    purchase: _Purchase, owned: Owned, pools: Sequence[Pool], spec: CapacitySpec
) -> tuple[WantedMachines, ...]:
    """Return what to buy for a gang, each with the pools that would do as well.

    ``owned`` is what there is with all that is bought, for others too.
    """
    demand, mix = purchase.demand, purchase.mix

    others = others_of(
        mix,
        pools,
        [rule for request in demand.requests for rule in request.constraints],
        most=_pools_per_order(spec) - 1,
        one_zone=purchase.zone is not None,
        fits=TrialPlacement(demand.requests, purchase.offers).fits,
        is_within=lambda price: not beyond(spec, owned, 0, price - _price(mix)),
    )
    return tuple(
        WantedMachines(pool, count, (demand.gang,), found)
        for (pool, count), found in zip(mix, others, strict=True)
    )


class _Search:
    """The search for what one gang needs, zone by zone, and what was in its way so far."""

    def __init__(self, demand: GangDemand, owned: Owned, spec: CapacitySpec) -> None:
        self._demand = demand
        self._owned = owned
        self._spec = spec
        #: What a kind of machine cannot be had for now, and the limit that the first, which is the
        #: cheapest of a zone, was beyond.
        self._trouble = "no machine that may be bought has the resources that its tasks need"
        self._limit = ""

    @property
    def why(self) -> str:
        return self._limit or self._trouble

    def cheapest(self, pools: Sequence[Pool], zone: str | None, than: _Mix | None) -> _Mix | None:
        """Return the machines of one zone, or of any, that cost least, if they cost less ``than``.

        Those for the tasks with GPUs come first: what room these leave, others take.
        """
        demand = self._demand
        offers = [offer for offer in self._owned.offers if zone in (None, offer.zone)]
        kinds: dict[str, list[Pool]] = {}
        for pool in pools:
            kinds.setdefault(pool.instance_type, []).append(pool)
        mix: _Mix = ()
        for requests in (tuple(r for r in demand.requests if r.resources.gpus), demand.requests):
            trial = TrialPlacement(requests, [*offers, *made_up(mix, f"{demand.gang}/had")])
            if trial.fits(()):
                continue
            found = self._of_one_kind(trial, kinds, mix, than)
            if found is None:
                return None
            mix = found
        return mix

    def _of_one_kind(
        self,
        trial: TrialPlacement,
        kinds: Mapping[str, Sequence[Pool]],
        had: _Mix,
        than: _Mix | None,
    ) -> _Mix | None:
        """Return what is ``had``, and the machines of one kind beside it that cost least.

        Kinds come in the order of what they cost at least, until that is more than what was found.
        """
        at_least: list[tuple[tuple[Fraction, int], str, int]] = []
        for kind in sorted(kinds):
            least = trial.least(kinds[kind])
            some = least and self._more(kinds[kind], had, least)
            if least and some:
                at_least.append((_rank((*had, *some)), kind, least))
        best = than
        for rank, kind, least in sorted(at_least):
            if best is not None and rank >= _rank(best):
                break
            if self._limit and self._beyond(*rank):
                continue
            some = trial.fewest(least, partial(self._more, kinds[kind], had))
            found = (*had, *(some or ()))
            if not some or (best is not None and _rank(found) >= _rank(best)):
                continue
            if limit := self._beyond(*_rank(found)):
                self._limit = self._limit or limit
            else:
                best = found
        return None if best is than else best

    def _more(self, of_kind: Sequence[Pool], had: _Mix, count: int) -> _Mix | None:
        """Return so many machines of a kind beside those that are had; None where there are not."""
        base = self._owned.on_demand + _count(had, Market.ON_DEMAND)
        left = [_less(pool, had) for pool in of_kind]
        try:
            return _by_market(self._demand, base, count, left, self._spec)
        except _Waits as reason:
            self._trouble = str(reason)
            return None

    def _beyond(self, price: Fraction, count: int) -> str:
        return beyond(self._spec, self._owned, count, price)


def _by_market(
    demand: GangDemand, on_demand: int, count: int, pools: Sequence[Pool], spec: CapacitySpec
) -> _Mix:
    """Return so many machines of one type: spot ones, or what the deadline and the wait say.

    ``pools`` are sorted by price, ``on_demand`` machines are kept already. Raises _Waits where the
    market has too few.
    """
    kept = [pool for pool in pools if pool.market is Market.ON_DEMAND]
    spot = [pool for pool in pools if pool.market is Market.SPOT]
    if kept:
        spot = [pool for pool in spot if pool.price < kept[0].price]
    base = min(count, max(0, spec.on_demand_base - on_demand))
    most = count - base if demand.fleet is None else min(count - base, demand.fleet.spot)
    mix, left = _taken(spot, most)
    waits = demand.fleet is None and demand.waited < spec.spot_wait_seconds
    if left and spot and waits:
        seconds = spec.spot_wait_seconds - demand.waited
        raise _Waits(
            f"{counted(most, 'spot machine')} of {spot[0].instance_type} wanted, "
            f"{most - left} to be had; on-demand ones in {seconds:.0f} s"
        )
    rest, missing = _taken(kept, count - most + left)
    if missing:
        raise _Waits(f"{counted(count, 'machine')} of {pools[0].instance_type} cannot be had")
    return mix + rest


def _taken(pools: Sequence[Pool], count: int) -> tuple[_Mix, int]:
    """Take so many machines from the first pools that have some; return how many are missing."""
    mix: list[tuple[Pool, int]] = []
    for pool in pools:
        some = count if pool.available is None else min(count, pool.available)
        if some:
            mix.append((pool, some))
        count -= some
    return tuple(mix), count


def beyond(spec: CapacitySpec, owned: Owned, count: int, price: Fraction) -> str:
    """Return why so many machines more, at so much an hour, are too many; empty if they are not."""
    count += owned.instances
    if spec.max_instances is not None and count > spec.max_instances:
        return f"it would take {counted(count, 'machine')}; max_instances is {spec.max_instances}"
    price += owned.price_per_hour
    if spec.max_price_per_hour is not None and price > exact(spec.max_price_per_hour):
        return (
            f"all machines would cost {float(price):.2f} an hour; "
            f"max_price_per_hour is {spec.max_price_per_hour:.2f}"
        )
    if spec.budget is not None and owned.spent + price * _LEAST_HOURS > spec.budget:
        return (
            f"{owned.spent:.2f} of the budget of {spec.budget:.2f} is spent, "
            f"and an hour would cost {float(price):.2f}"
        )
    return ""


def _price(mix: _Mix) -> Fraction:
    return sum((exact(pool.price) * count for pool, count in mix), Fraction())


def _rank(mix: _Mix) -> tuple[Fraction, int]:
    """Return by what a mix is better than another: its price, then how few machines it has."""
    return _price(mix), _count(mix)


def _count(mix: _Mix, market: Market | None = None) -> int:
    return sum(count for pool, count in mix if market in (None, pool.market))


def _after(demand: GangDemand, owned: Owned, mix: _Mix) -> Owned:
    """Return what is there when the gang has its machines and its places on them."""
    offers = {offer.offer_id: offer for offer in (*owned.offers, *made_up(mix, demand.gang))}
    needs = {request.name: request.resources for request in demand.requests}
    for assignment in place(demand.requests, offers.values()).assignments:
        offer = offers[assignment.offer_ids[0]]
        left = offer.resources - needs[assignment.task]
        offers[offer.offer_id] = replace(offer, resources=left)
    return replace(
        owned,
        offers=tuple(offers.values()),
        instances=owned.instances + _count(mix),
        on_demand=owned.on_demand + _count(mix, Market.ON_DEMAND),
        price_per_hour=owned.price_per_hour + _price(mix),
    )


def _less(pool: Pool, mix: _Mix) -> Pool:
    if pool.available is None:
        return pool
    return replace(pool, available=pool.available - sum(n for p, n in mix if p.key == pool.key))
