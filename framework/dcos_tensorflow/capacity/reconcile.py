"""One round of the loop that buys: machines beside demand, and the orders that follow.

Called by ``scheduler.machines.buying`` again and again. Level-triggered: whatever happened before,
a crash between any two steps included, the next round finds it and does what is due. Pure: the
returned ledger is written first; only then are the orders sent, which are the same each time, and
machines ended.

1. ``mirror``: the ledger takes the facts of provider and master;
2. ``leavers``: machines leave that are of no use, are offered to no framework any more, and go
   back when they are empty;
3. a purchase without an answer is asked for again, or cancelled when no gang waits any more;
4. waiting gangs are planned for, and exchanges of machines (``exchange``); purchases are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

from dcos_tensorflow.capacity import exchange, mirror
from dcos_tensorflow.capacity.billing import uses
from dcos_tensorflow.capacity.leavers import asked_back, closed, with_leavers
from dcos_tensorflow.capacity.ledger import HOUR, Account, Entry, Ledger, ProviderBackoff, Stage
from dcos_tensorflow.capacity.losses import losses_seen
from dcos_tensorflow.capacity.market import Market, Pool, WantedMachines, may_buy
from dcos_tensorflow.capacity.observation import Observation, Rules
from dcos_tensorflow.capacity.planner import Owned, PurchasePlan, beyond, plan
from dcos_tensorflow.capacity.provider import PurchaseOrder
from dcos_tensorflow.capacity.trial_placement import offer_of
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.bounds import MACHINES_OF_A_PURCHASE
from dcos_tensorflow.records import dataclass

#: A cancelled purchase is over when nothing of it was listed for so long (seconds).
SETTLE_SECONDS = mirror.UNSEEN_SECONDS
#: The job is ended while the budget has so much left for all machines (seconds).
RESERVE_SECONDS = 300.0
#: Purchases that are over and are still listed one by one; the older ones are a sum.
ENTRIES_KEPT = 200


@dataclass(frozen=True)
class Round:
    """What follows: the ledger to keep, then what to do, and why."""

    ledger: Ledger
    orders: tuple[PurchaseOrder, ...] = ()
    #: Names of machines that the master is to offer to no framework, and of those it may again.
    close: tuple[frozenset[str], ...] = ()
    reopen: tuple[frozenset[str], ...] = ()
    #: Ids of machines to end.
    give_back: tuple[str, ...] = ()
    #: What was decided, one sentence each.
    why: tuple[str, ...] = ()
    #: (gang, why nothing is bought for it).
    waits: tuple[tuple[str, str], ...] = ()
    #: Why the job has to end now; empty when it has not.
    stop: str = ""


def reconcile(before: Ledger, sight: Observation, rules: Rules) -> Round:
    """Return what to do now."""
    ledger, strangers = _mirrored(before, sight, rules)
    strangers = () if ledger.account.provider.holds(sight.now) else strangers
    why = [f"{counted(len(strangers), 'machine')} without an order"] if strangers else []
    planned, wanted = _planned(ledger, sight, rules)
    others = _others(ledger, sight, rules)
    wanted += () if others is None or _too_early(ledger.account, sight.now) else others
    ledger, left = with_leavers(ledger, sight, rules, kept=planned, goes_over=others is not None)
    ledger, close, reopen = closed(ledger, sight)
    ledger, going = asked_back(ledger, before, sight, rules)
    ledger, repeated = _repeated(ledger, sight, goes_over=others is not None)
    ledger, new = _written(ledger, wanted, sight, rules)
    orders = tuple(entry.order(rules.owner) for entry in (*repeated, *new))
    why += [*left, *(_told(entry) for entry in new)]
    if going:
        why.append(f"giving back {', '.join(going)}")
    stop = "" if sight.over_since else why_spent(ledger, sight.now, rules)
    waits = _waits(planned, ledger.account, sight)
    ledger = _folded(ledger, sight.now, rules)
    return Round(ledger, orders, close, reopen, (*going, *strangers), tuple(why), waits, stop)


def _mirrored(before: Ledger, sight: Observation, rules: Rules) -> tuple[Ledger, tuple[str, ...]]:
    ledger, now = before, sight.now
    strangers: tuple[str, ...] = ()
    for answer in sight.answers:
        ledger = mirror.answered(ledger, answer, now)
    ledger = mirror.not_given_back(ledger, sight.not_given_back)
    if sight.trouble:
        account = ledger.account
        provider = account.provider.failed(now, sight.trouble, *mirror.PROVIDER_BACKOFF)
        ledger = ledger.with_account(replace(account, provider=provider))
    elif sight.machines is not None and ledger.account.provider != ProviderBackoff():
        ledger = ledger.with_account(replace(ledger.account, provider=ProviderBackoff()))
    if sight.machines is not None:
        ledger, strangers = mirror.listed(ledger, sight.machines, rules.owner, now)
    if sight.agents is not None:
        ledger = mirror.agents_seen(ledger, sight.agents, now)
    if sight.pools is not None:
        ledger = mirror.prices_seen(ledger, sight.pools, now)
    ledger = losses_seen(ledger, sight.pauses, now)
    if sight.demands and not ledger.account.began_at:
        began_at = now - max(demand.waited for demand in sight.demands)
        ledger = ledger.with_account(replace(ledger.account, began_at=began_at))
    return _closed(ledger, now), strangers


def _closed(ledger: Ledger, now: float) -> Ledger:
    """Return the ledger with purchases over of which nothing can cost any more."""
    for entry in ledger.entries.values():
        settled = entry.stage is Stage.BOUGHT or (
            entry.stage is Stage.CANCELLED and now - entry.cancelled_at >= SETTLE_SECONDS
        )
        if settled and not any(machine.costs for machine in entry.machines):
            ledger = ledger.put(replace(entry, stage=Stage.OVER))
    return ledger


# -- what waits ------------------------------------------------------------------------------------


def _planned(
    ledger: Ledger, sight: Observation, rules: Rules
) -> tuple[PurchasePlan | None, tuple[WantedMachines, ...]]:
    """Return the plan for those that have waited long enough; None where nothing can be planned."""
    demands = [d for d in sight.demands if d.waited >= rules.patience_seconds]
    fleet = sight.fleet
    if fleet is not None and demands:
        if fleet.machines:
            fleet = replace(fleet, spot=max(0, fleet.spot - _spot_there(ledger)))
        demands[0] = replace(demands[0], fleet=fleet)
    if sight.over_since or sight.pools is None or not demands:
        return None, ()
    pools = [_as_it_may_be_had(pool, ledger.account, sight.now, rules) for pool in sight.pools]
    found = plan(demands, _owned(ledger, sight, rules), pools, rules.spec)
    return found, () if _too_early(ledger.account, sight.now) else found.wanted


def _others(ledger: Ledger, sight: Observation, rules: Rules) -> tuple[WantedMachines, ...] | None:
    """Return what is to be bought for a gang that goes over to other machines while it trains.

    None where it does not, because the rule wants none or there is no way within the limits.
    """
    fleet, pools = sight.fleet, sight.pools
    if sight.over_since or fleet is None or not exchange.is_going_over(ledger, fleet):
        return None
    base = min(fleet.machines, rules.spec.on_demand_base)
    if fleet.on_demand < base or pools is None:
        return None
    to_be_had = (
        _as_it_may_be_had(pool, ledger.account, sight.now, rules)
        for pool in pools
        if may_buy(pool, rules.spec)
    )
    found = exchange.missing(ledger, fleet, to_be_had)
    count = sum(each.count for each in found or ())
    price = sum((each.price for each in found or ()), Fraction())
    # Until it has moved both are paid.
    return None if beyond(rules.spec, _owned(ledger, sight, rules), count, price) else found


def _spot_there(ledger: Ledger) -> int:
    there = [entry for entry, machine in ledger.machines() if machine.is_useful]
    return sum(entry.market is Market.SPOT for entry in there)


def _too_early(account: Account, now: float) -> bool:
    """Say whether the provider is to be left alone with orders."""
    return account.provider.holds(now) or account.orders.holds(now)


def _as_it_may_be_had(pool: Pool, account: Account, now: float, rules: Rules) -> Pool:
    """Return a pool, empty where it is not to be asked now."""
    most = rules.spec.max_spot_price
    dear = most is not None and pool.market is Market.SPOT and pool.price > most
    return replace(pool, available=0) if dear else account.to_be_had(pool, now)


def _owned(ledger: Ledger, sight: Observation, rules: Rules) -> Owned:
    """Return what is there for those that wait: free room, and machines on their way."""
    going = {
        name for _, machine in ledger.machines() if not machine.is_useful for name in machine.names
    }
    free = (
        offer
        for offer in sight.offers
        if going.isdisjoint((offer.hostname.lower(), offer.address.lower()))
    )
    on_their_way = (
        offer_of(entry.pool_of(machine), machine.machine_id)
        for entry, machine in ledger.machines()
        if machine.is_useful and not machine.is_registered
    )
    ordered = (
        offer_of(entry.pool, f"{entry.purchase_id}/{number}")
        for entry in ledger.entries.values()
        if entry.stage is Stage.WRITTEN
        for number in range(entry.expected)
    )
    return Owned(
        offers=(*free, *on_their_way, *ordered),
        instances=ledger.left,
        on_demand=ledger.on_demand(),
        price_per_hour=ledger.price_per_hour,
        spent=ledger.spent(sight.now, rules.tariff),
    )


def _written(
    ledger: Ledger, wanted: Sequence[WantedMachines], sight: Observation, rules: Rules
) -> tuple[Ledger, tuple[Entry, ...]]:
    account, made = ledger.account, []
    for each in _in_values(wanted):
        account = replace(account, purchases=account.purchases + 1)
        pools = (each.pool, *each.others)
        entry = Entry(
            purchase_id=f"{rules.prefix}-{account.purchases}",
            pools=tuple(replace(pool, available=None) for pool in pools),
            count=each.count,
            gangs=each.gangs,
            written_at=sight.now,
            on_demand_prices=tuple(_on_demand_price(pool, sight.pools or ()) for pool in pools),
            max_price=rules.spec.max_spot_price if each.pool.market is Market.SPOT else None,
        )
        ledger = ledger.put(entry)
        made.append(entry)
    return ledger.with_account(account), tuple(made)


def _in_values(wanted: Iterable[WantedMachines]) -> Iterator[WantedMachines]:
    """Yield what is wanted in purchases that are small values of the state store."""
    for each in wanted:
        for first in range(0, each.count, MACHINES_OF_A_PURCHASE):
            yield replace(each, count=min(MACHINES_OF_A_PURCHASE, each.count - first))


def _on_demand_price(pool: Pool, pools: Iterable[Pool]) -> float:
    of_kind = (p for p in pools if p.instance_type == pool.instance_type)
    kept = {p.zone: p.price for p in of_kind if p.market is Market.ON_DEMAND}
    return kept.get(pool.zone, min(kept.values(), default=pool.price))


def _repeated(
    ledger: Ledger, sight: Observation, *, goes_over: bool
) -> tuple[Ledger, tuple[Entry, ...]]:
    """Return purchases to ask for again, and cancel those that no gang waits for any more."""
    now, again = sight.now, []
    waiting = {demand.gang for demand in sight.demands}
    if goes_over:
        waiting |= {gang for entry, _ in exchange.trained_on(ledger) for gang in entry.gangs}
    for entry in ledger.entries.values():
        if entry.stage is not Stage.WRITTEN:
            continue
        if sight.over_since or waiting.isdisjoint(entry.gangs):
            cancelled = replace(entry, stage=Stage.CANCELLED, cancelled_at=now)
            why = "no gang waits for it any more"
            machines = tuple(m.leave(now, why) for m in entry.machines)
            ledger = ledger.put(replace(cancelled, machines=machines))
        elif not _too_early(ledger.account, now):
            again.append(entry)
    return ledger, tuple(again)


def _told(entry: Entry) -> str:
    pool, others = entry.pool, len(entry.pools) - 1
    kind = f"{pool.market} machine"
    where = f"{pool.instance_type} in {pool.zone}"
    price = f"{pool.price:.4g}"
    if others:
        where += f" or of {counted(others, 'other pool')}"
        price += f" to {entry.dearest:.4g}"
    return (
        f"buying {counted(entry.count, kind)} of {where} at {price} an hour each"
        f" for {', '.join(entry.gangs)} ({entry.purchase_id})"
    )


def _waits(
    planned: PurchasePlan | None, account: Account, sight: Observation
) -> tuple[tuple[str, str], ...]:
    """Return the gangs that get nothing now, and why."""
    if _too_early(account, sight.now):
        held = account.orders if account.orders.holds(sight.now) else account.provider
        at = datetime.fromtimestamp(held.until, UTC)
        # No seconds to go: they would be another sentence each time, to be kept and logged.
        why = f"the provider of machines is asked again at {at:%H:%M:%S} UTC: {held.why}"
        return tuple((demand.gang, why) for demand in sight.demands)
    waits = planned.waits if planned is not None else ()
    refused: dict[str, list[str]] = {}
    for key, backoff in sorted(account.pools.items()):
        if backoff.holds(sight.now):
            refused.setdefault(backoff.why, []).append(key)
    told = "; ".join(f"{', '.join(keys)}: {why}" for why, keys in refused.items())
    more = f" ({told})" if told else ""
    return tuple((gang, f"{why}{more}") for gang, why in waits)


# -- money -----------------------------------------------------------------------------------------


def why_spent(ledger: Ledger, now: float, rules: Rules) -> str:
    """Return why the job has to end: what is left of the budget is what its end takes."""
    budget = rules.spec.budget
    if budget is None or not ledger.left:
        return ""
    spent = ledger.spent(now, rules.tariff)
    if spent + ledger.price_per_hour * RESERVE_SECONDS / HOUR < budget:
        return ""
    return f"the budget of {budget:.2f} is spent: machines have cost {spent:.2f}"


def _folded(ledger: Ledger, now: float, rules: Rules) -> Ledger:
    """Return the ledger with the oldest purchases that are over as a sum."""
    over = [entry for entry in ledger.entries.values() if entry.stage is Stage.OVER]
    if len(over) <= ENTRIES_KEPT:
        return ledger
    oldest = sorted(over, key=lambda entry: entry.written_at)[: len(over) - ENTRIES_KEPT]
    return uses.closed(ledger, oldest, rules.tariff, now)
