"""Facts of machines, taken into the ledger: the passive half of a round; decides nothing.

Called by ``reconcile``. A provider answers orders and lists its machines (a machine that was just
bought may be missing for a while); the master lists its agents and their tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from dcos_tensorflow.capacity.ledger import (
    Entry,
    Ledger,
    OwnedMachine,
    ProviderBackoff,
    Stage,
    key_of,
    pool_key,
)
from dcos_tensorflow.capacity.market import Pool
from dcos_tensorflow.capacity.provider import Bought, Machine, MachineState
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.records import dataclass

#: A machine that is not listed is taken to be there for so long: providers are consistent in the
#: end, not at once (seconds).
UNSEEN_SECONDS = 120.0
#: Waits after a provider's failure, and after a pool's; both double up to the last (seconds).
PROVIDER_BACKOFF = (5.0, 600.0)
POOL_BACKOFF = (60.0, 1800.0)


@dataclass(frozen=True)
class PurchaseAnswer:
    """What came of asking for one purchase: machines, or why there is no answer."""

    purchase_id: str
    bought: Bought | None = None
    trouble: str = ""
    #: Asking again changes nothing before a person has.
    is_final: bool = False


@dataclass(frozen=True)
class Agents:
    """What the master says of agents; the names are hostnames and addresses, in lower case."""

    known: frozenset[str] = frozenset()
    #: Those on which a task runs, ours or another's.
    busy: frozenset[str] = frozenset()
    #: Those that are to be taken back, as the task runners there were told.
    noticed: frozenset[str] = frozenset()
    #: Those that two agents say they are: what such a machine has is offered twice.
    twice: frozenset[str] = frozenset()
    #: Those that the master has been told to offer to no framework.
    closed: frozenset[str] = frozenset()
    #: Whether the master can be told so.
    can_be_closed: bool = False


def answered(ledger: Ledger, answer: PurchaseAnswer, now: float) -> Ledger:
    """Return the ledger with the provider's answer to an order."""
    entry = ledger.entries.get(answer.purchase_id)
    if entry is None:
        return ledger
    account = ledger.account
    if answer.bought is None:
        first, most = PROVIDER_BACKOFF
        first = most if answer.is_final else first
        orders = account.orders.failed(now, answer.trouble, first, most)
        entry = replace(entry, trouble=bounds.cut(answer.trouble, bounds.TEXT_BYTES))
        return ledger.put(entry).with_account(replace(account, orders=orders))
    for machine in answer.bought.machines:
        entry = entry.put(_owned(entry, machine, now))
    stage = Stage.BOUGHT if any(m.costs for m in entry.machines) else Stage.OVER
    missing = bounds.cut(answer.bought.missing, bounds.TEXT_BYTES)
    entry = replace(entry, stage=stage, trouble=missing)
    if entry.cancelled_at:
        entry = _given_up(entry, now)
    pools = dict(account.pools)
    if len(entry.machines) < entry.count:
        # The provider had the choice, and has found no more in any of them.
        why = answer.bought.missing or "the provider gave fewer machines than were asked for"
        for key in map(pool_key, entry.pools):
            pools[key] = pools.get(key, ProviderBackoff()).failed(now, why, *POOL_BACKOFF)
    else:
        for owned in entry.machines:
            pools.pop(pool_key(entry.pool_of(owned)), None)
    account = replace(account, orders=ProviderBackoff(), pools=pools)
    return ledger.put(entry).with_account(account)


def listed(
    ledger: Ledger, machines: Iterable[Machine], owner: str, now: float
) -> tuple[Ledger, tuple[str, ...]]:
    """Return the ledger as the provider's list has it, and machines that no purchase knows."""
    found = {machine.machine_id: machine for machine in machines if machine.owner == owner}
    strangers = []
    for machine in found.values():
        entry = ledger.entries.get(machine.purchase_id)
        if entry is not None:
            ledger = ledger.put(_seen(entry, machine, now))
        elif machine.state in (MachineState.STARTING, MachineState.RUNNING):
            strangers.append(machine.machine_id)
    for entry, owned in tuple(ledger.machines()):
        if owned.machine_id not in found:
            known = ledger.entries[entry.purchase_id]
            ledger = ledger.put(known.put(_unlisted(owned, now)))
    return ledger, tuple(sorted(strangers))


def _seen(entry: Entry, machine: Machine, now: float) -> Entry:
    known = next((m for m in entry.machines if m.machine_id == machine.machine_id), None)
    ended = machine.state is MachineState.ENDED
    if known is None and ended and entry.stage is Stage.OVER:
        return entry
    owned = replace(known or _owned(entry, machine, now), listed=True, missing_since=0.0)
    names = _names(machine) or owned.hostnames
    owned = replace(owned, hostnames=names, started_at=machine.started_at or owned.started_at)
    if not owned.zone and machine.zone:
        # The answer to the order did not say it: until now it counted as the dearest.
        counted = ((owned.counted_at, entry.pool_of(machine).price),)
        prices = counted if len(owned.prices) == 1 else owned.prices
        owned = replace(owned, zone=machine.zone, prices=prices)
    owned = replace(owned, is_ending=ended or machine.state is MachineState.ENDING)
    if ended and owned.costs:
        told = bounds.cut(machine.reason, bounds.NAME_BYTES)
        reason = "" if owned.asked_back_at else told or "the provider ended it"
        owned = replace(_interrupted(owned, now), ended_at=now, reason=reason)
    if ended and (machine.ended_at or not owned.stopped_at):
        stopped_at = machine.ended_at or machine.told_at or now + owned.clock_ahead
        owned = replace(owned, stopped_at=stopped_at, taken_back=machine.taken_back)
    if not ended and not owned.costs:
        # A list that it was missing in was too old.
        owned = replace(owned, ended_at=0.0, stopped_at=0.0, reason="")
    entry = entry.put(owned)
    if entry.stage is Stage.WRITTEN and len(entry.machines) >= entry.count:
        # Its answer was lost: this is what it would have been.
        entry = replace(entry, stage=Stage.BOUGHT, trouble="")
    if entry.stage is Stage.CANCELLED or (entry.stage is Stage.OVER and owned.costs):
        entry = _given_up(entry, now)
    return entry


def _given_up(entry: Entry, now: float) -> Entry:
    """Return a purchase whose machines came when no gang wanted them any more."""
    why = "no gang waits for it any more"
    stage = entry.stage if entry.stage is Stage.CANCELLED else Stage.BOUGHT
    machines = tuple(m.leave(now, why) if m.costs else m for m in entry.machines)
    if stage is Stage.CANCELLED and len(machines) >= entry.count:
        stage = Stage.BOUGHT
    return replace(entry, stage=stage, machines=machines)


def _owned(entry: Entry, machine: Machine, now: float) -> OwnedMachine:
    known = next((m for m in entry.machines if m.machine_id == machine.machine_id), None)
    if known is not None:
        return known
    return OwnedMachine(
        machine_id=machine.machine_id,
        instance_type=machine.instance_type,
        zone=machine.zone,
        counted_at=entry.written_at,
        known_at=now,
        awaited_since=now,
        prices=((entry.written_at, entry.pool_of(machine).price),),
        hostnames=_names(machine),
        started_at=machine.started_at,
        # A provider that does not tell the time has begun to start it just now.
        clock_ahead=round((machine.told_at or machine.started_at or now) - now),
        ended_at=now if machine.state is MachineState.ENDED else 0.0,
    )


def _names(machine: Machine) -> tuple[str, ...]:
    """Return the names and addresses of a machine, as many and as long as any has."""
    names = machine.hostnames[: bounds.NAMES_OF_A_MACHINE]
    return tuple(name for name in names if len(name) <= bounds.HOSTNAME_LETTERS)


def _unlisted(machine: OwnedMachine, now: float) -> OwnedMachine:
    """Return a machine that the provider does not list: it has ended, or is not listed yet."""
    if not machine.missing_since:
        return replace(machine, missing_since=now)
    gone = replace(machine, ended_at=now, stopped_at=machine.missing_since + machine.clock_ahead)
    if machine.listed and machine.asked_back_at:
        return gone
    if now - max(machine.missing_since, machine.known_at) < UNSEEN_SECONDS:
        return machine
    reason = "" if machine.asked_back_at else "the provider does not know it any more"
    return replace(_interrupted(gone, now), reason=reason)


def _interrupted(machine: OwnedMachine, now: float) -> OwnedMachine:
    """Return a machine that goes without our doing: with the tasks that run on it."""
    ours = machine.asked_back_at or machine.leaving_since
    if ours or machine.interrupted_at or not machine.busy_since:
        return machine
    return replace(machine, interrupted_at=now)


def not_given_back(ledger: Ledger, machine_ids: Collection[str]) -> Ledger:
    """Return the ledger with machines that the provider has not heard that it is to end."""
    for entry, machine in tuple(ledger.machines()) if machine_ids else ():
        if machine.machine_id in machine_ids:
            known = ledger.entries[entry.purchase_id]
            ledger = ledger.put(known.put(replace(machine, asked_back_at=0.0)))
    return ledger


def agents_seen(ledger: Ledger, agents: Agents, now: float) -> Ledger:
    """Return the ledger with whose agents the master knows, and which of them have tasks."""
    for entry, machine in tuple(ledger.machines()):
        seen = _with_agent(machine, agents, now)
        if seen is not machine:
            ledger = ledger.put(ledger.entries[entry.purchase_id].put(seen))
    return ledger


def _with_agent(machine: OwnedMachine, agents: Agents, now: float) -> OwnedMachine:
    names = machine.names
    is_known, is_busy = not names.isdisjoint(agents.known), not names.isdisjoint(agents.busy)
    if not is_known and not is_busy:
        if machine.is_registered:
            machine = _rested(_interrupted(machine, now), now)
            machine = replace(machine, awaited_since=now, idle_since=0.0)
        return machine
    if not machine.is_registered:
        first = machine.registered_at or now
        is_closed = not names.isdisjoint(agents.closed)
        machine = replace(machine, awaited_since=0.0, registered_at=first, is_closed=is_closed)
    if not names.isdisjoint(agents.noticed):
        machine = _interrupted(machine, now)
    elif machine.interrupted_at and not machine.lost_since:
        # It was out of reach for a while, and no task stopped because of that.
        machine = replace(machine, interrupted_at=0.0)
    if is_busy and not machine.busy_since:
        return replace(machine, busy_since=now, idle_since=0.0)
    if not is_busy and not machine.idle_since:
        return replace(_rested(machine, now), idle_since=now)
    return machine


def _rested(machine: OwnedMachine, now: float) -> OwnedMachine:
    """Return a machine on which no task runs any more."""
    if not machine.busy_since:
        return machine
    busy = machine.busy_seconds + max(0.0, now - machine.busy_since)
    return replace(machine, busy_since=0.0, busy_seconds=busy)


def prices_seen(ledger: Ledger, pools: Iterable[Pool], now: float) -> Ledger:
    """Return the ledger with what machines cost from now on: a change is kept once for a pool."""
    told = {pool_key(pool): pool.price for pool in pools}
    changed = {
        key: told[key]
        for entry, machine in ledger.machines()
        if (key := key_of(entry, machine)) in told and told[key] != machine.price
    }
    if not changed:
        return ledger
    listed = {key_of(e, m) for e in ledger.entries.values() for m in e.machines}
    prices = {key: known for key, known in ledger.account.prices.items() if key in listed}
    for key, price in changed.items():
        prices[key] = (*prices.get(key, ()), (now, price))
    most = max(2, bounds.MOST_PRICES // len(prices))
    account = replace(ledger.account, prices={k: _fewer(v, most) for k, v in prices.items()})
    return ledger.with_account(account).priced(changed)


def _fewer(prices: tuple[tuple[float, float], ...], most: int) -> tuple[tuple[float, float], ...]:
    """Return prices with the oldest ones as their mean, where there are too many."""
    while len(prices) > most:
        (first, one), (second, other), (third, _), *_rest = prices
        mean = (one * (second - first) + other * (third - second)) / (third - first)
        prices = ((first, mean), *prices[2:])
    return prices
