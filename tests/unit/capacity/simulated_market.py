"""A provider in memory that is consistent in the end, and a loop that may die at any step.

``MarketInMemory`` sells machines and answers as EC2 does: an order that is asked for twice buys
once, a new machine is listed late. ``Loop`` is what ``scheduler.machines.buying`` does with its
answers; ``Killed`` is raised where its process ends, and the next process has what was written and
no more.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dcos_tensorflow.capacity.deadline import Fleet
from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.mirror import Agents, PurchaseAnswer
from dcos_tensorflow.capacity.observation import Observation, Rules
from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.capacity.provider import (
    Bought,
    Machine,
    MachineState,
    ProviderError,
    PurchaseOrder,
)
from dcos_tensorflow.capacity.reconcile import Round, reconcile
from dcos_tensorflow.capacity.trial_placement import offer_of
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import TaskRole

OWNER = "train.1"
SPOT = Pool("small", "1a", Market.SPOT, 0.1, Resources(cpus=4, mem=16_000, disk=50_000))
KEPT = replace(SPOT, market=Market.ON_DEMAND, price=0.3)


class Killed(Exception):
    """The loop's process has ended here."""


def gang(count: int, *, waited: float = 60.0, name: str = "main") -> GangDemand:
    """A gang whose tasks take a machine each."""
    requests = (
        TaskRequest(f"worker-{n}", TaskRole.WORKER, Resources(cpus=4, mem=8_000), 2)
        for n in range(count)
    )
    return GangDemand(name, tuple(requests), waited)


class MarketInMemory:
    """Machines to be had, by ``pools``."""

    def __init__(self, *pools: Pool, late: int = 0) -> None:
        self.pools_now: tuple[Pool, ...] = pools or (SPOT, KEPT)
        #: So many listings later a new machine is in the list.
        self.late = late
        self.now = 0.0
        #: Every machine that there ever was, and at which listing it appears.
        self.all: dict[str, Machine] = {}
        self._appears: dict[str, int] = {}
        self._lists = 0
        self._answers: dict[str, Bought] = {}
        #: What the next calls of this name raise.
        self.fails: dict[str, list[ProviderError]] = {}
        #: From which of its pools each machine of an order comes.
        self.chooses: Callable[[PurchaseOrder], Pool] = lambda order: order.pools[0]
        #: How many machines an order gets at most.
        self.most_per_order: int | None = None
        self.asked: list[str] = []

    @property
    def alive(self) -> list[Machine]:
        return [m for m in self.all.values() if m.state is not MachineState.ENDED]

    def _may_fail(self, call: str) -> None:
        self.asked.append(call)
        if waiting := self.fails.get(call):
            raise waiting.pop(0)

    def pools(self) -> Sequence[Pool]:
        self._may_fail("pools")
        return self.pools_now

    def buy(self, order: PurchaseOrder) -> Bought:
        self._may_fail("buy")
        if order.purchase_id in self._answers:
            known = self._answers[order.purchase_id]
            return replace(known, machines=tuple(self.all[m.machine_id] for m in known.machines))
        most = order.count if self.most_per_order is None else self.most_per_order
        bought = tuple(self._sold(order) for _ in range(min(order.count, most)))
        missing = "no room in the pool" if len(bought) < order.count else ""
        self._answers[order.purchase_id] = Bought(bought, missing)
        return self._answers[order.purchase_id]

    def _sold(self, order: PurchaseOrder) -> Machine:
        machine_id = f"i-{len(self.all)}"
        pool = self.chooses(order)
        self.all[machine_id] = machine = Machine(
            machine_id=machine_id,
            purchase_id=order.purchase_id,
            owner=order.owner,
            instance_type=pool.instance_type,
            zone=pool.zone,
            market=pool.market,
            state=MachineState.RUNNING,
            started_at=self.now - 1e6,
            hostnames=(f"host-{machine_id}",),
        )
        self._appears[machine_id] = self._lists + self.late
        return machine

    def machines(self) -> Sequence[Machine]:
        self._may_fail("machines")
        self._lists += 1
        return [m for m in self.all.values() if self._appears[m.machine_id] < self._lists]

    def give_back(self, machine_ids: Collection[str]) -> None:
        self._may_fail("give_back")
        for machine_id in machine_ids:
            self.end(machine_id)

    def end(self, machine_id: str, reason: str = "") -> None:
        machine = self.all[machine_id]
        self.all[machine_id] = replace(machine, state=MachineState.ENDED, reason=reason)

    def pool_of(self, machine: Machine) -> Pool:
        key = (machine.instance_type, machine.zone, machine.market)
        return next(pool for pool in self.pools_now if pool.key == key)

    def named(self) -> Iterator[str]:
        return (name for machine in self.alive for name in machine.hostnames)


def options(**given: Any) -> CapacitySpec:
    return CapacitySpec(CommandSpec(("machines",)), **given)


class Loop:
    """The loop over a market: ``stored`` is what survives it."""

    def __init__(
        self,
        market: MarketInMemory,
        *,
        spec: CapacitySpec | None = None,
        dies: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.market = market
        self.rules = Rules(spec or options(), OWNER, "p", patience_seconds=0.0)
        self.stored = Ledger()
        self.now = 1000.0
        self.demands: tuple[GangDemand, ...] = ()
        #: Hostnames on which tasks run, and those whose agents never come.
        self.busy: set[str] = set()
        self.never: set[str] = set()
        #: Those that the master was told to offer to no framework, if it can be told.
        self.closed: set[str] = set()
        self.can_be_closed = False
        #: Those that two agents say they are.
        self.twice: set[str] = set()
        #: Those of whom the provider has said that they go.
        self.noticed: set[str] = set()
        self.over_since = 0.0
        self.is_spent = False
        self.fleet: Fleet | None = None
        self._dies = dies
        self._answers: tuple[PurchaseAnswer, ...] = ()
        self._trouble = ""
        self._not_given_back: tuple[str, ...] = ()
        self.rounds: list[Round] = []

    @property
    def agents(self) -> Agents:
        known = frozenset(self.market.named()) - self.never
        return Agents(
            known | self.busy,
            frozenset(self.busy),
            frozenset(self.noticed),
            frozenset(self.twice),
            frozenset(self.closed),
            self.can_be_closed,
        )

    def _offers(self) -> tuple[Offer, ...]:
        return tuple(
            offer_of(self.market.pool_of(machine), name)
            for machine in self.market.alive
            for name in machine.hostnames
            if name not in self.busy | self.never | self.closed
        )

    def step(self, seconds: float = 5.0) -> Round:
        """One round: what ``scheduler.machines.buying.BuyingLoop.run_round`` does."""
        self.now += seconds
        self.market.now = self.now
        answers, self._answers = self._answers, ()
        trouble, self._trouble = self._trouble, ""
        refused, self._not_given_back = self._not_given_back, ()
        machines = pools = None
        if not self.stored.account.provider.holds(self.now):
            try:
                machines = tuple(self.market.machines())
                pools = tuple(self.market.pools())
            except ProviderError as error:
                trouble = str(error)
        self._point("seen")
        found = reconcile(
            self.stored,
            Observation(
                now=self.now,
                demands=self.demands,
                offers=self._offers(),
                agents=self.agents,
                machines=machines,
                pools=pools,
                answers=answers,
                trouble=trouble,
                not_given_back=refused,
                over_since=self.over_since,
                is_spent=self.is_spent,
                fleet=self.fleet,
            ),
            self.rules,
        )
        self._point("decided")
        self.stored = found.ledger
        self.rounds.append(found)
        self._point("written")
        self._act(found)
        return found

    def _act(self, found: Round) -> None:
        self.closed = self.closed.union(*found.close).difference(*found.reopen)
        answers = []
        for order in found.orders:
            try:
                bought = self.market.buy(order)
            except ProviderError as error:
                answers.append(
                    PurchaseAnswer(order.purchase_id, trouble=str(error), is_final=error.is_final)
                )
                continue
            self._point("bought")
            answers.append(PurchaseAnswer(order.purchase_id, bought))
        if found.give_back:
            try:
                self.market.give_back(found.give_back)
            except ProviderError as error:
                self._trouble = str(error)
                self._not_given_back = found.give_back
            self._point("given back")
        self._answers = tuple(answers)

    def _point(self, where: str) -> None:
        if self._dies(where):
            # What was in memory is gone with the process.
            self._answers, self._trouble, self._not_given_back = (), "", ()
            raise Killed(where)

    def survive(self, seconds: float = 5.0) -> None:
        """One round that may end anywhere."""
        with suppress(Killed):
            self.step(seconds)

    def steps(self, number: int, seconds: float = 5.0) -> None:
        for _ in range(number):
            self.step(seconds)

    def until(self, condition: Callable[[], bool], most: int = 500, seconds: float = 5.0) -> None:
        for _ in range(most):
            if condition():
                return
            self.step(seconds)
        raise AssertionError(f"not within {most} rounds; last: {self.rounds[-1]}")

    def place(self) -> bool:
        """Place all that waits as the core would, if there is room; say whether there was."""
        wanted = sum(len(demand.requests) for demand in self.demands)
        free = [name for name in self.market.named() if name not in self.busy | self.never]
        leaving = {name for entry in self.stored.entries.values() for name in entry.leaving}
        free = [name for name in free if name not in leaving]
        if not wanted or len(free) < wanted:
            return False
        self.busy |= set(free[:wanted])
        self.demands = ()
        return True

    def end_job(self) -> None:
        self.demands, self.over_since = (), self.now
        self.busy.clear()
