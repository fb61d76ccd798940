"""Machines of an operator's whole cluster: so many, for all its services, and in the end none.

Used by the command ``capacity up`` and its like. There is no service and no scheduler behind it:
the ledger is in a store of its own, which the command leads meanwhile, so no other one
does. Each round is that of a service (``capacity.reconcile``): its ledger is
committed before the provider is asked, and the next command completes the work of a killed one.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dcos_tensorflow.capacity.ledger import Ledger, OwnedMachine
from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.mirror import Agents, PurchaseAnswer
from dcos_tensorflow.capacity.observation import Observation, Rules
from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.capacity.provider import Machine, Provider
from dcos_tensorflow.capacity.reconcile import Round, reconcile
from dcos_tensorflow.capacity.trial_placement import offer_of
from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.known_agents import KnownAgent, names_of
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint, TaskRole
from dcos_tensorflow.mesos.agent_files import AgentFilesError
from dcos_tensorflow.scheduler.loop.clock import steady_time
from dcos_tensorflow.scheduler.machines.ledger_records import changes_between, ledger_of
from dcos_tensorflow.scheduler.machines.machine_provider import Desk, provider_for
from dcos_tensorflow.scheduler.machines.observing import names_in, owner_prefix
from dcos_tensorflow.state.store import StateStore

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
        provider = open_provider(spec, self._owner)
        self._desk = Desk(lambda *_: provider)
        self._desk.follow(spec, self._owner)
        # An idle machine here waits for any service.
        patient = replace(spec, idle_seconds=float("inf"))
        self._rules = Rules(patient, self._owner, self._instance, 0.0, 0.0)

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

    def run_round(
        self, wanted: int = 0, waited: float = 0.0, *, release: bool = False, end: bool = False
    ) -> Round:
        """Take one look, and buy until so many are there: they have been waited for for so long.

        ``release`` gives back those on which nothing runs, ``end`` all. Raises StateError.
        """
        sight = self._sight(wanted, waited, release=release, end=end)
        found = reconcile(self.ledger, sight, self._rules)
        changes = changes_between(self.ledger, found.ledger)
        if changes:
            self._store.commit(
                [
                    Write(paths.capacity(key), None if each is None else codec.encode(each))
                    for key, each in changes.items()
                ]
            )
        self.ledger = found.ledger
        self._desk.do(found)
        return found

    def _sight(self, wanted: int, waited: float, *, release: bool, end: bool) -> Observation:
        now, held = self._clock(), self.ledger.account.provider.holds(self._clock())
        machines = None if held else self._desk.machines()
        pools = self._desk.pools(now, may_ask=not held)
        outcome = self._desk.outcome()
        known = self._ask_agents()
        agents = None
        if known is not None:
            there = [agent for agent in known if agent.active and not agent.recovered]
            busy = [agent for agent in there if any(v > 0 for v in agent.used.values())]
            agents = Agents(known=names_in(there), busy=names_in(busy))
        demand = so_many(wanted, self._spec, waited, self._zone())
        return Observation(
            now=now,
            demands=() if end or release or not wanted else (demand,),
            offers=self._offers(known or (), machines or (), outcome["answers"]),
            agents=agents,
            machines=machines,
            pools=pools,
            over_since=now if end else 0.0,
            release=release,
            **outcome,
        )

    def _offers(
        self,
        agents: Sequence[KnownAgent],
        listed: Sequence[Machine],
        answers: Sequence[PurchaseAnswer],
    ) -> tuple[Offer, ...]:
        """Return what our machines that are agents have for the demand: each is one of it.

        Also of those that the ledger is to hear of in this round.
        """
        answered = (m for each in answers if each.bought for m in each.bought.machines)
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
