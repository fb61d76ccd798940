"""The uses of machines in the ledger that are to be paid, as ``bill`` takes them. Pure.

Called by ``status`` for the bill, and by ``reconcile`` where old purchases become a sum, which
stays on it. The provider's clock gives begin and end of a machine.
All moments are told by our clock: the provider's are moved by whole seconds, which rounds none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dcos_tensorflow.capacity.billing import bill
from dcos_tensorflow.capacity.billing.usage import (
    HOURLY,
    MachineUse,
    Moment,
    PriceChange,
    Sums,
    Tariff,
    summed,
)
from dcos_tensorflow.capacity.ledger import Account, Entry, Ledger, OwnedMachine, Stage
from dcos_tensorflow.capacity.market import Market

#: About so many moments are kept of purchases that are not listed one by one any more.
PAST_MOMENTS = 100


def bill_of(ledger: Ledger, tariff: Tariff, now: float) -> bill.Bill:
    """Return the bill of everything that was ever bought, until ``now`` (unix seconds)."""
    parts = [_reckoned(entry, tariff, now) for entry in ledger.entries.values()]
    closed = bill.Reckoned(closed_lines(ledger.account), past=ledger.account.past)
    return bill.bill_of([closed, *parts], now)


def closed_lines(account: Account) -> tuple[Sums, ...]:
    """Return what those have cost that are not listed one by one any more.

    Of those that an earlier release has put together only the cost is known.
    """
    if account.closed or not account.closed_cost:
        return account.closed
    cost = round(account.closed_cost * HOURLY)
    return (Sums("earlier purchases", Market.ON_DEMAND, paid=cost, on_demand=cost),)


def closed(ledger: Ledger, gone: Sequence[Entry], tariff: Tariff, now: float) -> Ledger:
    """Return the ledger with purchases that are over as a sum."""
    parts = [_reckoned(entry, tariff, now) for entry in gone]
    parts.append(bill.Reckoned(closed_lines(ledger.account), past=ledger.account.past))
    account = replace(
        ledger.account,
        closed_cost=ledger.account.closed_cost + sum(entry.cost(now, tariff) for entry in gone),
        closed=summed(line for part in parts for line in part.lines),
        past=_past(parts),
    )
    left = {key: e for key, e in ledger.entries.items() if all(e is not each for each in gone)}
    return Ledger(account, left)


def _past(parts: Sequence[bill.Reckoned]) -> tuple[Moment, ...]:
    ends = [span.ended for part in parts for span in part.spans if span.ended is not None]
    until = max((*ends, *(each.at for part in parts for each in part.past)), default=0.0)
    return bill.over_time(parts, until, PAST_MOMENTS)


def _reckoned(entry: Entry, tariff: Tariff, now: float) -> bill.Reckoned:
    """Return what a purchase is to be paid for; what is over does not change any more."""
    if entry.stage is not Stage.OVER:
        return bill.reckoned(_uses_in(entry, now), tariff, now)
    found: bill.Reckoned | None = entry.remembered.get(tariff)
    if found is None:
        last = max((_end(m) for m in entry.machines), default=now)
        found = bill.reckoned(_uses_in(entry, now), tariff, max(now, last))
        entry.remembered[tariff] = found
    return found


def _end(machine: OwnedMachine) -> float:
    return max(machine.ended_at, machine.stopped_at - machine.clock_ahead)


def _uses_in(entry: Entry, now: float) -> Iterator[MachineUse]:
    return (_use(entry, machine, now) for machine in entry.machines)


def _use(entry: Entry, machine: OwnedMachine, now: float) -> MachineUse:
    busy = machine.busy_seconds
    if machine.busy_since:
        busy += max(0.0, (machine.ended_at or now) - machine.busy_since)
    lost = (machine.lost_until or now) - machine.lost_since if machine.lost_since else 0.0
    ahead = machine.clock_ahead
    started_at = machine.started_at - ahead if machine.started_at else machine.known_at
    ended_at = machine.stopped_at - ahead if machine.stopped_at else machine.ended_at
    return MachineUse(
        machine_id=machine.machine_id,
        purchase_id=entry.purchase_id,
        instance_type=machine.instance_type,
        zone=machine.zone,
        market=entry.market,
        started_at=started_at,
        ended_at=ended_at if machine.ended_at else None,
        prices=tuple(PriceChange(at, price) for at, price in machine.every_price),
        on_demand_price=entry.on_demand_price_of(machine),
        busy_seconds=busy,
        lost_seconds=max(0.0, lost),
        interrupted=machine.taken_back,
    )
