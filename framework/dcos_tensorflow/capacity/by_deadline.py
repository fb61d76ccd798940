"""The machines for a gang with a deadline: ``deadline``, asked with the known facts.

Called by ``scheduler.machines.buying`` before each round. Pure. How much work is left is measured:
steps a second while the gang trained, and how many steps there are in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dcos_tensorflow.capacity.deadline import (
    DeadlineJob,
    Fleet,
    JobObservation,
    Memory,
    Quote,
    RestartCost,
    decide,
)
from dcos_tensorflow.capacity.exchange import trained_on
from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.capacity.market import Market, Pool, may_buy
from dcos_tensorflow.capacity.planner import GangDemand, Owned, plan
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.records import dataclass

#: A pace is known once the gang has trained for so long (seconds).
MEASURED_SECONDS = 30.0
#: Without a pace spot machines are used until this share of the time is gone.
_UNMEASURED_SHARE = 0.5
#: A boot takes at least so long until some were seen (seconds), and by how many of the newest ones
#: the next is judged.
UNSEEN_BOOT_SECONDS = 180.0
_BOOTS_ENOUGH, _BOOTS_ASKED = 3, 10


@dataclass(frozen=True)
class Pace:
    """How fast a job gets on: what was seen of its steps. Times are unix seconds."""

    #: Where the present stretch of training began, as it was seen.
    since: float = 0.0
    first_step: int = 0
    #: Steps a second, of the longest stretch so far; 0 while it is not known.
    rate: float = 0.0
    step: int = 0

    def seen(self, now: float, step: int | None, *, trains: bool) -> Pace:
        """Return the pace after one more look at the job."""
        if step is None or not trains:
            return replace(self, since=0.0, step=max(self.step, step or 0))
        if not self.since or step < self.step:
            return replace(self, since=now, first_step=step, step=step)
        lasted = now - self.since
        rate = (step - self.first_step) / lasted if lasted >= MEASURED_SECONDS else 0.0
        return replace(self, rate=rate or self.rate, step=step)


@dataclass(frozen=True)
class Way:
    """How far a job is, and by when it has to be done; unix seconds."""

    now: float
    began: float
    deadline: float
    pace: Pace
    #: How many steps the job makes; 0 where it is not known.
    total_steps: int
    #: Its gang trains now.
    trains: bool
    cost: RestartCost

    @property
    def work_left(self) -> float | None:
        """Return how long the gang still has to train; None where that is not known."""
        if not self.total_steps or not self.pace.rate:
            return None
        return max(0.0, self.total_steps - self.pace.step) / self.pace.rate


def boot_seconds(ledger: Ledger, most: float) -> float:
    """Return how long a machine takes from its order until its agent is known, as far as was seen.

    It is the longest of the newest ones: a deadline hangs on it. No machine is waited for for more
    than ``most`` seconds, but a listing may be late.
    """
    seen = [
        (machine.registered_at, machine.registered_at - entry.written_at)
        for entry in ledger.entries.values()
        for machine in entry.machines
        if machine.registered_at
    ]
    longest = max((took for _, took in sorted(seen)[-_BOOTS_ASKED:]), default=0.0)
    least = UNSEEN_BOOT_SECONDS if len(seen) < _BOOTS_ENOUGH else 0.0
    return min(max(longest, least), max(most, least))


def fleet_of(
    way: Way,
    demand: GangDemand | None,
    ledger: Ledger,
    *,
    pools: Sequence[Pool],
    spec: CapacitySpec,
    memory: Memory,
    next_look: float,
) -> tuple[Fleet | None, Memory]:
    """Return the whole fleet that the gang is to have, and what to remember.

    None where the deadline says nothing: spot machines first, as without one.
    """
    pools = [pool for pool in pools if may_buy(pool, spec)]
    there = [(e, m) for e, m in ledger.machines() if m.is_useful]
    if way.trains and (now := trained_on(ledger)):
        there = now
        # A gang that is to move has its place on machines that are there, or are bought for it.
        demand = None if any(m.moves for _, m in now) else demand
    spot = sum(entry.market is Market.SPOT for entry, _ in there)
    zone = there[0][1].zone if there else ""
    more = _more(demand, pools, spec)
    kind = there[0][1].instance_type if there else next((p.instance_type for p, _ in more), "")
    machines = len(there) + sum(count for _, count in more)
    if not machines:
        return None, memory
    left = way.work_left
    if left is None:
        share = (way.now - way.began) / max(1.0, way.deadline - way.began)
        safe = Fleet("", 0, machines) if share >= _UNMEASURED_SHARE else None
        return safe, memory
    fleet = Fleet(zone, spot, len(there) - spot)
    known = [ledger.account.to_be_had(pool, way.now) for pool in pools]
    ours = Counter(m.zone for e, m in ledger.machines() if m.is_useful and e.market is Market.SPOT)
    ours |= Counter({zone: spot})
    quotes = tuple(_quotes(kind, ours, machines, known))
    if not quotes:
        return None, memory
    whole = not more
    job = DeadlineJob(
        machines=machines,
        work=max(1.0, way.total_steps / way.pace.rate),
        began=way.began,
        deadline=way.deadline,
        cost=way.cost,
    )
    ready_in = (0.0 if way.trains else way.cost.cold) if whole else None
    if zone and zone not in {quote.zone for quote in quotes}:
        return None, memory
    sight = JobObservation(way.now, left, fleet, ready_in, quotes, next_look)
    return decide(job, sight, memory)


def _more(
    demand: GangDemand | None, pools: Sequence[Pool], spec: CapacitySpec
) -> tuple[tuple[Pool, int], ...]:
    """Return what it takes beside the machines that are there, by on-demand ones."""
    if demand is None:
        return ()
    kept = [pool for pool in pools if pool.market is Market.ON_DEMAND]
    free = replace(spec, max_instances=None, max_price_per_hour=None, budget=None)
    found = plan([replace(demand, fleet=None, waited=1e9)], Owned(), kept, free)
    return tuple((each.pool, each.count) for each in found.wanted)


def _quotes(
    kind: str, ours: Mapping[str, int], machines: int, pools: Sequence[Pool]
) -> Iterator[Quote]:
    """Yield what each zone has of one type of machine, with our own spot machines there."""
    of_kind = {(p.zone, p.market): p for p in pools if p.instance_type == kind}
    for zone in sorted({zone for zone, _ in of_kind}):
        kept = of_kind.get((zone, Market.ON_DEMAND))
        offered = of_kind.get((zone, Market.SPOT))
        if kept is None:
            continue
        available, price = ours.get(zone, 0), kept.price
        if offered is not None:
            available += machines if offered.available is None else offered.available
            price = offered.price
        yield Quote(zone, min(available, machines), price, kept.price)
