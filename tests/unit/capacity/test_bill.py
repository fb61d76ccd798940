"""What machines have cost: right to the cent, in whatever pieces it is told."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.capacity.billing.bill import (
    Amounts,
    Bill,
    bill_of,
    cents,
    document,
    reckoned,
)
from dcos_tensorflow.capacity.billing.usage import BY_THE_HOUR, MachineUse, PriceChange, Tariff
from dcos_tensorflow.capacity.market import Market

HOUR = 3600.0
BEGAN = 1_700_000_000.0
NOW = BEGAN + 100 * HOUR
EC2 = Tariff()


def use(
    seconds: float | None = HOUR,
    *prices: tuple[float, float],
    market: Market = Market.SPOT,
    interrupted: bool = False,
    busy: float = 0.0,
    lost: float = 0.0,
) -> MachineUse:
    """Return a machine that was there for so long; prices are (seconds after its start, price)."""
    return MachineUse(
        *("i-1", "purchase-1", "p3.2xlarge", "us-east-1a", market, BEGAN),
        None if seconds is None else BEGAN + seconds,
        tuple(PriceChange(BEGAN + after, price) for after, price in prices or ((0.0, 0.918),)),
        3.06,
        busy,
        lost,
        interrupted,
    )


def bill(uses: Sequence[MachineUse], tariff: Tariff, now: float, *, moments: int = 200) -> Bill:
    return bill_of([reckoned(uses, tariff, now)], now, moments=moments)


def total(*uses: MachineUse, tariff: Tariff = EC2, now: float = NOW) -> Amounts:
    return bill(uses, tariff, now).total


def paid(*uses: MachineUse, tariff: Tariff = EC2, now: float = NOW) -> Decimal:
    return cents([total(*uses, tariff=tariff, now=now).paid])[0]


@pytest.mark.parametrize(
    ("seconds", "tariff", "expected"),
    [
        (10 * HOUR, EC2, "9.18"),
        (1000.0, EC2, "0.26"),  # 0.255
        (1000.2, EC2, "0.26"),
        (10.0, EC2, "0.02"),  # a minute: 0.0153
        (HOUR + 1, BY_THE_HOUR, "1.84"),
        (1.0, BY_THE_HOUR, "0.92"),
    ],
)
def test_seconds_are_paid_by_the_tariff(seconds: float, tariff: Tariff, expected: str) -> None:
    assert paid(use(seconds), tariff=tariff) == Decimal(expected)


def test_half_a_cent_is_rounded_up() -> None:
    assert cents([Fraction(1, 200)])[0] == Decimal("0.01")


def test_each_second_costs_what_it_cost_then() -> None:
    changing = use(3 * HOUR, (0.0, 1.0), (HOUR, 2.0), (2.5 * HOUR, 4.0))
    assert total(changing).paid == 1 + 3 + 2


def test_the_first_price_that_is_known_holds_before_it_too() -> None:
    assert total(use(2 * HOUR, (HOUR, 1.5), (5 * HOUR, 9.0))).paid == 3


def test_without_a_price_the_one_of_an_on_demand_machine_is_paid() -> None:
    assert total(replace(use(HOUR), prices=())).paid == Fraction("3.06")


def test_what_is_still_there_is_paid_until_now() -> None:
    assert paid(use(None), now=BEGAN + 10 * HOUR) == Decimal("9.18")


def test_a_machine_of_later_is_not_on_the_bill() -> None:
    assert bill([use()], EC2, BEGAN - 1) == Bill((), Amounts(), ())


def test_a_spot_machine_that_is_taken_back_in_its_first_hour_costs_nothing() -> None:
    assert paid(use(HOUR - 1, interrupted=True)) == 0
    assert paid(use(HOUR, interrupted=True)) == Decimal("0.92")
    assert paid(use(HOUR - 1, interrupted=True, market=Market.ON_DEMAND)) == Decimal("0.92")
    assert paid(use(HOUR - 1, interrupted=True), tariff=BY_THE_HOUR) == Decimal("0.92")


def test_what_on_demand_machines_would_have_cost_leaves_out_what_was_lost() -> None:
    found = total(use(10 * HOUR, busy=8 * HOUR, lost=HOUR))
    assert found.on_demand == 9 * Fraction("3.06")
    assert (found.idle_seconds, found.lost_seconds) == (2 * HOUR, HOUR)


def test_lines_are_by_type_and_market() -> None:
    uses = [use(), use(market=Market.ON_DEMAND), use(), replace(use(), instance_type="a1")]
    found = [
        (line.instance_type, line.market, line.amounts.machines)
        for line in bill(uses, EC2, NOW).lines
    ]
    assert found == [
        ("a1", Market.SPOT, 1),
        ("p3.2xlarge", Market.SPOT, 2),
        ("p3.2xlarge", Market.ON_DEMAND, 1),
    ]


def test_a_document_has_its_money_to_the_cent() -> None:
    told = document(bill([use(), use(market=Market.ON_DEMAND)], EC2, NOW))
    assert [line["paid"] for line in told["lines"]] == ["0.92", "0.92"]
    assert (told["total"]["paid"], told["total"]["saved"]) == ("1.84", "4.28")


def test_over_time_machines_come_and_go_and_what_is_paid_grows() -> None:
    later = replace(use(2 * HOUR, market=Market.ON_DEMAND), started_at=BEGAN + HOUR)
    found = bill([use(), later], EC2, BEGAN + 3 * HOUR).over_time
    counts = list(dict.fromkeys((each.spot, each.on_demand) for each in found))
    assert counts == [(1, 0), (0, 1), (0, 0)]
    assert [each.paid for each in found] == sorted(each.paid for each in found)


def test_a_long_story_is_told_in_few_moments() -> None:
    uses = [replace(use(), started_at=BEGAN + n) for n in range(500)]
    assert len(bill(uses, EC2, NOW, moments=40).over_time) <= 41


# What holds of any machines.

times = st.floats(0, 1e6).map(lambda seconds: round(seconds, 3))
prices = st.floats(0, 100).map(lambda price: round(price, 4))
tariffs = st.sampled_from([EC2, BY_THE_HOUR, Tariff(60, 120, 0)])


@st.composite
def machines(draw: st.DrawFn) -> MachineUse:
    """Any machine, also one that ends before it starts."""
    made = use(
        draw(st.none() | st.floats(-HOUR, 1e6)),
        *draw(st.lists(st.tuples(st.floats(-1e5, 1e6), prices), max_size=4)),
        market=draw(st.sampled_from(Market)),
        interrupted=draw(st.booleans()),
        busy=draw(times),
        lost=draw(times),
    )
    kind = draw(st.sampled_from(["p3.2xlarge", "g4dn.xlarge"]))
    return replace(made, instance_type=kind, started_at=BEGAN + draw(times))


@given(st.lists(machines(), max_size=6), tariffs, times)
def test_no_amount_is_negative_and_the_lines_add_up(
    uses: list[MachineUse], tariff: Tariff, after: float
) -> None:
    found = bill(uses, tariff, BEGAN + after)
    told = document(found)
    assert sum((line.amounts for line in found.lines), Amounts()) == found.total
    assert sum(Decimal(line["paid"]) for line in told["lines"]) == Decimal(told["total"]["paid"])
    everything = [line.amounts for line in found.lines]
    assert all(min(a.idle_seconds, a.lost_seconds, a.paid, a.on_demand) >= 0 for a in everything)
    assert all(max(a.idle_seconds, a.lost_seconds) <= a.seconds for a in everything)


@given(st.lists(machines(), max_size=6), tariffs)
def test_the_bill_of_all_is_the_sum_of_their_bills(uses: list[MachineUse], tariff: Tariff) -> None:
    alone = [bill([each], tariff, NOW).total for each in uses]
    assert bill(uses, tariff, NOW).total == sum(alone, Amounts())


@given(machines(), tariffs, st.floats(-1e5, 1e6))
def test_to_say_a_price_again_changes_nothing(
    asked: MachineUse, tariff: Tariff, after: float
) -> None:
    if not asked.prices:
        return
    at = BEGAN + after
    before = [each for each in asked.prices if each.at <= at]
    known = max(before, key=lambda each: (each.at, each.price), default=None)
    known = known or min(asked.prices, key=lambda each: (each.at, each.price))
    again = replace(asked, prices=(PriceChange(at, known.price), *asked.prices))
    assert total(again, tariff=tariff) == total(asked, tariff=tariff)


@given(st.integers(1, 100_000), st.integers(1, 100_000), prices, prices)
def test_a_machine_in_two_pieces_costs_what_it_costs_in_one(
    first: int, second: int, before: float, after: float
) -> None:
    by_the_second = Tariff(minimum=0)
    whole = use(float(first + second), (0.0, before), (float(first), after))
    left = replace(whole, ended_at=BEGAN + first)
    right = replace(whole, started_at=BEGAN + first)
    one, two = (total(*each, tariff=by_the_second).paid for each in ([whole], [left, right]))
    assert one == two


@given(machines(), tariffs, times, times)
def test_what_is_paid_never_shrinks_while_time_passes(
    asked: MachineUse, tariff: Tariff, one: float, other: float
) -> None:
    sooner, later = sorted((one, other))
    assert (
        total(asked, tariff=tariff, now=BEGAN + sooner).paid
        <= total(asked, tariff=tariff, now=BEGAN + later).paid
    )


@given(st.lists(st.fractions(0, 1000), max_size=9))
def test_rounded_parts_add_up_and_none_is_a_cent_off(amounts: list[Fraction]) -> None:
    whole, parts = cents(amounts)
    assert sum(parts) == whole
    assert all(
        abs(Fraction(part) - amount) < Fraction(1, 100)
        for part, amount in zip(parts, amounts, strict=True)
    )
    assert abs(Fraction(whole) - sum(amounts)) <= Fraction(1, 200)
