"""Which fleet a gang with a deadline gets, look by look."""

from dataclasses import replace

from dcos_tensorflow.capacity.deadline import (
    NOTHING,
    DeadlineJob,
    Fleet,
    JobObservation,
    Memory,
    Quote,
    RestartCost,
    decide,
)

HOUR = 3600.0
COST = RestartCost(boot=120.0, restart=15.0, lost=60.0)
JOB = DeadlineJob(machines=4, work=10 * HOUR, began=0.0, deadline=15 * HOUR, cost=COST)


def zone(available: int, name: str = "a", spot_price: float = 0.3) -> Quote:
    return Quote(name, available, spot_price, 1.0)


def sight(
    *quotes: Quote, fleet: Fleet = NOTHING, now: float = 0.0, left: float = JOB.work
) -> JobObservation:
    return JobObservation(now, left, fleet, 0.0 if fleet.machines else None, quotes, 60.0)


def fleet_for(seen: JobObservation, job: DeadlineJob = JOB, memory: Memory | None = None) -> Fleet:
    return decide(job, seen, memory or Memory())[0]


def late(slack: float, quote: Quote, fleet: Fleet = NOTHING) -> JobObservation:
    """Return a look five hours before the end of the work, with so much slack."""
    return sight(quote, fleet=fleet, now=JOB.deadline - 5 * HOUR - slack, left=5 * HOUR)


def test_a_market_with_enough_machines_gives_all_of_them() -> None:
    assert fleet_for(sight(zone(9))) == Fleet("a", 4, 0)


def test_an_empty_market_is_waited_for_while_there_is_time() -> None:
    assert fleet_for(sight(zone(0))) == NOTHING


def test_on_demand_machines_train_where_no_slack_is_left_to_wait() -> None:
    assert fleet_for(late(300.0, zone(0))) == Fleet("a", 0, 4)


def test_slack_for_the_losses_to_come_is_not_waited_away() -> None:
    a_loss_for_each_hour = 5 * (COST.loss + COST.restart)
    assert fleet_for(late(a_loss_for_each_hour, zone(0))) == Fleet("a", 0, 4)
    assert fleet_for(late(3 * a_loss_for_each_hour, zone(0))) == NOTHING


def test_a_gang_is_mixed_where_the_market_has_too_few_and_time_is_short() -> None:
    known = decide(JOB, sight(zone(3)), Memory())[1]
    assert fleet_for(late(900.0, zone(3)), memory=known) == Fleet("a", 3, 1)


def test_a_spot_machine_whose_loss_would_cost_the_deadline_is_not_bought() -> None:
    assert fleet_for(late(COST.cold + 1, zone(4))) == Fleet("a", 0, 4)


def test_a_spot_machine_whose_loss_would_cost_the_deadline_is_given_back() -> None:
    running = Fleet("a", 4, 0)
    assert fleet_for(late(COST.loss - 1, zone(4), running)) == Fleet("a", 0, 4)
    assert fleet_for(late(COST.loss + 1, zone(4), running)) == running


def test_on_demand_machines_are_left_for_spot_ones_that_come() -> None:
    known = decide(JOB, sight(zone(4)), Memory())[1]
    seen = sight(zone(4), fleet=Fleet("a", 0, 4), now=HOUR, left=9 * HOUR)
    assert fleet_for(seen, memory=known) == Fleet("a", 4, 0)


def test_a_market_that_shrinks_from_look_to_look_is_left() -> None:
    slow = replace(JOB, machines=16, cost=replace(COST, boot=600.0))
    memory = Memory()
    for turn, available in enumerate(range(14, 3, -1)):
        seen = sight(zone(available), now=turn * 600.0)
        memory = decide(slow, seen, memory)[1]
    running = sight(zone(4), fleet=Fleet("a", 0, 16), now=6600.0)
    assert fleet_for(running, slow, memory) == Fleet("a", 0, 16)


def test_nothing_is_changed_for_a_spot_machine_that_is_known_to_go_at_once() -> None:
    memory = Memory()
    running = Fleet("a", 0, 4)
    for minute in range(120):
        seen = sight(zone(minute % 2), fleet=running, now=60.0 * minute, left=9 * HOUR)
        wanted, memory = decide(JOB, seen, memory)
    assert wanted == running


def test_work_that_is_nearly_done_is_not_worth_a_change() -> None:
    seen = sight(zone(4), fleet=Fleet("a", 0, 4), now=9 * HOUR, left=60.0)
    assert fleet_for(seen) == Fleet("a", 0, 4)


def test_spot_machines_that_cost_more_than_on_demand_ones_are_none() -> None:
    assert fleet_for(late(300.0, zone(4, spot_price=1.2))) == Fleet("a", 0, 4)


def test_the_zone_with_more_machines_is_taken() -> None:
    assert fleet_for(sight(zone(1, "a"), zone(4, "b"))) == Fleet("b", 4, 0)


def test_the_cheaper_zone_is_taken() -> None:
    quotes = zone(4, "a", spot_price=0.5), zone(4, "b", spot_price=0.3)
    assert fleet_for(sight(*quotes)) == Fleet("b", 4, 0)


def test_a_gang_on_spot_machines_does_not_move_for_a_little() -> None:
    running = Fleet("a", 4, 0)
    seen = sight(zone(4, "a", 0.31), zone(4, "b", 0.3), fleet=running, now=HOUR, left=9 * HOUR)
    assert fleet_for(seen) == running


def test_a_gang_that_has_lost_a_machine_goes_where_all_are() -> None:
    broken = Fleet("a", 1, 0)
    seen = replace(sight(zone(1, "a"), zone(4, "b"), fleet=broken), ready_in=None)
    assert fleet_for(seen) == Fleet("b", 4, 0)


def test_a_job_that_cannot_end_in_time_trains_on_demand_at_once() -> None:
    hopeless = replace(JOB, deadline=5 * HOUR)
    assert fleet_for(sight(zone(4)), hopeless) == Fleet("a", 0, 4)
