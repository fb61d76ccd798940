"""What the planner knows without placing anything; it finds what trying everything finds."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.planner import GangDemand, Owned, plan
from dcos_tensorflow.capacity.trial_placement import TrialPlacement, made_up, offer_of
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint, TaskRole
from unit.capacity.simulated_market import options

RULES = (
    (),
    (PlacementConstraint("hostname", ConstraintOperator.UNIQUE),),
    (PlacementConstraint("hostname", ConstraintOperator.MAX_PER, "2"),),
    (PlacementConstraint("instance_type", ConstraintOperator.UNLIKE, "kind-1"),),
)


def amounts(cpus: Sequence[int], gpus: Sequence[int]) -> some.SearchStrategy[Resources]:
    return some.builds(
        Resources,
        cpus=some.sampled_from(cpus),
        mem=some.sampled_from([1_000, 4_000, 9_000]),
        gpus=some.sampled_from(gpus),
    )


@some.composite
def markets(draw: some.DrawFn) -> list[Pool]:
    """A few kinds of machines in two zones."""
    pools = []
    for kind in range(draw(some.integers(1, 4))):
        resources = draw(amounts([1, 2, 4, 7], [0, 0, 1, 3]))
        for zone, market in product("ab", Market):
            price = draw(some.integers(1, 9)) / 10
            available = draw(some.sampled_from([None, 0, 1, 3]))
            pools.append(Pool(f"kind-{kind}", zone, market, price, resources, available))
    return pools


@some.composite
def gangs(draw: some.DrawFn) -> tuple[TaskRequest, ...]:
    """Tasks of one kind, or of several."""
    rules = draw(some.sampled_from(RULES))
    needs = draw(some.lists(amounts([1, 2], [0]) | amounts([1, 3], [1]), min_size=1, max_size=5))
    return tuple(
        TaskRequest(
            f"worker-{n}",
            TaskRole.GPU_WORKER if need.gpus else TaskRole.WORKER,
            need,
            1,
            constraints=rules,
        )
        for n, need in enumerate(needs)
    )


def by_trying_everything(requests: Sequence[TaskRequest], pools: Sequence[Pool]) -> float | None:
    """Return what the cheapest machines of one kind and one zone cost, tasks with GPUs first."""
    prices = []
    for zone in "ab":
        near = sorted((p for p in pools if p.zone == zone), key=lambda pool: pool.price)
        had: tuple[Pool, ...] = ()
        for those in ([r for r in requests if r.resources.gpus], requests):
            if place(those, offers_of(had)).complete:
                continue
            ways = []
            for kind in {pool.instance_type for pool in near}:
                # On-demand machines where the market has no cheaper ones.
                left = [
                    pool
                    for pool in near
                    if pool.instance_type == kind
                    for _ in range(9 if pool.available is None else pool.available)
                ]
                for gone in had:
                    if gone in left:
                        left.remove(gone)
                kept = [p.price for p in near if p.instance_type == kind and p.market != "spot"]
                left = [p for p in left if p.market != "spot" or p.price < min(kept)]
                left.sort(key=lambda pool: (pool.market != "spot", pool.price))
                for count in range(1, min(len(those), len(left)) + 1):
                    if place(those, offers_of((*had, *left[:count]))).complete:
                        ways.append((sum(p.price for p in left[:count]), count, left[:count]))
                        break
            if not ways:
                break
            had += tuple(min(ways, key=lambda way: way[:2])[2])
        else:
            prices.append(sum(pool.price for pool in had))
    return min(prices, default=None)


def offers_of(pools: Sequence[Pool]) -> list[Offer]:
    return [offer_of(pool, f"machine-{number}") for number, pool in enumerate(pools)]


@given(gangs(), markets())
def test_what_is_bought_costs_no_more_than_what_trying_everything_finds(
    requests: tuple[TaskRequest, ...], pools: list[Pool]
) -> None:
    found = plan([GangDemand("main", requests, waited=1e9)], Owned(), pools, options())
    price = by_trying_everything(requests, pools)
    assert bool(found.wanted) == (price is not None)
    if price is not None:
        assert sum(each.price for each in found.wanted) <= price + 1e-9
        mix = tuple((each.pool, each.count) for each in found.wanted)
        assert place(requests, list(made_up(mix, "new"))).complete


@given(gangs(), amounts([1, 2, 4], [0, 2]), some.lists(amounts([1, 3], [0, 1]), max_size=2))
def test_fewer_machines_than_are_known_to_be_needed_never_do(
    requests: tuple[TaskRequest, ...], has: Resources, there: list[Resources]
) -> None:
    machine = Pool("kind-0", "a", Market.SPOT, 0.1, has)
    had = offers_of([Pool("there", "a", Market.SPOT, 0.1, each) for each in there])
    trial = TrialPlacement(requests, had)
    least = trial.least([machine])
    for count in range(1, least or len(requests) + 1):
        offers = [*had, *made_up(((machine, count),), "new")]
        if place(requests, had).complete:
            return
        assert not place(requests, offers).complete


def test_of_many_pools_few_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 tasks and 1,680 pools took half a minute when each kind was tried from one machine on."""
    needs = Resources(cpus=2, mem=8_000)
    requests = tuple(TaskRequest(f"worker-{n}", TaskRole.WORKER, needs, 2) for n in range(64))
    pools = [
        Pool(
            f"kind-{kind}",
            zone,
            market,
            0.1 * (1 + kind % 7) + kind / 1000,
            Resources(cpus=1 + kind % 97, mem=4_000 * (1 + kind % 89)),
        )
        for kind, zone, market in product(range(280), "abc", Market)
    ]
    tried = []
    monkeypatch.setattr(
        "dcos_tensorflow.capacity.trial_placement.place",
        lambda requests, offers: tried.append(1) or place(requests, offers),
    )
    found = plan([GangDemand("main", requests)], Owned(), pools, options())
    assert found.wanted
    assert len(tried) < 50
