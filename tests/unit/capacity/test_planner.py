"""What is bought for gangs that wait."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dcos_tensorflow.capacity.deadline import NOTHING, Fleet
from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.planner import GangDemand, Owned, PurchasePlan, plan
from dcos_tensorflow.capacity.trial_placement import offer_of
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint, TaskRole
from unit.capacity.simulated_market import options

SMALL = Resources(cpus=4, mem=16_000, disk=50_000)
LARGE = Resources(cpus=16, mem=64_000, disk=200_000)
GPU = Resources(cpus=8, mem=61_000, disk=100_000, gpus=1)
APART = PlacementConstraint("hostname", ConstraintOperator.UNIQUE)


def pool(
    kind: str = "small",
    zone: str = "1a",
    market: Market = Market.SPOT,
    *,
    price: float = 0.1,
    resources: Resources = SMALL,
    available: int | None = None,
) -> Pool:
    return Pool(kind, zone, market, price, resources, available)


def kept(kind: str = "small", zone: str = "1a", price: float = 0.3) -> Pool:
    return pool(kind, zone, Market.ON_DEMAND, price=price)


def tasks(count: int, *rules: PlacementConstraint, needs: Resources | None = None) -> GangDemand:
    resources = needs or Resources(cpus=2, mem=4_000)
    role = TaskRole.GPU_WORKER if resources.gpus else TaskRole.WORKER
    requests = (
        TaskRequest(f"{role}-{n}", role, resources, 2, constraints=rules) for n in range(count)
    )
    return GangDemand("main", tuple(requests))


def bought(
    *demands: GangDemand,
    pools: tuple[Pool, ...],
    limits: CapacitySpec | None = None,
    owned: Owned | None = None,
) -> list[tuple[str, str, str, int]]:
    found = plan(demands, owned or Owned(), pools, limits or options())
    return [(w.pool.instance_type, w.pool.zone, w.pool.market, w.count) for w in found.wanted]


def why(demand: GangDemand, *pools: Pool, limits: CapacitySpec, owned: Owned | None = None) -> str:
    found = plan([demand], owned or Owned(), pools, limits)
    assert found.wanted == ()
    return found.waits[0][1]


def test_no_more_machines_are_bought_than_the_tasks_need() -> None:
    assert bought(tasks(4), pools=(pool(),)) == [("small", "1a", "spot", 2)]


def test_a_placement_rule_that_wants_a_machine_each_gets_one_each() -> None:
    assert bought(tasks(4, APART), pools=(pool(),)) == [("small", "1a", "spot", 4)]


def test_the_cheapest_way_is_taken_not_the_cheapest_machine() -> None:
    pools = pool(), pool("large", price=0.35, resources=LARGE)
    assert bought(tasks(8), pools=pools) == [("large", "1a", "spot", 1)]
    assert bought(tasks(2), pools=pools) == [("small", "1a", "spot", 1)]


def test_machines_with_room_are_used_before_any_is_bought() -> None:
    owned = Owned(offers=(offer_of(pool(), "there"),), instances=1)
    assert bought(tasks(2), pools=(pool(),), owned=owned) == []
    assert bought(tasks(4), pools=(pool(),), owned=owned) == [("small", "1a", "spot", 1)]


def test_the_room_that_one_gang_leaves_is_the_next_ones() -> None:
    second = replace(tasks(1), gang="second")
    assert bought(tasks(3), second, pools=(pool(),)) == [("small", "1a", "spot", 2)]


def test_a_gang_has_its_machines_in_one_zone() -> None:
    pools = pool(zone="1a", available=1), pool(zone="1b", price=0.2)
    assert bought(tasks(4), pools=pools) == [("small", "1b", "spot", 2)]


def test_a_gang_that_may_has_them_in_several() -> None:
    pools = pool(zone="1a", available=1), pool(zone="1b", price=0.2)
    found = bought(tasks(4), pools=pools, limits=options(one_zone=False))
    assert found == [("small", "1a", "spot", 1), ("small", "1b", "spot", 1)]


def test_a_lost_member_is_replaced_in_the_zone_of_the_others() -> None:
    near = replace(tasks(1), zone="1b")
    pools = pool(zone="1a"), pool(zone="1b", price=0.2)
    assert bought(near, pools=pools) == [("small", "1b", "spot", 1)]


def test_parameter_servers_get_no_machines_with_gpus() -> None:
    workers = tasks(2, needs=Resources(cpus=8, mem=30_000, gpus=1))
    gang = replace(workers, requests=workers.requests + tasks(2).requests)
    pools = pool("gpu", price=0.9, resources=GPU), pool()
    assert bought(gang, pools=pools) == [("gpu", "1a", "spot", 2), ("small", "1a", "spot", 1)]


def test_only_allowed_machines_are_bought() -> None:
    pools = pool(), pool("large", price=0.9, resources=LARGE)
    assert bought(tasks(1), pools=pools, limits=options(at_least=LARGE))[0][0] == "large"
    limits = options(instance_types=("large",))
    assert bought(tasks(1), pools=pools, limits=limits)[0][0] == "large"


def test_the_first_machines_are_on_demand_ones_where_that_is_wanted() -> None:
    found = bought(tasks(6), pools=(pool(), kept()), limits=options(on_demand_base=1))
    assert found == [("small", "1a", "spot", 2), ("small", "1a", "on-demand", 1)]


def test_spot_machines_are_waited_for_and_then_done_without() -> None:
    market = pool(available=1), kept()
    limits = options(spot_wait_seconds=300)
    reason = why(replace(tasks(4), waited=100.0), *market, limits=limits)
    assert reason == ("2 spot machines of small wanted, 1 to be had; on-demand ones in 200 s")
    found = bought(replace(tasks(4), waited=300.0), pools=market, limits=limits)
    assert found == [("small", "1a", "spot", 1), ("small", "1a", "on-demand", 1)]


def test_a_job_with_a_deadline_gets_the_fleet_that_its_rule_wants() -> None:
    gang = replace(tasks(4, APART), fleet=Fleet("1b", 3, 1))
    pools = pool(zone="1a"), pool(zone="1b"), kept(zone="1a"), kept(zone="1b")
    found = bought(gang, pools=pools)
    assert found == [("small", "1b", "spot", 3), ("small", "1b", "on-demand", 1)]


def test_a_job_whose_rule_waits_gets_nothing() -> None:
    gang = replace(tasks(4), fleet=NOTHING)
    assert "deadline leaves time" in why(gang, pool(), limits=options())


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (options(max_instances=2), "it would take 3 machines; max_instances is 2"),
        (
            options(max_price_per_hour=0.25),
            "all machines would cost 0.30 an hour; max_price_per_hour is 0.25",
        ),
        (
            options(budget=1.0),
            "0.80 of the budget of 1.00 is spent, and an hour would cost 0.30",
        ),
        (
            options(zones=("9z",)),
            "no machine that may be bought has the resources that its tasks need",
        ),
    ],
)
def test_a_limit_is_held_and_named(limits: CapacitySpec, reason: str) -> None:
    owned = Owned(instances=1, price_per_hour=Fraction("0.1"), spent=0.8)
    assert why(tasks(4), pool(), limits=limits, owned=owned) == reason


def test_a_dearer_way_within_the_limits_is_better_than_none() -> None:
    pools = pool(), pool("large", price=0.9, resources=LARGE)
    assert bought(tasks(8), pools=pools) == [("small", "1a", "spot", 4)]
    found = bought(tasks(8), pools=pools, limits=options(max_instances=1))
    assert found == [("large", "1a", "spot", 1)]


def test_two_gangs_do_not_take_the_same_machines() -> None:
    second = replace(tasks(2), gang="second")
    found = plan([tasks(2), second], Owned(), [pool(available=1)], options())
    assert [each.gangs for each in found.wanted] == [("main",)]
    assert [gang for gang, _ in found.waits] == ["second"]


def test_nothing_is_bought_without_a_waiting_gang() -> None:
    assert plan([], Owned(), [pool()], options()) == PurchasePlan()


# -- others that would do as well ------------------------------------------------------------------


def others(
    demand: GangDemand,
    *pools: Pool,
    limits: CapacitySpec | None = None,
    owned: Owned | None = None,
) -> list[tuple[str, str]]:
    """What may come in place of the first machines that are planned."""
    found = plan([demand], owned or Owned(), pools, limits or options())
    return [(pool.instance_type, pool.zone) for pool in found.wanted[0].others]


def test_others_have_what_the_tasks_need_and_need_not_be_as_large() -> None:
    enough = pool("enough", price=0.12, resources=replace(SMALL, mem=8_000))
    little = pool("little", price=0.11, resources=replace(SMALL, mem=7_000))
    assert others(tasks(4), pool(), little, enough) == [("enough", "1a")]


def test_a_mix_of_what_may_come_has_what_the_tasks_need() -> None:
    """A worker and its evaluator fit on either other machine, and on one of each they do not."""
    gang = tasks(2, needs=Resources(cpus=2, mem=4_000, disk=10))
    large = replace(gang.requests[1], resources=Resources(cpus=4, mem=2_000, disk=10))
    gang = replace(gang, requests=(gang.requests[0], large, replace(large, name="worker-2")))
    many_cpus = pool("cpus", price=0.11, resources=Resources(cpus=6, mem=6_000, disk=20))
    assert others(gang, pool(resources=LARGE), many_cpus) == []


def test_others_are_in_the_zone_of_the_gang() -> None:
    pools = pool(), pool(zone="1b", price=0.11), pool("other", price=0.12)
    assert others(tasks(2), *pools) == [("other", "1a")]
    anywhere = options(one_zone=False)
    assert others(tasks(2), *pools, limits=anywhere) == [("small", "1b"), ("other", "1a")]


def test_others_are_paid_for_in_the_same_way() -> None:
    assert others(tasks(2), pool(), kept(price=0.15), kept("other", price=0.15)) == []


def test_others_cost_at_most_twice_as_much_and_less_than_machines_that_are_kept() -> None:
    twice, dear = pool("twice", price=0.2), pool("dear", price=0.21)
    assert others(tasks(2), pool(), twice, dear) == [("twice", "1a")]
    assert others(tasks(2), pool(), twice, kept("twice", price=0.19)) == []


def test_the_limits_hold_when_the_dearest_of_all_come() -> None:
    pools = pool(), pool("other", price=0.14), pool("dear", price=0.16)
    assert others(tasks(4), *pools, limits=options(max_price_per_hour=0.3)) == [("other", "1a")]
    assert others(tasks(4), *pools, limits=options(budget=0.31)) == [("other", "1a")]


def test_no_gang_waits_for_the_choice_that_another_has() -> None:
    whole = Resources(cpus=4, mem=8_000)
    gangs = tasks(4, needs=whole), replace(tasks(2, needs=whole), gang="second")
    pools = pool(), pool("other", price=0.2)

    def choices(most: float) -> list[int]:
        found = plan(gangs, Owned(), pools, options(max_price_per_hour=most))
        assert not found.waits
        return [len(each.others) for each in found.wanted]

    assert choices(0.61) == [0, 0]
    assert choices(1.01) == [1, 0]
    assert choices(1.21) == [1, 1]


def test_what_costs_just_as_much_as_it_may_is_bought() -> None:
    # As floats three tenths are more than 0.3.
    assert others(tasks(6), pool(), limits=options(max_price_per_hour=0.3)) == []
    pools = pool(), pool("other", price=0.14)
    assert others(tasks(6), *pools, limits=options(max_price_per_hour=0.42)) == [("other", "1a")]


@pytest.mark.parametrize(
    "rule",
    [
        PlacementConstraint("instance_type", ConstraintOperator.LIKE, "small|same.*"),
        PlacementConstraint("instance_type", ConstraintOperator.UNLIKE, "other"),
    ],
)
def test_others_obey_the_placement_rules(rule: PlacementConstraint) -> None:
    pools = pool(), pool("other", price=0.11), pool("same", price=0.12)
    assert others(tasks(2, rule), *pools) == [("same", "1a")]


def test_machines_that_are_counted_by_kind_are_of_one_kind() -> None:
    alike = PlacementConstraint("instance_type", ConstraintOperator.CLUSTER)
    assert others(tasks(4, alike), pool(), pool("other", price=0.11)) == []


def test_no_order_names_more_pools_than_it_may() -> None:
    pools = [pool(f"kind-{number}", price=0.1 + number / 1000) for number in range(20)]
    assert len(others(tasks(2), *pools)) == 9
    assert others(tasks(2), *pools, limits=options(deadline_seconds=60.0)) == []


def test_a_pool_without_room_for_all_is_no_other() -> None:
    pools = pool(), pool("other", price=0.11, available=1)
    assert others(tasks(4), *pools) == []
