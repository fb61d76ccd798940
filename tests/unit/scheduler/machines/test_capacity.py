"""The loop that buys beside the core: what it sends, and what it waits for before it acts."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.capacity.provider import Bought, PurchaseOrder
from dcos_tensorflow.capacity.reconcile import Round
from dcos_tensorflow.core.model.actions import CapacityKept, ReleaseIdleMachines
from dcos_tensorflow.core.model.events import CapacityNoted, Event, StopRequested
from dcos_tensorflow.core.model.job import JobPhase, JobState
from dcos_tensorflow.core.model.known_agents import KnownAgent
from dcos_tensorflow.core.model.machine_records import machines_left
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import TaskRole, UnitKind, UnitsSpec
from dcos_tensorflow.mesos.agent_files import (
    AgentFilesError,
    AgentRefused,
    AgentUnreachable,
    FileNotFound,
)
from dcos_tensorflow.scheduler.machines import buying as capacity
from dcos_tensorflow.scheduler.machines.buying import BuyingLoop
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, small_job
from unit.capacity.simulated_market import KEPT, SPOT, MarketInMemory


class _Beside:
    """A loop beside a scheduler of the simulation."""

    def __init__(self, **capacity: object) -> None:
        cluster = Cluster(agents=1, resources=Resources(cpus=0.1, mem=64, disk=100))
        section = CapacitySpec(CommandSpec(("rack",)), **capacity)  # type: ignore[arg-type]
        self.scheduler = Scheduler(replace(small_job(), capacity=section), cluster)
        cluster.subscribe()
        self.scheduler.run(60)
        self.market = MarketInMemory(SPOT, KEPT)
        self.sent: list[Event] = []
        #: What was bought when something was sent.
        self.bought_then: list[int] = []
        self.leads = True
        #: What the master was told of agents; what it raises instead.
        self.told: list[tuple[str, bool]] = []
        self.refusal: AgentFilesError | None = None
        self.agents: Callable[[], list[KnownAgent]] = list
        #: What waits beside the service's own gangs.
        self.beside: list[GangDemand] = []
        #: Shown in place of the scheduler's own.
        self.state: ServiceState | None = None
        self.loop = BuyingLoop(
            lambda: self.state or self.scheduler.state,
            self._send,
            self._agents,
            lambda: self.leads,
            lambda spec, owner: self.market,
            offer=self._offer,
            also_waits=lambda now: self.beside,
            look_seconds=0.1,
            clock=lambda: self.scheduler.cluster.now,
        )

    def _offer(self, agent_id: str, is_offered: bool) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.told.append((agent_id, is_offered))

    def _agents(self) -> list[KnownAgent]:
        return self.agents()

    def follow(self, looks: int) -> None:
        """Take looks, each of which sees what the one before has noted."""
        for _ in range(looks):
            self.loop.run_round()
            if self.state is not None:
                self.state = replace(self.state, capacity=self.scheduler.state.capacity)

    def _send(self, event: Event) -> None:
        self.sent.append(event)
        self.bought_then.append(len(self.market.all))
        decision = self.scheduler.handle(event)
        for action in decision.actions:
            if isinstance(action, CapacityKept | ReleaseIdleMachines):
                self.loop.perform(action)


def test_nothing_is_bought_before_it_is_kept() -> None:
    beside = _Beside()
    assert beside.loop.run_round()
    (noted,) = beside.sent
    assert isinstance(noted, CapacityNoted)
    assert beside.bought_then == [0]
    assert len(beside.market.all) == machines_left(beside.scheduler.state.capacity) == 1


def test_what_cannot_be_kept_is_not_waited_for_and_nothing_is_bought() -> None:
    beside = _Beside()
    kept, beside.loop._emit = beside.loop._emit, lambda event: beside.loop.not_kept(event.number)
    assert not beside.loop.run_round()
    assert not beside.market.all
    beside.loop._emit = kept
    assert beside.loop.run_round()
    assert len(beside.market.all) == 1


def test_a_scheduler_that_does_not_lead_buys_nothing() -> None:
    beside = _Beside()
    beside.leads = False
    beside.loop.run_round()
    assert not beside.market.all
    beside.leads = True
    beside.loop.run_round()
    assert len(beside.market.all) == 1


def with_idle_machine(**capacity: object) -> _Beside:
    """One machine, which has been idle for as long as it may, and another's."""
    beside = _Beside(idle_seconds=0.0, **capacity)
    beside.loop.run_round()
    (machine,) = beside.market.alive
    ours = KnownAgent("A", machine.hostnames[0])
    beside.agents = lambda: [ours, KnownAgent("B", "another")]
    gang = beside.scheduler.state.only_gang
    running = replace(gang, job=JobState(JobPhase.RUNNING, deployed=True))
    beside.state = replace(beside.scheduler.state, gangs={gang.name: running})
    return beside


def test_a_machine_that_goes_is_offered_to_no_framework_before_it_is_ended() -> None:
    beside = with_idle_machine()
    beside.follow(3)
    assert set(beside.told) == {("A", False)}
    (machine,) = beside.market.alive
    closed = KnownAgent("A", machine.hostnames[0], active=False, deactivated=True)
    beside.agents = lambda: [closed]
    beside.follow(2)
    assert not beside.market.alive


@pytest.mark.parametrize("error", [AgentRefused("HTTP 403"), AgentUnreachable("HTTP 400")])
def test_a_master_that_may_not_be_told_keeps_no_machine(error: AgentFilesError) -> None:
    beside = with_idle_machine()
    beside.refusal = error
    beside.follow(4)
    assert not beside.market.alive


def test_an_agent_that_is_gone_is_no_refusal() -> None:
    beside = with_idle_machine()
    beside.refusal = FileNotFound("Agent not found")
    beside.follow(3)
    beside.refusal = None
    beside.follow(1)
    assert beside.told == [("A", False)]


def test_for_whom_a_place_was_found_while_others_were_asked_nothing_is_bought() -> None:
    beside = _Beside()
    waits = beside.scheduler.state
    gang = replace(waits.only_gang, job=JobState(JobPhase.RUNNING, deployed=True))

    def placed() -> list[KnownAgent]:
        beside.state = replace(waits, gangs={gang.name: gang})
        return []

    beside.agents = placed
    beside.loop.run_round()
    assert not beside.market.all


def nothing_of_its_own_waits(beside: _Beside, kind: UnitKind | None = None) -> None:
    gang = beside.scheduler.state.only_gang
    running = replace(gang, job=JobState(JobPhase.RUNNING, deployed=True))
    spec = beside.scheduler.state.spec
    spec = replace(spec, units=UnitsSpec(kind) if kind is not None else None)
    beside.state = replace(beside.scheduler.state, gangs={gang.name: running}, spec=spec)


def another_demand() -> GangDemand:
    request = TaskRequest("worker-0", TaskRole.WORKER, Resources(cpus=1, mem=64), 0)
    return GangDemand("job-of-a-queue", (request,), 60.0)


def test_machines_are_bought_for_what_waits_beside_the_service() -> None:
    beside = _Beside()
    nothing_of_its_own_waits(beside)
    beside.follow(2)
    assert not beside.market.all
    beside.beside = [another_demand()]
    beside.follow(2)
    assert len(beside.market.all) == 1


@pytest.mark.parametrize(("kind", "stops"), [(UnitKind.SCHEDULER, False), (UnitKind.SHARD, True)])
def test_a_budget_that_is_spent_ends_one_work_and_else_takes_the_machines(
    kind: UnitKind, *, stops: bool
) -> None:
    beside = _Beside(budget=1.0)
    nothing_of_its_own_waits(beside, kind)
    beside.beside = [another_demand()]
    beside.follow(2)
    assert beside.market.alive
    beside.scheduler.cluster.now += 100 * 3600.0
    beside.follow(4)
    assert any(isinstance(event, StopRequested) for event in beside.sent) is stops
    assert stops or not beside.market.alive


def test_why_nothing_is_bought_is_told_once() -> None:
    beside = _Beside(max_price_per_hour=0.01)
    for _ in range(3):
        beside.loop.run_round()
    assert len(beside.sent) == 1
    assert "max_price_per_hour is 0.01" in beside.scheduler.state.told.capacity["main"]


def test_a_budget_that_is_spent_ends_the_job() -> None:
    beside = _Beside(budget=0.2)
    beside.loop.run_round()
    beside.loop.run_round()
    beside.scheduler.cluster.now += 2 * 3600.0
    beside.loop.run_round()
    stops = [event for event in beside.sent if isinstance(event, StopRequested)]
    assert "the budget of 0.20 is spent" in stops[0].why


def test_who_stops_does_not_wait_for_a_provider_that_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capacity, "STOP_SECONDS", 0.05)
    beside = _Beside()
    is_asked, may_answer = threading.Event(), threading.Event()
    buy = beside.market.buy

    def slow(order: PurchaseOrder) -> Bought:
        is_asked.set()
        assert may_answer.wait(30)
        return buy(order)

    monkeypatch.setattr(beside.market, "buy", slow)
    beside.loop.start()
    assert is_asked.wait(30)
    beside.loop.stop()
    assert not beside.market.all
    assert machines_left(beside.scheduler.state.capacity) == 1
    may_answer.set()


def test_nothing_more_is_begun_once_it_is_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = _Beside()
    beside.loop.run_round()
    beside.scheduler.cluster.now += 60.0
    beside.loop.run_round()
    (machine,) = beside.market.alive
    state = beside.scheduler.state
    assert state.spec.capacity is not None
    order = PurchaseOrder("p-9", machine.owner, (SPOT,), 1)
    asked = beside.market.asked.count("buy")
    beside.loop.stop()
    found = Round(Ledger(), (order,), (machine.machine_id,))
    assert not beside.loop._desk.do(found)
    assert beside.market.asked.count("buy") == asked
    assert beside.market.alive == [machine]
