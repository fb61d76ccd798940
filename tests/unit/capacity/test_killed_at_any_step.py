"""The loop is killed at random between any two of its steps: nothing is lost, nothing bought twice.

Played against a market that lists new machines late, gives half fleets, throttles, takes machines
back, serves an order from any of its pools, and whose calls fail after they were heard.
"""

import os
import random
from collections.abc import Collection
from dataclasses import replace

import pytest

from dcos_tensorflow.capacity.ledger import HOUR
from dcos_tensorflow.capacity.provider import Bought, MachineState, PurchaseOrder, Throttled
from dcos_tensorflow.core.spec.resources import Resources
from unit.capacity.simulated_market import KEPT, OWNER, SPOT, Loop, MarketInMemory, gang, options

#: Each is killed some forty times.
LIVES = min(100, int(os.environ.get("KILLS", "10")))
#: Some hours of three machines: a part of the lives end by it.
BUDGET = 0.4
MOST = 6
#: An hour: four of the dearest spot machines and less than six of these.
MOST_PRICE = 0.75
POOLS = (
    SPOT,
    replace(SPOT, instance_type="other", price=0.12),
    replace(SPOT, instance_type="large", price=0.13, resources=Resources(8, 32_000, 50_000)),
    replace(SPOT, instance_type="dear", price=0.21),
    replace(SPOT, zone="1b", price=0.11),
    replace(SPOT, instance_type="little", price=0.05, resources=Resources(2, 4_000, 50_000)),
    KEPT,
)
LIMITS = options(max_instances=MOST, budget=BUDGET, max_price_per_hour=MOST_PRICE)


class _HardMarket(MarketInMemory):
    """A market with all the bad luck that there is, and a bill of its own."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(*POOLS, late=chance.choice((0, 1, 5)))
        self.chance = chance
        self.chooses = lambda order: chance.choice(order.pools)
        self.bill = 0.0
        self.most_alive = 0
        self.most_price = 0.0
        self.is_kind = False

    def buy(self, order: PurchaseOrder) -> Bought:
        if not self.is_kind:
            self.most_per_order = self.chance.choice((None, None, 1, 0))
            if self.chance.random() < 0.1:
                raise Throttled("too many calls")
        bought = super().buy(order)
        if not self.is_kind and self.chance.random() < 0.1:
            raise Throttled("the connection broke, and the order had been heard")
        return bought

    def give_back(self, machine_ids: Collection[str]) -> None:
        if not self.is_kind and self.chance.random() < 0.1:
            raise Throttled("too many calls")
        super().give_back(machine_ids)

    def passed(self, seconds: float) -> None:
        """Time passes: machines cost, and the market takes some back."""
        price = sum(self.pool_of(machine).price for machine in self.alive)
        self.bill += price * seconds / HOUR
        self.most_price = max(self.most_price, price)
        self.most_alive = max(self.most_alive, len(self.alive))
        for machine in self.alive:
            if not self.is_kind and self.chance.random() < 0.002:
                self.end(machine.machine_id, "taken back")


def _one_life(seed: int) -> tuple[Loop, _HardMarket, int]:
    chance = random.Random(seed)
    market = _HardMarket(chance)
    kills = 0

    def dies(_: str) -> bool:
        nonlocal kills
        killed = not market.is_kind and chance.random() < 0.15
        kills += killed
        return killed

    loop = Loop(market, spec=LIMITS, dies=dies)
    loop.demands = (gang(3),)
    looks = 0
    for _ in range(150):
        # A killed process is back soon: the budget cannot hold while no process looks for long.
        seconds = chance.choice((1.0, 5.0, 60.0, 120.0) if len(loop.rounds) > looks else (1.0, 5.0))
        looks = len(loop.rounds)
        market.passed(seconds)
        loop.survive(seconds)
        alive = set(market.named())
        if loop.rounds and loop.rounds[-1].stop:
            break
        if not loop.busy <= alive:
            loop.busy.clear()
            loop.demands = (gang(3),)
        loop.place()
    loop.end_job()
    market.is_kind = True
    for _ in range(200):
        if not loop.stored.left:
            break
        market.passed(5.0)
        loop.step(5.0)
    return loop, market, kills


@pytest.mark.parametrize("first", range(0, LIVES, 5))
def test_no_machine_is_forgotten_or_bought_twice_and_the_budget_holds(first: int) -> None:
    kills = 0
    kinds: set[str] = set()
    for seed in range(first, min(first + 5, LIVES)):
        loop, market, killed = _one_life(seed)
        kills += killed
        told = f"seed {seed}"
        assert not loop.stored.left, told
        assert [m for m in market.all.values() if m.state is not MachineState.ENDED] == [], told
        assert market.most_alive <= MOST, told
        assert market.most_price <= MOST_PRICE, told
        assert market.bill <= loop.stored.spent(loop.now) <= BUDGET, told
        known = {m.machine_id for e in loop.stored.entries.values() for m in e.machines}
        assert known == {m.machine_id for m in market.all.values() if m.owner == OWNER}, told
        ordered = {m.purchase_id for m in market.all.values()}
        for purchase_id in ordered:
            mine = [m for m in market.all.values() if m.purchase_id == purchase_id]
            assert len(mine) <= loop.stored.entries[purchase_id].count, told
            assert len({machine.zone for machine in mine}) == 1, told
        kinds |= {machine.instance_type for machine in market.all.values()}
    assert kills >= 100
    assert "little" not in kinds
