"""The purchases: each with its machines, and its cost. The nouns of the loop.

Kept by the core as opaque records (``core.model.machine_records``), so that a purchase is written
before the provider is asked. Used by ``mirror``, ``losses``, ``reconcile`` and ``status``. Every
time is ours unless a field says otherwise: times of two clocks are never compared.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dcos_tensorflow.capacity.billing.usage import BY_THE_SECOND, Moment, Sums, Tariff
from dcos_tensorflow.capacity.market import Market, Pool, exact
from dcos_tensorflow.capacity.provider import Machine, PurchaseOrder
from dcos_tensorflow.core.model.bounds import NAME_BYTES, cut
from dcos_tensorflow.records import dataclass

HOUR = 3600.0


class Stage(StrEnum):
    """Where a purchase stands."""

    #: It is written; the provider may have been asked, and has not answered.
    WRITTEN = "written"
    BOUGHT = "bought"
    #: No gang wants it any more, and the provider may have been asked: what comes is given back.
    CANCELLED = "cancelled"
    #: None of its machines costs anything any more.
    OVER = "over"


@dataclass(frozen=True)
class OwnedMachine:
    """One machine of a purchase. Times are unix seconds, 0 for what has not happened."""

    #: The provider's: ``i-0abc``.
    machine_id: str
    instance_type: str
    zone: str
    #: Since when it is counted: the purchase was written then.
    counted_at: float
    #: When we first heard of it.
    known_at: float
    #: Since then its agent is waited for; 0 while it is registered.
    awaited_since: float
    #: What it costs an hour, from when on: as it was bought ...
    prices: tuple[tuple[float, float], ...] = ()
    hostnames: tuple[str, ...] = ()
    #: From when until when it is paid, for the bill alone: by the provider's clock, which was so
    #: many whole seconds ahead of ours when we first heard of the machine.
    started_at: float = 0.0
    stopped_at: float = 0.0
    clock_ahead: int = 0
    #: Whether the provider has listed it, and since when it does not any more.
    listed: bool = False
    missing_since: float = 0.0
    #: Tasks run on it since then, or none does; one of the two is set once it is registered.
    busy_since: float = 0.0
    idle_since: float = 0.0
    #: So long tasks ran on it before that.
    busy_seconds: float = 0.0
    #: To be emptied since then, and why.
    leaving_since: float = 0.0
    why: str = ""
    #: Its tasks are to move, as from a machine that is taken back.
    moves: bool = False
    #: The master is to offer it to no framework: by us, or by the machine's owner before us.
    is_closed: bool = False
    #: The provider was last asked to end it.
    asked_back_at: float = 0.0
    #: When its agent was first known.
    registered_at: float = 0.0
    #: The provider says that it is on its way out.
    is_ending: bool = False
    ended_at: float = 0.0
    #: Why it ended, in the provider's words; empty for what was given back.
    reason: str = ""
    #: Whether the provider took it back unasked, as it says itself.
    taken_back: bool = False
    #: When we heard that it goes, or has gone, unasked, while tasks ran on it ...
    interrupted_at: float = 0.0
    #: ... and from when until when its gang did not train because of that.
    lost_since: float = 0.0
    lost_until: float = 0.0
    #: ... and after that, of its pool (``Account.prices``, which is where they are kept).
    later: tuple[tuple[float, float], ...] = field(default=(), compare=False)

    @property
    def every_price(self) -> tuple[tuple[float, float], ...]:
        """Return what it costs an hour, from when on: the last one counts."""
        return (*self.prices, *self.later)

    @property
    def costs(self) -> bool:
        """Say whether it may still cost something."""
        return not self.ended_at

    @property
    def is_useful(self) -> bool:
        """Say whether something may be placed on it, now or when its agent has come."""
        return self.costs and not self.leaving_since and not self.is_ending

    @property
    def is_registered(self) -> bool:
        """Say whether its agent is known to the master."""
        return not self.awaited_since

    @property
    def names(self) -> frozenset[str]:
        """Return by which names and addresses its agent may be known, in lower case."""
        return frozenset(name.lower() for name in self.hostnames)

    @property
    def price(self) -> float:
        """Return what it costs an hour now."""
        known = self.later or self.prices
        return known[-1][1] if known else 0.0

    def cost(self, now: float, tariff: Tariff) -> float:
        """Return what it has cost so far, from when it was written."""
        lasted = max(0.0, (self.ended_at or now) - self.counted_at)
        end = self.counted_at + tariff.billed(lasted)
        total, prices = 0.0, self.every_price
        for number, (since, price) in enumerate(prices):
            begin = self.counted_at if number == 0 else since
            until = prices[number + 1][0] if number + 1 < len(prices) else end
            total += max(0.0, min(until, end) - begin) * price / HOUR
        return total

    def leave(self, now: float, why: str) -> OwnedMachine:
        """Return the machine as one that is to be emptied and given back."""
        return self if self.leaving_since else replace(self, leaving_since=now, why=why)


@dataclass(frozen=True)
class Entry:
    """One purchase, all of one market."""

    purchase_id: str
    #: Where the machines may come from, the one that it was planned for first: what comes is known
    #: when the provider says so, and until then counts as the dearest.
    pools: tuple[Pool, ...]
    count: int
    #: For whom: the gangs that waited.
    gangs: tuple[str, ...]
    written_at: float
    #: What an on-demand machine of each pool's kind costs an hour, as far as it is known.
    on_demand_prices: tuple[float, ...]
    max_price: float | None = None
    stage: Stage = Stage.WRITTEN
    #: When it was cancelled; 0 when it was not.
    cancelled_at: float = 0.0
    #: Why the provider has not answered, or gave fewer machines.
    trouble: str = ""
    machines: tuple[OwnedMachine, ...] = ()

    @property
    def pool(self) -> Pool:
        """Return the pool that it was planned for."""
        return self.pools[0]

    def pool_of(self, machine: OwnedMachine | Machine) -> Pool:
        """Return the pool that a machine came from: the dearest that it may have come from."""
        of_kind = [p for p in self.pools if p.instance_type == machine.instance_type]
        there = [pool for pool in of_kind if pool.zone == machine.zone]
        return max(there or of_kind or self.pools, key=lambda pool: pool.price)

    def on_demand_price_of(self, machine: OwnedMachine) -> float:
        """Return what an on-demand machine of its kind costs an hour, as far as it is known."""
        return self.on_demand_prices[self.pools.index(self.pool_of(machine))]

    @property
    def market(self) -> Market:
        """Return how its machines are paid for."""
        return self.pool.market

    @property
    def left(self) -> int:
        """Return how many machines may still cost something, those that may come included."""
        return self.expected + sum(machine.costs for machine in self.machines)

    @property
    def expected(self) -> int:
        """Return how many machines may still come of it."""
        if self.stage not in (Stage.WRITTEN, Stage.CANCELLED):
            return 0
        return max(0, self.count - len(self.machines))

    @property
    def leaving(self) -> tuple[str, ...]:
        """Return the names of its machines that are to be emptied."""
        going = (m for m in self.machines if m.costs and m.leaving_since)
        return tuple(sorted({name for machine in going for name in machine.hostnames}))

    @property
    def moving(self) -> tuple[str, ...]:
        """Return the names of its machines whose tasks are to move."""
        going = (m for m in self.machines if m.costs and m.moves)
        return tuple(sorted({name for machine in going for name in machine.hostnames}))

    @property
    def price_per_hour(self) -> Fraction:
        """Return what an hour of all of it costs, those that may come included."""
        there = sum((exact(m.price) for m in self.machines if m.costs), Fraction())
        return there + self.expected * exact(self.dearest)

    @property
    def dearest(self) -> float:
        """Return the most that one of its machines costs an hour."""
        return max(pool.price for pool in self.pools)

    def cost(self, now: float, tariff: Tariff) -> float:
        """Return what it has cost so far. What was ordered counts in full from then on."""
        seconds = tariff.billed(max(0.0, now - self.written_at))
        ordered = self.expected * self.dearest * seconds / HOUR
        return ordered + sum(machine.cost(now, tariff) for machine in self.machines)

    @functools.cached_property
    def remembered(self) -> dict[Any, Any]:
        """Hold what others work out of this purchase once (its part of the bill)."""
        return {}

    def order(self, owner: str) -> PurchaseOrder:
        """Return what the provider is asked: the same each time."""
        return PurchaseOrder(self.purchase_id, owner, self.pools, self.count, self.max_price)

    def put(self, machine: OwnedMachine) -> Entry:
        """Return the purchase with this machine in place of what was known of it."""
        others = [known for known in self.machines if known.machine_id != machine.machine_id]
        found = sorted((*others, machine), key=lambda each: each.machine_id)
        return replace(self, machines=tuple(found))


@dataclass(frozen=True)
class ProviderBackoff:
    """Something that failed is not tried again before ``until``; it grows with each failure."""

    failures: int = 0
    until: float = 0.0
    why: str = ""

    def failed(self, now: float, why: str, first: float, most: float) -> ProviderBackoff:
        """Return the same after one more failure; ``first`` and ``most`` are waits in seconds."""
        wait = min(first * 2 ** min(self.failures, 16), most)
        return ProviderBackoff(self.failures + 1, now + wait, cut(why, NAME_BYTES))

    def holds(self, now: float) -> bool:
        """Say whether it is too early."""
        return now < self.until


@dataclass(frozen=True)
class Account:
    """What is true of all purchases together."""

    #: How many were ever written: their ids are made of it.
    purchases: int = 0
    #: What those have cost that are not listed one by one any more, as a budget counts it ...
    closed_cost: float = 0.0
    #: ... as the bill has them, and how it came about.
    closed: tuple[Sums, ...] = ()
    past: tuple[Moment, ...] = ()
    #: When a gang first waited for a machine: a deadline in seconds counts from there.
    began_at: float = 0.0
    #: Of asking what there is, and of giving back ...
    provider: ProviderBackoff = ProviderBackoff()
    #: ... and of buying.
    orders: ProviderBackoff = ProviderBackoff()
    #: By the pool's text key.
    pools: Mapping[str, ProviderBackoff] = field(default_factory=dict)
    #: By the same key: what machines of a pool cost an hour from when on, as it has changed while
    #: there were any.
    prices: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def to_be_had(self, pool: Pool, now: float) -> Pool:
        """Return a pool, empty where it is not to be asked now."""
        held = self.pools.get(pool_key(pool), ProviderBackoff()).holds(now)
        return replace(pool, available=0) if held else pool


@dataclass(frozen=True)
class Ledger:
    """All of it."""

    account: Account = Account()
    #: By purchase id.
    entries: Mapping[str, Entry] = field(default_factory=dict)

    def machines(self) -> Iterator[tuple[Entry, OwnedMachine]]:
        """Yield every machine that may still cost something, with its purchase."""
        for entry in self.entries.values():
            for machine in entry.machines:
                if machine.costs:
                    yield entry, machine

    @property
    def left(self) -> int:
        """Return how many machines may still cost something."""
        return sum(entry.left for entry in self.entries.values())

    @property
    def price_per_hour(self) -> Fraction:
        """Return what an hour of everything costs."""
        going = (entry for entry in self.entries.values() if entry.stage is not Stage.OVER)
        return sum((entry.price_per_hour for entry in going), Fraction())

    def on_demand(self) -> int:
        """Return how many on-demand machines there are, or may come."""
        return sum(e.left for e in self.entries.values() if e.market is Market.ON_DEMAND)

    def spent(self, now: float, tariff: Tariff = BY_THE_SECOND) -> float:
        """Return what everything has cost so far."""
        entries = self.entries.values()
        return self.account.closed_cost + sum(entry.cost(now, tariff) for entry in entries)

    def priced(self, keys: Collection[str] | None = None) -> Ledger:
        """Return the ledger whose machines know what their pools have cost since they came.

        Those of some pools, or of all.
        """
        prices, entries = self.account.prices, dict(self.entries)
        known: dict[tuple[str, float, float], tuple[tuple[float, float], ...]] = {}
        for entry in self.entries.values() if prices else ():
            machines = []
            for machine in entry.machines:
                key = key_of(entry, machine)
                if key in prices and (keys is None or key in keys):
                    since = machine.prices[-1][0] if machine.prices else machine.counted_at
                    place = (key, since, machine.ended_at)
                    if place not in known:
                        known[place] = _between(prices[key], since, machine.ended_at)
                    if machine.later != known[place]:
                        machine = replace(machine, later=known[place])  # noqa: PLW2901
                machines.append(machine)
            if any(new is not old for new, old in zip(machines, entry.machines, strict=True)):
                entries[entry.purchase_id] = replace(entry, machines=tuple(machines))
        return replace(self, entries=entries)

    def put(self, entry: Entry) -> Ledger:
        """Return the ledger with this purchase in place of what was known of it."""
        return replace(self, entries={**self.entries, entry.purchase_id: entry})

    def with_account(self, account: Account) -> Ledger:
        """Return the ledger with this account."""
        return replace(self, account=account)


def pool_key(pool: Pool) -> str:
    """Return the text by which a pool's back-off and prices are kept."""
    return "/".join(pool.key)


def key_of(entry: Entry, machine: OwnedMachine) -> str:
    """Return the same of the pool that a machine came from."""
    return "/".join((machine.instance_type, machine.zone, entry.market))


def _between(
    prices: tuple[tuple[float, float], ...], since: float, until: float
) -> tuple[tuple[float, float], ...]:
    """Return the changes after ``since`` and before ``until``, which is 0 for no end."""
    return tuple(each for each in prices if since < each[0] and not 0 < until <= each[0])
