"""The cost of machines by use, beside the cost of on-demand ones.

Called with the ledger's facts of each machine (``usage``): at the end of a job, and whenever
a caller asks. Pure. Nothing is bought or decided by it; a budget is held by the planner.

**How it is reckoned.** A machine is paid from its start to its end, in the tariff's increments and
for its minimum at least, each second at the price of that second: prices hold until the next one.
Amounts are whole numbers of small pieces, so that no order of adding changes a sum, and fractions
where they are told of. They are rounded when they are told
(``cents``): the total half up to the cent, its parts so that they add up to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import Any

from dcos_tensorflow.capacity.billing.usage import (
    HOURLY,
    MICRO,
    PICO,
    MachineUse,
    Moment,
    Sums,
    Tariff,
    summed,
)
from dcos_tensorflow.capacity.market import Market
from dcos_tensorflow.records import dataclass

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
        return Amounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Amounts)))


@dataclass(frozen=True)
class BillLine:
    """The machines of one type and market."""

    instance_type: str
    market: Market
    amounts: Amounts


@dataclass(frozen=True)
class Bill:
    """What all machines have cost until a moment."""

    #: By type, spot machines first.
    lines: tuple[BillLine, ...]
    total: Amounts
    #: In order of time: enough of them for a picture.
    over_time: tuple[Moment, ...]


@dataclass(frozen=True)
class Reckoned:
    """What some machines are to be paid for, and how it came about: all that a bill is made of.

    Of those that are known one by one there is a ``Span`` each; of others ``past`` says when how
    many there were.
    """

    lines: tuple[Sums, ...] = ()
    spans: tuple[Span, ...] = ()
    past: tuple[Moment, ...] = ()


@dataclass(frozen=True)
class Span:
    """When a machine was there, in unix seconds, and what it has cost; no end while it is there."""

    market: Market
    began: float
    ended: float | None
    paid: float


def reckoned(uses: Iterable[MachineUse], tariff: Tariff, now: float) -> Reckoned:
    """Return what these machines are to be paid for until ``now`` (unix seconds).

    One that starts after ``now`` is left out. One that ends before its start, as a clock that was
    set back leaves it, was there for no second, and costs the minimum.
    """
    lines, spans = [], []
    for use in uses:
        if use.started_at <= now:
            line = _sums(use, tariff, now)
            lines.append(line)
            spans.append(Span(use.market, use.started_at, use.ended_at, line.paid / HOURLY))
    return Reckoned(summed(lines), tuple(spans))


def bill_of(accounts: Iterable[Reckoned], now: float, *, moments: int = 200) -> Bill:
    """Return the bill of what was reckoned in parts, until ``now`` (unix seconds).

    ``moments`` is about how many moments there are of ``over_time``; none below 4.
    """
    parts = tuple(accounts)
    lines = tuple(
        BillLine(line.instance_type, line.market, _amounts(line))
        for line in summed(line for part in parts for line in part.lines)
    )
    total = sum((line.amounts for line in lines), Amounts())
    told = over_time(parts, now, moments)
    if told:
        # In between it is for a picture; at the end it is the bill.
        told = (*told[:-1], replace(told[-1], paid=float(total.paid)))
    return Bill(lines, total, told)


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
                "paid": f"{each.paid:.2f}",
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


def _amounts(line: Sums) -> Amounts:
    seconds = (Fraction(each, MICRO) for each in (line.lived, line.idle, line.lost))
    money = (Fraction(each, HOURLY) for each in (line.paid, line.on_demand))
    return Amounts(line.machines, *seconds, *money)


def _sums(use: MachineUse, tariff: Tariff, now: float) -> Sums:
    lived = _lived(use, now)
    busy, lost = (
        min(lived, max(0, _micros(told))) for told in (use.busy_seconds, use.lost_seconds)
    )
    return Sums(
        use.instance_type,
        use.market,
        machines=1,
        lived=lived,
        idle=lived - busy,
        lost=lost,
        paid=_paid(use, tariff, now),
        on_demand=_billed(tariff, lived - lost) * _picos(use.on_demand_price),
    )


def _micros(seconds: float) -> int:
    return round(seconds * MICRO)


def _picos(price: float) -> int:
    return round(price * PICO)


def _billed(tariff: Tariff, micros: int) -> int:
    """Return ``Tariff.billed`` in millionths of a second."""
    increment = tariff.increment * MICRO
    return max(tariff.minimum * MICRO, -(-micros // increment) * increment)


def _lived(use: MachineUse, now: float) -> int:
    """Return for how many millionths of a second a machine has been there."""
    until = now if use.ended_at is None else min(now, use.ended_at)
    return max(0, _micros(until) - _micros(use.started_at))


def _is_free(use: MachineUse, tariff: Tariff) -> bool:
    """Say whether nothing is paid for a machine, because it was taken back so soon."""
    if not use.interrupted or use.ended_at is None or use.market is not Market.SPOT:
        return False
    return _lived(use, use.ended_at) < tariff.free_when_interrupted_before * MICRO


def _paid(use: MachineUse, tariff: Tariff, now: float) -> int:
    """Return what a machine has cost until ``now``, times HOURLY."""
    if now < use.started_at or _is_free(use, tariff):
        return 0
    since = _micros(use.started_at)
    end = since + _billed(tariff, _lived(use, now))
    changes = sorted((_micros(each.at), _picos(each.price)) for each in use.prices)
    price = changes[0][1] if changes else _picos(use.on_demand_price)
    paid = 0
    for at, following in changes:
        until = min(max(at, since), end)
        paid += (until - since) * price
        since, price = until, following
    return paid + (end - since) * price


def over_time(accounts: Sequence[Reckoned], now: float, most: int) -> tuple[Moment, ...]:
    """Return half as moments at which machines come and go, and half as moments in equal steps.

    What a machine has cost in the end is spread over its time: prices of then do not show.
    """
    half = most // 2
    spans = [span for part in accounts for span in part.spans]
    past = sorted((each for part in accounts for each in part.past), key=lambda each: each.at)
    if not (spans or past) or half < 2:
        return ()
    begins = {span.began for span in spans}
    ends = {span.ended for span in spans if span.ended is not None and span.ended <= now}
    changes = sorted(begins | ends | {each.at for each in past})
    first = changes[0]
    steps = {first + (now - first) * number / (half - 1) for number in range(half)}
    wanted = sorted({*changes[:: ceil(len(changes) / half)], *steps, now})
    return tuple(_moments(wanted, spans, past, now))


def _moments(
    wanted: Sequence[float], spans: Iterable[Span], past: Sequence[Moment], now: float
) -> Iterator[Moment]:
    """Yield how it was at each of these moments, in order, in one way through all that changes."""
    #: When; more spot machines, others; what is paid a second from then on, and at once.
    changes: list[tuple[float, int, int, float, float]] = []
    for span in spans:
        spot = int(span.market is Market.SPOT)
        until = now if span.ended is None or span.ended > now else span.ended
        lasted = until - span.began
        rate = span.paid / lasted if lasted > 0 else 0.0
        changes.append((span.began, spot, 1 - spot, rate, 0.0 if rate else span.paid))
        if until < now or span.ended == until:
            changes.append((max(until, span.began), -spot, spot - 1, -rate, 0.0))
    for before, after in pairwise((Moment(0.0, 0, 0, 0.0), *past)):
        spot, kept = after.spot - before.spot, after.on_demand - before.on_demand
        changes.append((after.at, spot, kept, 0.0, after.paid - before.paid))
    changes.sort()
    place, spot, kept, rate, paid, since = 0, 0, 0, 0.0, 0.0, 0.0
    for at in wanted:
        while place < len(changes) and changes[place][0] <= at:
            when, more_spot, more_kept, faster, at_once = changes[place]
            paid += rate * (when - since) + at_once
            spot, kept, rate, since = spot + more_spot, kept + more_kept, rate + faster, when
            place += 1
        yield Moment(at, spot, kept, max(0.0, paid + rate * (at - since)))


def _money(hundredths: int) -> Decimal:
    return Decimal(hundredths).scaleb(-2)
