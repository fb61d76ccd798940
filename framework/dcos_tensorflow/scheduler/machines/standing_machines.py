"""Machines of an operator's whole cluster: so many, for all its services, and in the end none.

Used by the command ``capacity up`` and its like. There is no service and no scheduler behind it:
the ledger is in a store of its own, which the command leads meanwhile, so no other one
does. Each round is that of a service (``capacity.reconcile``): what it wants to remember is
committed before the provider is asked, and a command that was killed is made good by the next one.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dcos_tensorflow.capacity import status
from dcos_tensorflow.capacity.billing.usage import BY_THE_HOUR, BY_THE_SECOND
from dcos_tensorflow.capacity.ledger import Ledger, OwnedMachine
from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.mirror import Agents, Answer
from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.capacity.provider import Machine, Order, Provider, ProviderError
from dcos_tensorflow.capacity.reconcile import Round, reconcile
from dcos_tensorflow.capacity.sight import Rules, Sight
from dcos_tensorflow.capacity.trial import offer_of
from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.agents import KnownAgent, names_of
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.place import TaskRequest
from dcos_tensorflow.core.spec.capacity_spec import Billing, CapacitySpec
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint, TaskRole
from dcos_tensorflow.mesos.agent_files import AgentFilesError
from dcos_tensorflow.scheduler.clock import steady_time
from dcos_tensorflow.scheduler.machines.ledger_records import changes_between, ledger_of
from dcos_tensorflow.scheduler.machines.machine_provider import provider_for
from dcos_tensorflow.scheduler.machines.market_sight import limits_of, owner_prefix
from dcos_tensorflow.state.store import StateStore

log = logging.getLogger(__name__)

#: What machines cost is asked for so often at most (seconds).
PRICES_SECONDS = 60.0
#: For whom machines are bought, in what is shown.
FOR = "the cluster"
_ALONE = (PlacementConstraint("hostname", ConstraintOperator.UNIQUE),)


class StandingMachines:
    """The machines that ``store`` knows of, which this process leads.

    ``agents`` asks the master and returns None where it does not say; ``offer`` tells it whether to
    offer an agent, and raises AgentFilesError. Raises StateError and ``codec.RecordError``.
    """

    def __init__(
        self,
        store: StateStore,
        name: str,
        spec: CapacitySpec,
        agents: Callable[[], Sequence[KnownAgent] | None],
        offer: Callable[[str, bool], None],
        *,
        open_provider: Callable[[CapacitySpec, str], Provider] = provider_for,
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self._store = store
        self._spec = spec
        self._ask_agents = agents
        self._offer = offer
        self._clock = clock
        values = store.load()
        if paths.INSTANCE not in values:
            # Before anything is bought: machines of two clusters of one name are told apart by it.
            store.commit([Write(paths.INSTANCE, secrets.token_hex(4).encode())])
            values = store.load()
        self._instance = values[paths.INSTANCE].decode()
        self._owner = f"{owner_prefix(name)}{self._instance}"
        self.ledger = kept_ledger(values)
        self._provider = open_provider(spec, self._owner)
        self._pools: tuple[Pool, ...] | None = None
        self._pools_at = float("-inf")
        self._answers: tuple[Answer, ...] = ()
        self._trouble = ""
        self._not_given_back: tuple[str, ...] = ()

    @property
    def there(self) -> int:
        """Return how many machines are agents that may be used."""
        return sum(m.is_useful and m.is_registered for _, m in self.ledger.machines())

    @property
    def busy(self) -> int:
        """Return on how many of them tasks run, of any framework."""
        return sum(bool(machine.busy_since) for _, machine in self.ledger.machines())

    def offer_agents(self, is_offered: bool) -> str:
        """Have our agents offered to all frameworks, or to none; return why not, if that cannot be.

        Their tasks run on.
        """
        ours = {name for _, machine in self.ledger.machines() for name in machine.names}
        for agent in self._ask_agents() or ():
            if agent.deactivated == is_offered and not ours.isdisjoint(names_of(agent)):
                try:
                    self._offer(agent.agent_id, is_offered)
                except AgentFilesError as error:
                    return f"the master does not change its offers: {error}"
        return ""

    def look(
        self, wanted: int = 0, waited: float = 0.0, *, release: bool = False, end: bool = False
    ) -> Round:
        """Take one look, and buy until so many are there: they have been waited for for so long.

        ``release`` gives back those on which nothing runs, ``end`` all. Raises StateError.
        """
        sight = self._sight(wanted, waited, release=release, end=end)
        found = reconcile(self.ledger, sight, self._rules())
        self._answers, self._trouble, self._not_given_back = (), "", ()
        changes = changes_between(self.ledger, found.ledger)
        if changes:
            self._store.commit(
                [
                    Write(paths.capacity(key), None if each is None else codec.encode(each))
                    for key, each in changes.items()
                ]
            )
        self.ledger = found.ledger
        self._act(found)
        return found

    def _rules(self) -> Rules:
        spec = self._spec
        return Rules(
            limits=limits_of(spec),
            owner=self._owner,
            prefix=self._instance,
            max_spot_price=spec.max_spot_price,
            # An idle machine here waits for any service.
            idle_seconds=float("inf"),
            register_seconds=spec.register_seconds,
            by_the_hour=spec.billing is Billing.HOUR,
            ending_seconds=0.0,
            patience_seconds=0.0,
        )

    def _sight(self, wanted: int, waited: float, *, release: bool, end: bool) -> Sight:
        now, held = self._clock(), self.ledger.account.provider.holds(self._clock())
        machines = None
        try:
            if not held:
                machines = tuple(self._provider.machines())
                if now - self._pools_at >= PRICES_SECONDS:
                    self._pools, self._pools_at = tuple(self._provider.pools()), now
        except ProviderError as error:
            self._trouble = str(error)
        known = self._ask_agents()
        agents = None
        if known is not None:
            there = [agent for agent in known if agent.active and not agent.recovered]
            busy = [agent for agent in there if any(v > 0 for v in agent.used.values())]
            agents = Agents(known=_all_names(there), busy=_all_names(busy))
        demand = so_many(wanted, self._spec, waited, self._zone())
        return Sight(
            now=now,
            demands=() if end or release or not wanted else (demand,),
            offers=self._offers(known or (), machines or ()),
            agents=agents,
            machines=machines,
            pools=self._pools,
            answers=self._answers,
            trouble=self._trouble,
            not_given_back=self._not_given_back,
            over_since=now if end else 0.0,
            release=release,
        )

    def _offers(self, agents: Sequence[KnownAgent], listed: Sequence[Machine]) -> tuple[Offer, ...]:
        """Return what our machines that are agents have for the demand: each is one of it.

        Also of those that the ledger is to hear of in this round.
        """
        answered = (m for each in self._answers if each.bought for m in each.bought.machines)
        ours = (m for m in listed if m.owner == self._owner)
        found: list[Machine | OwnedMachine] = [*ours, *answered]
        found += (machine for _, machine in self.ledger.machines())
        zones = {name.lower(): machine.zone for machine in found for name in machine.hostnames}
        offers = []
        for agent in agents:
            named = sorted(names_of(agent) & zones.keys())
            if named and agent.active and not agent.recovered:
                zone = zones[named[0]]
                pool = Pool("", zone, Market.ON_DEMAND, 0.0, self._spec.at_least)
                offers.append(replace(offer_of(pool, agent.agent_id), hostname=agent.hostname))
        return tuple(offers)

    def _zone(self) -> str:
        zones = [m.zone for _, m in self.ledger.machines() if m.is_useful]
        return max(sorted(set(zones)), key=zones.count) if zones and self._spec.one_zone else ""

    def _act(self, found: Round) -> None:
        self._answers = tuple(self._bought(order) for order in found.orders)
        # The next prices say what is left to be had.
        self._pools_at = float("-inf") if found.orders else self._pools_at
        if found.give_back:
            try:
                self._provider.give_back(found.give_back)
            except ProviderError as error:
                self._not_given_back, self._trouble = found.give_back, str(error)

    def _bought(self, order: Order) -> Answer:
        try:
            return Answer(order.purchase_id, self._provider.buy(order))
        except ProviderError as error:
            log.warning("%s is not bought: %s", order.purchase_id, error)
            return Answer(order.purchase_id, trouble=str(error), is_final=error.is_final)


def so_many(count: int, spec: CapacitySpec, waited: float = 0.0, zone: str = "") -> GangDemand:
    """Return the demand for so many machines in all, each with at least what the options say."""
    role = TaskRole.GPU_WORKER if spec.at_least.gpus else TaskRole.WORKER
    requests = (
        TaskRequest(f"machine-{number}", role, spec.at_least, 0, constraints=_ALONE)
        for number in range(count)
    )
    return GangDemand(FOR, tuple(requests), waited, zone)


def kept_ledger(values: Mapping[str, bytes]) -> Ledger:
    """Return the ledger of what a store has. Raises ``codec.RecordError``."""
    folder = f"{paths.CAPACITY}/"
    return ledger_of(
        {
            path.removeprefix(folder): codec.decode(CapacityRecord, value)
            for path, value in values.items()
            if path.startswith(folder)
        }
    )


def document(
    ledger: Ledger, spec: CapacitySpec, waits: Mapping[str, str], now: float
) -> dict[str, Any]:
    """Return how they stand, as ``/v1/capacity`` does for a service."""
    tariff = BY_THE_HOUR if spec.billing is Billing.HOUR else BY_THE_SECOND
    return status.document(ledger, waits, spec.budget, tariff, now)


def _all_names(agents: Iterable[KnownAgent]) -> frozenset[str]:
    return frozenset(name for agent in agents for name in names_of(agent))
