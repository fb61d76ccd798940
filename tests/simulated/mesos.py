"""A model of Mesos under a virtual clock, for playing histories against ``core.step.step``.

``Cluster`` is the master and its agents: offers, tasks, updates that are retried until they are
acknowledged, reconciliation, kills. ``simulated.scheduler`` plays against it; used by unit tests
(no faults) and by the simulation (faults from a seed).
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import (
    Accept,
    AcceptInverse,
    Acknowledge,
    Action,
    CapacityKept,
    CollectEvidence,
    Decline,
    Kill,
    LaunchTask,
    Reconcile,
    Release,
    Resubscribe,
    Revive,
    Suppress,
    Teardown,
    UnitEnded,
    UnitsWanted,
)
from dcos_tensorflow.core.model.offer import Offer, OfferedReservation
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.model.task import TERMINAL_STATES, TaskRecord, TaskState
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from simulated.reservations import Reservations
from simulated.runner import Runner


@dataclass
class Agent:
    agent_id: str
    free: Resources
    ports: PortRanges
    address: str
    attributes: dict[str, str | float] = field(default_factory=dict)
    reachable: bool = True
    #: Nothing on it moves, and no client can reach it.
    frozen: bool = False
    filtered_until: float = 0.0
    #: What was refused: more than that is offered again at once.
    filtered: Resources = Resources()
    unavailable_from: float | None = None
    region: str | None = None
    reservations: Reservations = field(default_factory=Reservations)
    filtered_reservations: tuple[OfferedReservation, ...] = ()

    @property
    def is_filtered(self) -> bool:
        """Say whether nothing is free that was not refused."""
        reserved = set(self.reservations.offered()) <= set(self.filtered_reservations)
        return reserved and self.free.fits_in(self.filtered)


@dataclass
class RunningTask:
    launch: LaunchTask
    state: TaskState
    runner: Runner
    unacknowledged: list[events.TaskUpdate] = field(default_factory=list)
    retry_at: float = 0.0
    #: When a KILL that has reached its agent ends it.
    dies_at: float | None = None
    #: False while its agent is away, and until the scheduler has been told that it is back.
    known_to_live: bool = True

    @property
    def alive(self) -> bool:
        return self.state not in TERMINAL_STATES


class Cluster:
    """The master and its agents. Nothing in it is random; the caller decides what goes wrong."""

    def __init__(self, agents: int = 3, resources: Resources | None = None) -> None:
        self.now = 1_000_000.0
        #: The master's own; without one agents have none either.
        self.region = ""
        #: That of all agents.
        self.zone = ""
        self._size = resources or Resources(cpus=4, mem=8192, disk=10000)
        self.agents: dict[str, Agent] = {}
        for _ in range(agents):
            self.add_agent()
        self.tasks: dict[str, RunningTask] = {}
        self.offers: dict[str, Offer] = {}
        #: A scheduler is subscribed: without one there are no offers.
        self.connected = False
        self.suppressed = False
        self.outbox: list[events.Event] = []
        self.launch_history: list[str] = []
        self.double_starts: list[str] = []
        #: Tasks whose end with success was acknowledged: Mesos will never speak of it again.
        self.finished: list[str] = []
        self.agreed: list[str] = []
        self.torn_down = False
        #: Whether agents answer when they are asked for a sandbox; what was asked for ...
        self.sandboxes_are_read = True
        self.asked_for: list[str] = []
        #: ... and the exception that a container has ended of, by task id.
        self.errors: dict[str, OwnError] = {}
        #: Who gives units of work, where there are some.
        self.producer: Callable[[Action], None] | None = None
        #: How long a container takes to end after a KILL.
        self.kill_seconds = 0.0
        self._numbers = itertools.count()

    # What the scheduler calls.

    def perform(self, action: Action) -> None:
        match action:
            case Accept():
                self._accept(action)
            case Release():
                self._give_back(action)
            case Decline():
                self._return(action.offer_ids, action.refuse_seconds)
            case Suppress() | Revive():
                self._suppress(isinstance(action, Suppress))
            case Kill():
                self._kill(action)
            case Reconcile():
                self._reconcile(action)
            case Acknowledge():
                self._acknowledge(action)
            case Resubscribe():
                self.subscribe()
            case AcceptInverse():
                self.agreed.extend(action.inverse_offer_ids)
            case Teardown():
                self._tear_down()
            case CollectEvidence():
                self._read_sandbox(action.task_id)
            case _:
                self._tell_producer(action)

    def _tell_producer(self, action: Action) -> None:
        if isinstance(action, CapacityKept):
            # For a buyer of machines: here there is none.
            return
        assert isinstance(action, UnitsWanted | UnitEnded), f"the model knows no {action}"
        assert self.producer is not None
        self.producer(action)

    def _read_sandbox(self, task_id: str) -> None:
        self.asked_for.append(task_id)
        if self.sandboxes_are_read:
            error = self.errors.get(task_id)
            self.outbox.append(events.EvidenceFound(task_id, "it said why", error=error))

    def _suppress(self, suppressed: bool) -> None:
        self.suppressed = suppressed
        if not suppressed:
            for agent in self.agents.values():
                agent.filtered_until = 0.0

    def subscribe(self) -> None:
        self.offers.clear()
        for agent in self.agents.values():
            agent.filtered_until = 0.0
        self.connected, self.suppressed = True, False
        self.outbox = [e for e in self.outbox if isinstance(e, events.EvidenceFound)]
        self.outbox.append(events.Registered("framework-1", "127.0.0.1:5050", self.region))

    def disconnect(self) -> None:
        """The scheduler's connection ends: the master takes back what it has offered."""
        self.connected = False
        self.offers.clear()

    # What happens by itself.

    def advance(self, seconds: float) -> None:
        """Let time pass: offers go out, unacknowledged updates go out again."""
        self.now += seconds
        if self.connected and not self.suppressed and not self.torn_down:
            self.make_offers()
        for task_id, task in self.tasks.items():
            if task.alive and not self.agents[task.launch.agent_id].frozen:
                task.runner.pass_time(seconds)
            self._perhaps_dies(task_id, task)
            if task.unacknowledged and self.now >= task.retry_at:
                task.retry_at = self.now + 10.0
                if self._listens(task.launch.agent_id):
                    self.outbox.append(task.unacknowledged[0])

    def make_offers(self) -> None:
        held = {offer.agent_id for offer in self.offers.values()}
        made = []
        for agent in self.agents.values():
            filtered = self.now < agent.filtered_until and agent.is_filtered
            if agent.agent_id in held or not agent.reachable or agent.frozen or filtered:
                continue
            reserved = agent.reservations.offered()
            if agent.free.cpus < 0.01 and not reserved:
                continue
            offer = Offer(
                offer_id=f"O{next(self._numbers)}",
                agent_id=agent.agent_id,
                hostname=f"host-{agent.agent_id}",
                address=agent.address,
                mesos_role="*",
                resources=agent.free,
                ports=agent.ports,
                attributes=dict(agent.attributes),
                unavailable_from=agent.unavailable_from,
                region=agent.region,
                zone=self.zone or None,
                reserved=reserved,
            )
            self.offers[offer.offer_id] = offer
            made.append(offer)
        if made:
            self.outbox.append(events.OffersReceived(tuple(made)))

    def ask(self, record: TaskRecord) -> Runner | None:
        """Return the runner of a task that can be asked."""
        task = self.tasks.get(record.task_id)
        if task is None or not task.alive or task.state is TaskState.LAUNCHING:
            return None
        if self._container_address(record.task_id) not in ("", record.address):
            return None
        agent = self.agents[record.agent_id]
        return task.runner if agent.reachable and not agent.frozen else None

    def runner(self, name: str) -> Runner:
        """Return the runner of a task's live attempt."""
        return self.tasks[self.id_of(name)].runner

    def add_agent(self) -> None:
        """A new machine comes."""
        number = len(self.agents)
        address = f"10.0.{number // 250}.{number % 250 + 1}"
        ports = PortRanges(((31000, 31999),))
        self.agents[f"S{number}"] = Agent(f"S{number}", self._size, ports, address)

    def lose(self, agent_id: str, *, frozen: bool = False) -> None:
        """An agent stops answering the master; what runs on it goes on, unless it is frozen."""
        agent = self.agents[agent_id]
        agent.reachable, agent.frozen = False, frozen
        for offer_id in [o for o, f in self.offers.items() if f.agent_id == agent_id]:
            self.rescind(offer_id)
        self._tell_of(agent_id, TaskState.UNREACHABLE)

    def bring_back(self, agent_id: str) -> None:
        """An agent answers again, and tells of its tasks."""
        agent = self.agents[agent_id]
        agent.reachable, agent.frozen = True, False
        self._tell_of(agent_id, None)

    def _tell_of(self, agent_id: str, state: TaskState | None) -> None:
        for task_id, task in self.tasks.items():
            if task.launch.agent_id == agent_id and task.alive:
                task.known_to_live = False
                told = state or task.state
                told = TaskState.STAGING if told is TaskState.LAUNCHING else told
                self.outbox.append(
                    events.TaskUpdate(task_id, told, agent_id, source="SOURCE_MASTER")
                )

    def rescind(self, offer_id: str) -> None:
        if self.offers.pop(offer_id, None) is not None:
            self.outbox.append(events.OfferRescinded(offer_id))

    def report(self, task_id: str, state: TaskState, message: str = "", reason: str = "") -> None:
        """A task changes its state; the update is retried until it is acknowledged."""
        task = self.tasks[task_id]
        if not task.alive:
            return
        task.state = state
        if state in TERMINAL_STATES:
            self._release(task.launch)
        update = events.TaskUpdate(
            task_id=task_id,
            state=state,
            agent_id=task.launch.agent_id,
            source="SOURCE_EXECUTOR",
            message=message,
            reason=reason,
            uuid=f"u{next(self._numbers)}",
            container_address=self._container_address(task_id),
        )
        task.unacknowledged.append(update)
        if len(task.unacknowledged) == 1:
            task.retry_at = self.now + 10.0
            self.outbox.append(update)

    def _container_address(self, task_id: str) -> str:
        """Return the address that a container has of its own, and no other has had before."""
        if self.tasks[task_id].launch.host_ports:
            return ""
        return f"9.0.0.{self.launch_history.index(task_id) + 1}"

    def run_everything(self) -> None:
        """Every launched task reaches RUNNING."""
        for task_id, task in self.tasks.items():
            if task.state is TaskState.LAUNCHING:
                self.report(task_id, TaskState.RUNNING)

    def alive(self) -> list[str]:
        return [t for t, task in self.tasks.items() if task.alive]

    def id_of(self, name: str) -> str:
        """Return the id of the live attempt of a task; of one that can be reached, if any."""
        alive = [t for t in self.alive() if t.split("__")[1] == name]
        found = [t for t in alive if self.agents[self.tasks[t].launch.agent_id].reachable] or alive
        assert len(found) == 1, (name, found)
        return found[0]

    def _accept(self, action: Accept) -> None:
        offers = [self.offers.pop(o, None) for o in action.offer_ids]
        if any(o is None for o in offers):
            for launch in action.launches:
                self.outbox.append(
                    events.TaskUpdate(
                        task_id=launch.task_id,
                        state=TaskState.LOST,
                        source="SOURCE_MASTER",
                        reason="REASON_INVALID_OFFERS",
                        mesos_state="TASK_DROPPED",
                        message="Task launched with invalid offers",
                    )
                )
            return
        agent = self.agents[action.agent_id]
        agent.filtered_until = self.now + action.refuse_seconds
        for launch in action.launches:
            self._launch(agent, launch)
        agent.filtered = agent.free
        agent.filtered_reservations = agent.reservations.offered()

    def _give_back(self, action: Release) -> None:
        if any(self.offers.pop(o, None) is None for o in action.offer_ids):
            return
        agent = self.agents[action.agent_id]
        free, ports = agent.reservations.release(action)
        agent.free = agent.free + free
        agent.ports = agent.ports + PortRanges.of((p, p) for p in ports)
        agent.filtered_until = 0.0

    def _launch(self, agent: Agent, launch: LaunchTask) -> None:
        assert launch.task_id not in self.tasks, f"{launch.task_id} is used twice"
        taken, ports = agent.reservations.launch(launch)
        assert taken.fits_in(agent.free), f"{launch.name} over-commits {agent.agent_id}"
        foreign = [p for p in ports if p not in agent.ports]
        assert not foreign, f"{launch.name} takes foreign ports"
        twins = [
            t
            for t in self.alive()
            if t.split("__")[1] == launch.name and self.tasks[t].known_to_live
        ]
        if twins:
            self.double_starts.append(f"{launch.task_id} beside {twins}")
        agent.free = agent.free - taken
        agent.ports = agent.ports.without(ports)
        self.tasks[launch.task_id] = RunningTask(launch, TaskState.LAUNCHING, Runner.of(launch))
        self.launch_history.append(launch.task_id)

    def _release(self, launch: LaunchTask) -> None:
        agent = self.agents[launch.agent_id]
        free, ports = agent.reservations.end(launch)
        agent.free = agent.free + free
        agent.ports = agent.ports + PortRanges.of((p, p) for p in ports)
        agent.filtered_until = 0.0

    def _return(self, offer_ids: tuple[str, ...], seconds: float) -> None:
        for offer_id in offer_ids:
            offer = self.offers.pop(offer_id, None)
            if offer is not None:
                agent = self.agents[offer.agent_id]
                agent.filtered_until, agent.filtered = self.now + seconds, offer.resources
                agent.filtered_reservations = offer.reserved

    def _kill(self, action: Kill) -> None:
        task = self.tasks.get(action.task_id)
        if task is None or not (task.alive or task.unacknowledged):
            self._forgotten(action.task_id, action.agent_id)
        elif task.alive and self._listens(task.launch.agent_id):
            # A KILL that is repeated does not begin anew.
            task.dies_at = task.dies_at or self.now + self.kill_seconds
            self._perhaps_dies(action.task_id, task)

    def _perhaps_dies(self, task_id: str, task: RunningTask) -> None:
        due = task.dies_at is not None and self.now >= task.dies_at
        if due and self._listens(task.launch.agent_id):
            self.report(task_id, TaskState.KILLED)

    def _listens(self, agent_id: str) -> bool:
        agent = self.agents[agent_id]
        return agent.reachable and not agent.frozen

    def _tear_down(self) -> None:
        self.torn_down = True
        self.offers.clear()
        for task in self.tasks.values():
            if task.alive:
                task.state = TaskState.KILLED
                task.unacknowledged.clear()
                self._release(task.launch)

    def _acknowledge(self, action: Acknowledge) -> None:
        task = self.tasks.get(action.task_id)
        if task is None or not task.unacknowledged:
            return
        if task.unacknowledged[0].uuid == action.uuid:
            if task.unacknowledged.pop(0).state is TaskState.FINISHED:
                self.finished.append(action.task_id)
            if task.unacknowledged:
                task.retry_at = self.now + 10.0
                self.outbox.append(task.unacknowledged[0])

    def _reconcile(self, action: Reconcile) -> None:
        asked = action.tasks or tuple(
            (t, task.launch.agent_id) for t, task in self.tasks.items() if task.alive
        )
        for task_id, agent_id in asked:
            self._answer(task_id, agent_id)

    def _forgotten(self, task_id: str, agent_id: str) -> None:
        self.outbox.append(
            events.TaskUpdate(
                task_id=task_id,
                state=TaskState.LOST,
                agent_id=agent_id,
                source="SOURCE_MASTER",
                reason="REASON_RECONCILIATION",
                mesos_state="TASK_GONE",
            )
        )

    def _answer(self, task_id: str, agent_id: str) -> None:
        task = self.tasks.get(task_id)
        if task is None or not (task.alive or task.unacknowledged):
            self._forgotten(task_id, agent_id)
            return
        state = task.state
        if state is TaskState.LAUNCHING:
            state = TaskState.STAGING
        if task.alive and not self.agents[agent_id].reachable:
            state = TaskState.UNREACHABLE
        self.outbox.append(
            events.TaskUpdate(
                task_id=task_id,
                state=state,
                agent_id=agent_id,
                source="SOURCE_MASTER",
                reason="REASON_RECONCILIATION",
            )
        )
