"""A gang with a deadline: spot machines as far as it stays safe, by the measured pace."""

from dataclasses import replace

from dcos_tensorflow.capacity.by_deadline import Pace, Way, boot_seconds, fleet_of
from dcos_tensorflow.capacity.deadline import NOTHING, Fleet, Memory, RestartCost
from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.capacity.market import Market
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from unit.capacity.simulated_market import KEPT, SPOT, Loop, MarketInMemory, gang, options

HOUR = 3600.0
#: One step a second, ten hours of work, twelve hours' time.
WAY = Way(
    now=0.0,
    began=0.0,
    deadline=12 * HOUR,
    pace=Pace(rate=1.0),
    total_steps=36_000,
    trains=False,
    cost=RestartCost(boot=180.0, restart=60.0, lost=120.0),
)


def asked(way: Way, *, spot: int | None = None, ledger: Ledger | None = None) -> Fleet | None:
    pools = (replace(SPOT, available=spot), KEPT)
    demand = gang(2) if ledger is None else None
    return fleet_of(
        way,
        demand,
        ledger or Ledger(),
        pools=pools,
        spec=options(),
        memory=Memory(),
        next_look=5.0,
    )[0]


def with_machines(market: Market = Market.SPOT) -> Loop:
    pool = SPOT if market is Market.SPOT else KEPT
    loop = Loop(MarketInMemory(pool, KEPT))
    loop.demands = (gang(2),)
    loop.until(loop.place)
    loop.step()
    return loop


def test_a_pace_is_known_once_the_gang_has_trained_for_a_while() -> None:
    pace = Pace().seen(1.0, 100, trains=True).seen(11.0, 120, trains=True)
    assert pace.rate == 0.0
    pace = pace.seen(41.0, 180, trains=True)
    assert pace.rate == 2.0


def test_a_pause_slows_no_pace() -> None:
    pace = Pace().seen(1.0, 0, trains=True).seen(101.0, 100, trains=True)
    pace = pace.seen(500.0, 100, trains=False).seen(600.0, 100, trains=True)
    assert pace.seen(610.0, 110, trains=True).rate == 1.0


def test_spot_machines_are_taken_while_there_is_time() -> None:
    assert asked(WAY) == Fleet("1a", 2, 0)


def test_where_the_market_has_none_it_is_waited_for_while_there_is_time() -> None:
    assert asked(WAY, spot=0) == NOTHING


def test_without_time_to_lose_machines_are_on_demand() -> None:
    late = replace(WAY, now=2 * HOUR, pace=Pace(rate=1.0))
    assert asked(late) == Fleet("1a", 0, 2)


def test_a_gang_that_trains_leaves_its_spot_machines_when_a_loss_would_be_too_much() -> None:
    loop = with_machines()
    way = replace(WAY, now=loop.now, began=loop.now - 2 * HOUR, deadline=loop.now + 10 * HOUR)
    fleet = asked(replace(way, trains=True), ledger=loop.stored)
    assert fleet == Fleet("1a", 0, 2)


def test_an_unknown_pace_is_no_reason_for_or_against_at_first() -> None:
    unknown = replace(WAY, pace=Pace())
    assert asked(unknown) is None
    assert asked(replace(unknown, now=7 * HOUR)) == Fleet("", 0, 2)


def test_tasks_move_from_spot_machines_that_have_to_be_left() -> None:
    loop = with_machines()
    loop.fleet = Fleet("1a", 0, 2)
    found = loop.step()
    entry = found.ledger.entries["p-1"]
    assert entry.moving == entry.leaving == ("host-i-0", "host-i-1")
    # The core has them look for other places; they train meanwhile.
    loop.demands = (gang(2),)
    loop.steps(2)
    assert {m.market for m in loop.market.alive} == {Market.SPOT, Market.ON_DEMAND}
    loop.busy = {"host-i-2", "host-i-3"}
    loop.demands = ()
    loop.until(lambda: len(loop.market.alive) == 2)
    assert {m.market for m in loop.market.alive} == {Market.ON_DEMAND}


def booted(*seconds: float) -> Ledger:
    """A ledger of machines that took so long from their order until their agent was known."""
    loop = Loop(MarketInMemory(KEPT))
    for took in seconds:
        there = set(loop.market.named())
        loop.busy |= there
        loop.demands = (gang(1),)
        loop.never = {f"host-i-{len(there)}"}
        loop.step()
        loop.steps(int(took / 5) - 1)
        loop.never = set()
        loop.step()
        loop.demands = ()
    return loop.stored


def test_a_boot_takes_what_is_assumed_until_some_were_seen() -> None:
    assert boot_seconds(Ledger(), 600.0) == 180.0
    assert boot_seconds(booted(30.0, 40.0), 600.0) == 180.0


def test_a_boot_that_takes_longer_counts_at_once() -> None:
    assert boot_seconds(booted(300.0), 600.0) == 300.0


def test_the_longest_boot_of_those_that_were_seen_counts() -> None:
    assert boot_seconds(booted(30.0, 60.0, 40.0), 600.0) == 60.0


def test_a_slow_boot_is_forgotten_in_the_end() -> None:
    assert boot_seconds(booted(300.0, *[40.0] * 10), 600.0) == 40.0


def test_a_boot_takes_no_longer_than_a_machine_is_waited_for() -> None:
    assert boot_seconds(booted(300.0, 300.0, 300.0), 200.0) == 200.0


def goes_over(*, limits: CapacitySpec | None = None) -> Loop:
    """A gang that trains on two on-demand machines, and is to have spot ones."""
    loop = Loop(MarketInMemory(KEPT), spec=limits)
    loop.demands = (gang(2),)
    loop.until(loop.place)
    loop.step()
    loop.market.pools_now = [SPOT, KEPT]
    loop.fleet = Fleet("1a", 2, 0)
    return loop


def markets(loop: Loop) -> list[Market]:
    return sorted(machine.market for machine in loop.market.alive)


def test_a_gang_goes_back_to_spot_machines_once_they_are_there() -> None:
    loop = goes_over()
    loop.never = {"host-i-2", "host-i-3"}
    loop.steps(3)
    assert markets(loop) == [Market.ON_DEMAND] * 2 + [Market.SPOT] * 2
    assert not any(entry.moving for entry in loop.stored.entries.values())
    # Their agents come: now it is told to look for other places.
    loop.never = set()
    loop.steps(2)
    assert loop.stored.entries["p-1"].moving == ("host-i-0", "host-i-1")
    loop.busy = {"host-i-2", "host-i-3"}
    loop.until(lambda: len(loop.market.alive) == 2)
    assert markets(loop) == [Market.SPOT] * 2


def test_a_gang_trains_on_where_the_market_has_too_few_after_all() -> None:
    loop = goes_over()
    loop.market.most_per_order = 1
    loop.steps(10)
    assert markets(loop) == [Market.ON_DEMAND] * 2 + [Market.SPOT]
    assert loop.busy == {"host-i-0", "host-i-1"}
    assert not any(entry.moving for entry in loop.stored.entries.values())


def test_no_gang_goes_over_where_both_fleets_are_more_than_the_limits_allow() -> None:
    loop = goes_over(limits=options(max_instances=3))
    loop.steps(10)
    assert markets(loop) == [Market.ON_DEMAND] * 2


def test_what_has_come_for_it_goes_when_the_rule_wants_it_no_more() -> None:
    loop = goes_over()
    loop.steps(3)
    assert len(loop.market.alive) == 4
    loop.fleet = Fleet("1a", 0, 2)
    loop.until(lambda: len(loop.market.alive) == 2)
    assert markets(loop) == [Market.ON_DEMAND] * 2
    assert loop.busy == {"host-i-0", "host-i-1"}


def test_the_rule_goes_by_the_machines_that_a_gang_trains_on() -> None:
    loop = goes_over()
    loop.never = {"host-i-2", "host-i-3"}
    loop.steps(3)
    way = replace(WAY, now=loop.now, began=loop.now, deadline=loop.now + 12 * HOUR, trains=True)
    fleet = asked(way, ledger=loop.stored, spot=0)
    assert fleet is not None
    assert (fleet.machines, fleet.spot > 0) == (2, True)
