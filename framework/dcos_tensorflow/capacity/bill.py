"""What machines have cost, for what, and what on-demand ones would have cost instead.

Called with what the ledger knows of each machine (``usage``): at the end of a job, and whenever
somebody asks. Pure. Nothing is bought or decided by it; a budget is held by the planner.

**How it is reckoned.** A machine is paid from its start to its end, in the tariff's increments and
for its minimum at least, each second at the price of that second: prices hold until the next one.
Amounts are fractions, so that no order of adding changes a sum. They are rounded when they are told
(``cents``): the total half up to the cent, its parts so that they add up to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

from dcos_tensorflow.capacity.ledger import ClosedUse
from dcos_tensorflow.capacity.market import Market, exact
from dcos_tensorflow.capacity.usage import MachineUse, Tariff
from dcos_tensorflow.records import dataclass

_HOUR = 3600
_NOTHING = Fraction(0)


@dataclass(frozen=True)
class Amounts:
    """What some machines have been used for and have cost; all of it can be added."""

    machines: int = 0
    #: Of all of them together: that they were there, without a task, and lost to interruptions.
    seconds: Fraction = _NOTHING
    idle_seconds: Fraction = _NOTHING
    lost_seconds: Fraction = _NOTHING
    paid: Fraction = _NOTHING
    #: What on-demand machines would have cost: for the same time, less what was lost.
    on_demand: Fraction = _NOTHING

    def __add__(self, other: Amounts) -> Amounts:
        """Return both together."""
        return Amounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Amounts)))


@dataclass(frozen=True)
class BillLine:
    """The machines of one type and market."""

    instance_type: str
    market: Market
    amounts: Amounts


@dataclass(frozen=True)
class Moment:
    """How many machines there were from a moment on, and what all had cost until then."""

    #: Unix seconds.
    at: float
    spot: int
    on_demand: int
    paid: Fraction


@dataclass(frozen=True)
class Bill:
    """What all machines have cost until a moment."""

    #: By type, spot machines first.
    lines: tuple[BillLine, ...]
    total: Amounts
    #: In order of time: enough of them for a picture.
    over_time: tuple[Moment, ...]


def closed(lines: Sequence[BillLine]) -> tuple[ClosedUse, ...]:
    """Return the lines of a bill as they are kept when their machines are no longer listed."""
    return tuple(
        ClosedUse(
            line.instance_type,
            line.market,
            line.amounts.machines,
            *(str(getattr(line.amounts, f.name)) for f in fields(Amounts)[1:]),
        )
        for line in lines
    )


def bill(
    uses: Sequence[MachineUse],
    tariff: Tariff,
    now: float,
    *,
    before: Sequence[ClosedUse] = (),
    moments: int = 200,
) -> Bill:
    """Return the bill of these machines until ``now`` (unix seconds), and of those ``before``.

    One that starts after ``now`` is not on it. One that ends before its start, as a clock that was
    set back leaves it, was there for no second, and costs the minimum. ``moments`` is about how
    many moments there are of ``over_time``; none below 4.
    """
    uses = [use for use in uses if use.started_at <= now]
    found: dict[tuple[str, str], BillLine] = {}
    for each in before:
        key = each.instance_type, "" if each.market is Market.SPOT else each.market
        found[key] = BillLine(each.instance_type, each.market, _amounts_of(each))
    paid_before = sum((line.amounts.paid for line in found.values()), _NOTHING)
    for use in uses:
        key = use.instance_type, "" if use.market is Market.SPOT else use.market
        known = found.get(key, BillLine(use.instance_type, use.market, Amounts()))
        amounts = known.amounts + _amounts(use, tariff, now)
        found[key] = BillLine(use.instance_type, use.market, amounts)
    lines = tuple(found[key] for key in sorted(found))
    total = sum((line.amounts for line in lines), Amounts())
    known_moments = _over_time(uses, tariff, now, moments)
    return Bill(
        lines,
        total,
        tuple(replace(each, paid=each.paid + paid_before) for each in known_moments),
    )


def _amounts_of(known: ClosedUse) -> Amounts:
    parts = (Fraction(getattr(known, f.name)) for f in fields(Amounts)[1:])
    return Amounts(known.machines, *parts)


def cents(amounts: Sequence[Fraction]) -> tuple[Decimal, list[Decimal]]:
    """Return the sum of amounts half up to the cent, and the amounts so that they add up to it.

    Each is rounded down; the cents that are missing then go to those that lost most by it.
    """
    told = [100 * amount for amount in amounts]
    total = floor(sum(told) + Fraction(1, 2))
    whole = [floor(amount) for amount in told]
    by_rest = sorted(range(len(told)), key=lambda n: whole[n] - told[n])
    for number in by_rest[: total - sum(whole)]:
        whole[number] += 1
    return _money(total), [_money(number) for number in whole]


def document(told: Bill) -> dict[str, Any]:
    """Return a bill as JSON has it: money as text with two digits, time as seconds."""
    amounts = [line.amounts for line in told.lines]
    paid, parts = cents([each.paid for each in amounts])
    on_demand, on_demand_parts = cents([each.on_demand for each in amounts])
    return {
        "total": _told(told.total, paid, on_demand),
        "lines": [
            {
                "instance_type": line.instance_type,
                "market": str(line.market),
                **_told(line.amounts, *money),
            }
            for line, *money in zip(told.lines, parts, on_demand_parts, strict=True)
        ],
        "over_time": [
            {
                "at": each.at,
                "spot": each.spot,
                "on_demand": each.on_demand,
                "paid": str(cents([each.paid])[0]),
            }
            for each in told.over_time
        ],
    }


def _told(amounts: Amounts, paid: Decimal, on_demand: Decimal) -> dict[str, Any]:
    return {
        "machines": amounts.machines,
        "seconds": float(amounts.seconds),
        "idle_seconds": float(amounts.idle_seconds),
        "lost_seconds": float(amounts.lost_seconds),
        "paid": str(paid),
        "on_demand": str(on_demand),
        "saved": str(on_demand - paid),
    }


def _amounts(use: MachineUse, tariff: Tariff, now: float) -> Amounts:
    lived = _lived(use, now)
    busy, lost = (
        min(lived, max(_NOTHING, exact(told))) for told in (use.busy_seconds, use.lost_seconds)
    )
    return Amounts(
        machines=1,
        seconds=lived,
        idle_seconds=lived - busy,
        lost_seconds=lost,
        paid=_paid(use, tariff, now),
        on_demand=tariff.billed(lived - lost) * exact(use.on_demand_price) / _HOUR,
    )


def _lived(use: MachineUse, now: float) -> Fraction:
    """Return for how many seconds a machine has been there."""
    until = now if use.ended_at is None else min(now, use.ended_at)
    return max(_NOTHING, exact(until) - exact(use.started_at))


def _is_free(use: MachineUse, tariff: Tariff) -> bool:
    """Say whether nothing is paid for a machine, because it was taken back so soon."""
    if not use.interrupted or use.ended_at is None or use.market is not Market.SPOT:
        return False
    return _lived(use, use.ended_at) < tariff.free_when_interrupted_before


def _paid(use: MachineUse, tariff: Tariff, now: float) -> Fraction:
    """Return what a machine has cost until ``now``."""
    if now < use.started_at or _is_free(use, tariff):
        return _NOTHING
    since = exact(use.started_at)
    end = since + tariff.billed(_lived(use, now))
    changes = sorted((exact(each.at), exact(each.price)) for each in use.prices)
    price = changes[0][1] if changes else exact(use.on_demand_price)
    paid = _NOTHING
    for at, following in changes:
        until = min(max(at, since), end)
        paid += (until - since) * price
        since, price = until, following
    return (paid + (end - since) * price) / _HOUR


def _over_time(
    uses: Sequence[MachineUse], tariff: Tariff, now: float, most: int
) -> Iterator[Moment]:
    """Yield half as moments at which machines come and go, and half as moments in equal steps."""
    half = most // 2
    if not uses or half < 2:
        return
    begins = {use.started_at for use in uses}
    ends = {use.ended_at for use in uses if use.ended_at is not None and use.ended_at <= now}
    changes = sorted(begins | ends)
    first = min(begins)
    steps = {first + (now - first) * number / (half - 1) for number in range(half)}
    for at in sorted({*changes[:: ceil(len(changes) / half)], *steps, now}):
        there = [use.market for use in uses if _is_there(use, at)]
        spot = there.count(Market.SPOT)
        paid = sum((_paid(use, tariff, at) for use in uses), _NOTHING)
        yield Moment(at, spot, len(there) - spot, paid)


def _is_there(use: MachineUse, at: float) -> bool:
    return use.started_at <= at and (use.ended_at is None or at < use.ended_at)


def _money(hundredths: int) -> Decimal:
    return Decimal(hundredths).scaleb(-2)
