"""What the loop that buys does about what it finds."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from dcos_tensorflow.capacity import mirror, reconcile
from dcos_tensorflow.capacity.billing.usage import BY_THE_SECOND
from dcos_tensorflow.capacity.billing.uses import bill_of
from dcos_tensorflow.capacity.ledger import Account, Ledger, Stage
from dcos_tensorflow.capacity.mirror import UNSEEN_SECONDS, PurchaseAnswer
from dcos_tensorflow.capacity.provider import Bought, Denied, MachineState, ProviderError, Throttled
from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.bounds import MACHINES_OF_A_PURCHASE
from dcos_tensorflow.core.spec.capacity_spec import Billing
from dcos_tensorflow.scheduler.machines.ledger_records import ACCOUNT, changes_between, ledger_of
from unit.capacity.simulated_market import KEPT, SPOT, Loop, MarketInMemory, gang, options


def loop_with(demand: int = 2, market: MarketInMemory | None = None, **rules: Any) -> Loop:
    own = {name: rules.pop(name) for name in {"patience_seconds", "ending_seconds"} & rules.keys()}
    loop = Loop(market or MarketInMemory(), spec=options(**rules))
    loop.rules = replace(loop.rules, **own)
    loop.demands = (gang(demand),)
    return loop


def training(count: int = 2, **rules: Any) -> Loop:
    """A loop whose gang has its machines."""
    loop = loop_with(count, **rules)
    loop.until(loop.place)
    loop.step()
    return loop


def test_a_gang_that_waits_gets_machines_once() -> None:
    loop = loop_with(2)
    loop.steps(10)
    assert [m.market for m in loop.market.alive] == [SPOT.market] * 2
    assert loop.stored.left == 2


def test_a_purchase_is_written_before_it_is_made() -> None:
    loop = loop_with(2)
    found = loop.step()
    (order,) = found.orders
    assert found.ledger.entries[order.purchase_id].stage is Stage.WRITTEN
    assert found.ledger.left == order.count


def test_nothing_is_bought_for_who_has_not_waited_long() -> None:
    loop = loop_with(2, patience_seconds=30.0)
    loop.demands = (gang(2, waited=5.0),)
    assert loop.step().orders == ()


def test_machines_go_when_the_job_is_over() -> None:
    loop = training()
    loop.end_job()
    loop.until(lambda: not loop.stored.left)
    assert loop.market.alive == []


def test_a_machine_leaves_one_round_before_it_goes() -> None:
    """In between the core hears of it: nothing is placed there any more."""
    loop = training()
    loop.end_job()
    first = loop.step()
    assert first.give_back == ()
    assert {n for e in first.ledger.entries.values() for n in e.leaving} == {"host-i-0", "host-i-1"}
    assert loop.step().give_back == ("i-0", "i-1")


def test_a_machine_that_others_use_stays_while_the_rest_of_a_spent_budget_pays() -> None:
    loop = training(2, ending_seconds=5.0)
    budget = loop.stored.spent(loop.now + 200.0)
    loop.rules = replace(loop.rules, spec=replace(loop.rules.spec, budget=budget))
    loop.over_since, loop.is_spent = loop.now, True
    began = loop.now
    loop.until(lambda: not loop.market.alive)
    assert 100.0 < loop.now - began < 200.0
    assert loop.stored.spent(loop.now) <= budget


def test_tasks_have_time_to_end_before_their_machine_goes() -> None:
    loop = training(ending_seconds=100.0)
    loop.over_since = loop.now
    loop.steps(10)
    assert len(loop.market.alive) == 2
    loop.until(lambda: not loop.market.alive)
    assert loop.now - loop.over_since >= 100.0


def test_a_machine_whose_end_the_provider_did_not_hear_of_is_ended_later() -> None:
    loop = training()
    loop.market.fails["give_back"] = [Throttled("later")] * 3
    loop.end_job()
    loop.steps(3)
    assert len(loop.market.alive) == 2
    loop.until(lambda: not loop.stored.left)
    assert loop.market.alive == []


def test_idle_machines_go_after_a_while() -> None:
    loop = training(idle_seconds=60.0)
    loop.busy.clear()
    since = loop.now
    loop.until(lambda: not loop.market.alive)
    assert loop.now - since >= 60.0


def test_machines_with_tasks_stay_for_as_long_as_these_run() -> None:
    loop = training(idle_seconds=60.0)
    loop.steps(100)
    assert len(loop.market.alive) == 2


def test_a_task_that_comes_in_between_keeps_its_machine() -> None:
    loop = training(idle_seconds=60.0)
    tasks = set(loop.busy)
    loop.busy.clear()
    loop.until(lambda: bool(loop.stored.entries["p-1"].leaving))
    loop.busy = tasks
    loop.steps(5)
    assert len(loop.market.alive) == 2
    assert not loop.stored.entries["p-1"].leaving


def closing(count: int = 2, **rules: Any) -> Loop:
    """A loop whose gang has its machines, and whose master takes orders about agents."""
    loop = training(count, **rules)
    loop.can_be_closed = True
    return loop


def test_a_machine_that_goes_is_closed_before_it_is_ended() -> None:
    loop = closing(idle_seconds=60.0)
    loop.busy.clear()
    loop.until(lambda: bool(loop.closed))
    assert loop.rounds[-1].give_back == ()
    assert loop.step().give_back == ("i-0", "i-1")


def test_a_machine_that_the_master_never_closes_is_ended_all_the_same() -> None:
    loop = closing(idle_seconds=60.0)
    loop.busy.clear()

    def ended() -> bool:
        loop.closed.clear()
        return not loop.market.alive

    loop.until(ended, most=50)


def test_a_task_that_came_before_its_machine_was_closed_is_not_killed() -> None:
    loop = closing(idle_seconds=60.0)
    tasks = set(loop.busy)
    loop.busy.clear()
    loop.until(lambda: bool(loop.closed))
    loop.busy = tasks
    loop.steps(3)
    assert len(loop.market.alive) == 2
    assert not loop.closed


def test_a_machine_that_is_taken_back_is_closed_and_keeps_its_tasks() -> None:
    loop = closing()
    loop.noticed = {"host-i-0"}
    loop.steps(3)
    assert loop.closed == {"host-i-0"}
    assert len(loop.market.alive) == 2


def test_a_machine_that_stays_after_all_is_offered_again() -> None:
    loop = closing()
    loop.noticed = {"host-i-0"}
    loop.steps(3)
    loop.noticed.clear()
    loop.steps(2)
    assert not loop.closed


def test_a_machine_that_an_operator_has_closed_stays_so() -> None:
    loop = closing()
    loop.closed = {"host-i-0"}
    loop.steps(3)
    assert loop.closed == {"host-i-0"}


def test_a_machine_that_was_closed_in_its_last_life_is_offered_in_this_one() -> None:
    """Agents keep their ids, and masters what they were told of them."""
    loop = loop_with(2)
    loop.can_be_closed = True
    loop.closed = {"host-i-0"}
    loop.steps(3)
    assert not loop.closed


def test_when_the_time_is_up_a_machine_is_ended_closed_or_not() -> None:
    loop = closing(ending_seconds=100.0)
    loop.over_since = loop.now
    loop.step(200.0)
    loop.closed.clear()
    assert loop.step().give_back == ("i-0", "i-1")


def test_by_the_hour_an_idle_machine_goes_shortly_before_the_next_one() -> None:
    loop = training(idle_seconds=60.0, billing=Billing.HOUR)
    written = loop.stored.entries["p-1"].written_at
    loop.busy.clear()
    loop.until(lambda: not loop.market.alive, seconds=20.0)
    assert 3300.0 <= loop.now - written < 3600.0


def test_what_a_lost_machine_did_is_done_by_a_new_one() -> None:
    loop = training()
    loop.market.end("i-0", "Server.SpotInstanceTermination")
    loop.busy.clear()
    loop.demands = (gang(2),)
    loop.until(loop.place)
    assert len(loop.market.alive) == 2
    gone = {m.machine_id: m for m in loop.stored.entries["p-1"].machines}["i-0"]
    assert gone.reason == "Server.SpotInstanceTermination"


def test_of_half_a_fleet_the_other_half_is_bought_next() -> None:
    market = MarketInMemory()
    market.most_per_order = 1
    loop = loop_with(2, market)
    loop.step()
    loop.step()
    market.most_per_order = None
    assert loop.stored.entries["p-1"].trouble == "no room in the pool"
    loop.until(loop.place)
    assert len(market.all) == 2


def test_an_empty_pool_is_asked_later_and_later() -> None:
    market = MarketInMemory(SPOT)
    market.most_per_order = 0
    loop = loop_with(2, market)
    asked: list[float] = []
    for _ in range(250):
        before = market.asked.count("buy")
        loop.step(20.0)
        asked += [loop.now] * (market.asked.count("buy") - before)
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert gaps == sorted(gaps)
    assert gaps[0] >= 60.0
    assert "no room in the pool" in dict(loop.rounds[-1].waits)["main"]


def test_on_demand_machines_are_taken_where_the_market_has_none() -> None:
    market = MarketInMemory(replace(SPOT, available=0), KEPT)
    loop = loop_with(2, market, spot_wait_seconds=300.0)
    assert loop.step().orders == ()
    loop.demands = (gang(2, waited=301.0),)
    loop.step()
    assert [m.market for m in market.alive] == [KEPT.market] * 2


@pytest.mark.parametrize(
    ("error", "first"), [(Throttled("too many calls"), 5.0), (Denied("ec2:CreateFleet"), 600.0)]
)
def test_a_refused_order_is_repeated_later_as_it_was(error: ProviderError, first: float) -> None:
    market = MarketInMemory()
    market.fails["buy"] = [error]
    loop = loop_with(2, market)
    (order,) = loop.step().orders
    loop.step()
    assert str(error) in dict(loop.rounds[-1].waits)["main"]
    since = loop.now
    loop.until(lambda: bool(market.all))
    assert loop.rounds[-1].orders == (order,)
    assert loop.now - since >= first


def test_what_waits_for_an_answer_counts_in_full() -> None:
    market = MarketInMemory()
    market.fails["buy"] = [Throttled("later")] * 50
    loop = loop_with(2, market, max_instances=3)
    loop.step()
    loop.demands = (gang(2), gang(2, name="slot-1"))
    loop.steps(20)
    assert list(loop.stored.entries) == ["p-1"]
    assert loop.stored.left == 2


def test_a_machine_that_never_registers_goes_and_its_pool_is_left_alone() -> None:
    market = MarketInMemory(SPOT)
    loop = loop_with(1, market, register_seconds=100.0)
    loop.never = {"host-i-0"}
    loop.until(lambda: bool(market.all) and not market.alive)
    assert "did not register" in dict(loop.rounds[-1].waits)["main"]
    loop.until(loop.place)
    assert list(market.all) == ["i-0", "i-1"]


def test_an_agent_that_registers_twice_is_one_machine() -> None:
    loop = training(1)
    loop.market.all["i-0"] = replace(
        loop.market.all["i-0"], hostnames=("host-i-0", "10.0.0.1", "host-i-0.internal")
    )
    loop.busy = {"10.0.0.1"}
    loop.steps(5)
    assert loop.stored.left == len(loop.market.alive) == 1


def test_a_machine_that_is_there_twice_is_left_and_its_pool_for_a_while() -> None:
    loop = training(1)
    loop.twice = {"host-i-0"}
    loop.step()
    (machine,) = loop.stored.entries["p-1"].machines
    assert (machine.moves, machine.why) == (True, "two agents have registered for it")
    assert [backoff.why for backoff in loop.stored.account.pools.values()] == [machine.why]


def test_machines_of_ours_without_an_order_are_ended() -> None:
    loop = training()
    stranger = replace(loop.market.all["i-0"], machine_id="i-9", purchase_id="lost")
    loop.market.all["i-9"] = stranger
    loop.market._appears["i-9"] = 0
    loop.step()
    assert loop.market.all["i-9"].state is MachineState.ENDED
    assert len(loop.market.alive) == 2


def test_machines_of_others_are_left_alone() -> None:
    loop = training()
    other = replace(loop.market.all["i-0"], machine_id="i-9", purchase_id="x", owner="other.1")
    loop.market.all["i-9"] = other
    loop.market._appears["i-9"] = 0
    loop.end_job()
    loop.until(lambda: not loop.stored.left)
    assert [m.machine_id for m in loop.market.alive] == ["i-9"]


def test_a_machine_is_not_forgotten_while_it_is_not_listed_yet() -> None:
    loop = loop_with(2, MarketInMemory(late=10))
    loop.until(loop.place)
    loop.steps(20)
    assert loop.stored.left == len(loop.market.all) == 2


def test_a_machine_that_is_gone_from_the_list_for_long_has_ended() -> None:
    loop = training()
    del loop.market.all["i-0"]
    loop.steps(int(UNSEEN_SECONDS / 5) + 3)
    assert loop.stored.left == 1


def test_machines_that_come_when_no_gang_waits_any_more_are_given_back() -> None:
    market = MarketInMemory()
    market.fails["buy"] = [Throttled("later")]
    loop = loop_with(2, market)
    (order,) = loop.step().orders
    market.buy(order)  # The call that failed had been heard all the same.
    loop.demands = ()
    loop.until(lambda: not loop.stored.left)
    assert market.alive == []


def test_a_cancelled_purchase_counts_until_nothing_of_it_can_come() -> None:
    market = MarketInMemory()
    market.fails["buy"] = [Throttled("later")]
    loop = loop_with(2, market)
    loop.step()
    loop.demands = ()
    loop.step()
    assert loop.stored.left == 2
    since = loop.now
    loop.until(lambda: not loop.stored.left)
    assert loop.now - since >= UNSEEN_SECONDS


def test_a_job_ends_before_its_budget_does() -> None:
    loop = loop_with(2, budget=0.5)
    loop.until(loop.place)
    for _ in range(3000):
        if stop := loop.step().stop:
            break
    assert "the budget of 0.50 is spent" in stop
    loop.end_job()
    loop.until(lambda: not loop.stored.left)
    assert loop.stored.spent(loop.now) <= 0.5


def test_prices_that_change_count_from_then_on() -> None:
    loop = training()
    loop.market.pools_now = (replace(SPOT, price=0.2), KEPT)
    before = loop.stored.spent(loop.now)
    loop.step()
    loop.step(3600.0)
    assert loop.stored.spent(loop.now) - before == pytest.approx(0.4, abs=0.01)


def test_a_list_that_cannot_be_had_changes_nothing() -> None:
    loop = training()
    loop.market.fails["machines"] = [Throttled("later")] * 100
    loop.steps(100)
    assert loop.stored.left == 2
    assert loop.market.asked.count("machines") < 20


def test_the_clock_of_the_provider_is_compared_with_nothing() -> None:
    """The market of these tests is 11 days behind."""
    loop = training(idle_seconds=60.0)
    machine = loop.stored.entries["p-1"].machines[0]
    assert machine.started_at < loop.now - 900_000
    assert loop.stored.spent(loop.now) < 1.0


def test_many_purchases_that_are_over_become_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "ENTRIES_KEPT", 2)
    loop = Loop(MarketInMemory())
    for _ in range(5):
        loop.over_since = 0.0
        loop.demands = (gang(1),)
        loop.until(loop.place)
        loop.end_job()
        loop.until(lambda: not loop.stored.left)
    assert len(loop.stored.entries) <= 3
    assert loop.stored.account.closed_cost > 0
    assert loop.stored.account.purchases == 5


def test_what_became_a_sum_stays_on_the_bill(monkeypatch: pytest.MonkeyPatch) -> None:
    bills, spent = [], []
    for kept in (100, 2):
        monkeypatch.setattr(reconcile, "ENTRIES_KEPT", kept)
        loop = Loop(MarketInMemory())
        for _ in range(6):
            loop.over_since = 0.0
            loop.demands = (gang(1),)
            loop.until(loop.place)
            loop.end_job()
            loop.until(lambda loop=loop: not loop.stored.left)
        bills.append(bill_of(loop.stored, BY_THE_SECOND, loop.now))
        spent.append(loop.stored.spent(loop.now))
    whole, folded = bills
    assert whole.total.machines == folded.total.machines == 6
    assert (whole.lines, whole.total) == (folded.lines, folded.total)
    assert spent[0] == pytest.approx(spent[1])
    assert folded.over_time[-1].paid == pytest.approx(whole.over_time[-1].paid)
    assert [each.paid for each in folded.over_time] == sorted(e.paid for e in folded.over_time)


def test_what_an_earlier_release_has_put_together_is_on_the_bill() -> None:
    ledger = Ledger(Account(closed_cost=250.75))
    assert float(bill_of(ledger, BY_THE_SECOND, 1e9).total.paid) == ledger.spent(1e9) == 250.75


def test_a_large_purchase_is_several_so_that_each_is_a_small_value() -> None:
    loop = loop_with(250, MarketInMemory())
    loop.until(lambda: loop.stored.left >= 250)
    assert max(entry.count for entry in loop.stored.entries.values()) == MACHINES_OF_A_PURCHASE


def test_prices_that_change_for_long_are_kept_once_and_bounded() -> None:
    loop = training(MACHINES_OF_A_PURCHASE)
    assert len(tuple(loop.stored.machines())) == MACHINES_OF_A_PURCHASE
    before = Ledger()
    ledger = loop.stored
    for change in range(1500):
        pool = replace(SPOT, price=0.1 + (change % 7) / 100)
        ledger = mirror.prices_seen(ledger, (pool,), loop.now + 60.0 * change)
    kept = changes_between(before, ledger)
    assert max(len(codec.encode(record)) for record in kept.values()) < 250_000
    again = ledger_of({key: record for key, record in kept.items() if record is not None})
    now = loop.now + 60.0 * 1500
    assert again == ledger
    assert again.price_per_hour == ledger.price_per_hour
    assert bill_of(again, BY_THE_SECOND, now) == bill_of(ledger, BY_THE_SECOND, now)
    # A purchase writes nothing because its pool has another price.
    assert set(changes_between(loop.stored, ledger)) == {ACCOUNT}


# -- several pools for one order -------------------------------------------------------------------

OTHER = replace(SPOT, instance_type="other", price=0.15)


def served_from_other(demand: int = 2, **rules: Any) -> Loop:
    """A loop whose provider takes all machines from the pool that was not planned."""
    market = MarketInMemory(SPOT, OTHER, KEPT, replace(KEPT, instance_type="other", price=0.5))
    market.chooses = lambda order: order.pools[-1]
    return loop_with(demand, market, **rules)


def test_an_order_counts_as_the_dearest_until_it_is_known_what_came() -> None:
    loop = served_from_other()
    loop.market.chooses = lambda order: order.pools[0]
    found = loop.step()
    assert [pool.key for pool in found.orders[0].pools] == [SPOT.key, OTHER.key]
    assert found.ledger.price_per_hour == pytest.approx(0.3)
    assert loop.step().ledger.price_per_hour == pytest.approx(0.2)


def test_a_machine_is_what_came_and_costs_what_that_costs() -> None:
    loop = served_from_other()
    loop.until(loop.place)
    loop.step()
    entry = loop.stored.entries["p-1"]
    assert {(m.instance_type, m.price) for m in entry.machines} == {("other", 0.15)}
    assert {entry.on_demand_price_of(m) for m in entry.machines} == {0.5}


def test_a_zone_that_is_known_later_gives_the_price() -> None:
    far = replace(SPOT, zone="1b", price=0.15)
    loop = loop_with(1, MarketInMemory(SPOT, far), one_zone=False)
    loop.step()
    (sold,) = loop.market.all.values()
    loop._answers = (PurchaseAnswer("p-1", Bought((replace(sold, zone=""),))),)
    loop.market._appears[sold.machine_id] = 2
    assert loop.step().ledger.price_per_hour == pytest.approx(0.15)
    loop.step()
    (machine,) = loop.stored.entries["p-1"].machines
    assert (machine.zone, machine.prices[0][1]) == (SPOT.zone, SPOT.price)


def test_pools_that_had_no_room_together_are_left_alone_together() -> None:
    loop = served_from_other()
    loop.market.most_per_order = 0
    loop.steps(2)
    waits = dict(loop.rounds[-1].waits)["main"]
    assert "(other/1a/spot, small/1a/spot: no room in the pool)" in waits


def test_the_pool_of_a_machine_that_never_registers_is_left_alone_and_no_other() -> None:
    loop = served_from_other(1, register_seconds=100.0)
    loop.never = {"host-i-0"}
    loop.until(lambda: len(loop.market.all) == 2)
    assert [m.instance_type for m in loop.market.all.values()] == ["other", "small"]
