"""The master's records: frameworks, agents, offers, tasks, quotas.

Mutable records, changed by the parts of this room alone, through the ``desk`` that they lie on.
Nothing here is written to disk: losing the master loses it all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from embedded_mesos.messages import TERMINAL_STATES
from embedded_mesos.resources import Resources

Json = dict[str, Any]


@dataclass
class Task:
    """A task as the master knows it."""

    info: Json
    framework_id: str
    agent_id: str
    resources: Resources
    executor_id: str | None = None
    #: The newest state the agent told of.
    state: str = "TASK_STAGING"
    #: The state, uuid and body of the newest update on its way to the scheduler.
    status_update_state: str = "TASK_STAGING"
    status_update_uuid: str | None = None
    statuses: list[Json] = field(default_factory=list)
    unreachable_time: float | None = None

    @property
    def task_id(self) -> str:
        """Return the id that the scheduler gave it."""
        return str(self.info["task_id"]["value"])

    @property
    def terminal(self) -> bool:
        """Say whether it runs no more: its resources are free."""
        return self.state in TERMINAL_STATES

    @property
    def unreachable(self) -> bool:
        """Say whether its agent cannot be reached."""
        return self.unreachable_time is not None


@dataclass(frozen=True)
class Filter:
    """Hides an agent from a role while it has no more than ``resources`` to offer."""

    mesos_role: str
    agent_id: str
    resources: Resources
    until: float
    #: How many cycles there had been when it was made: it holds in the next one, however late.
    cycles: int

    def holds(self, now: float, cycles: int) -> bool:
        """Say whether it still hides the agent after so many cycles."""
        return now < self.until or cycles == self.cycles


@dataclass
class Framework:
    """A framework. Without a ``stream_id`` it is disconnected."""

    framework_id: str
    info: Json
    stream_id: str | None
    registered_at: float
    reregistered_at: float
    principal: str | None = None
    #: Known from an agent only: the master failed over and the scheduler has not come yet.
    recovered: bool = False
    suppressed: set[str] = field(default_factory=set)
    constraints: Json = field(default_factory=dict)
    filters: list[Filter] = field(default_factory=list)
    #: Agent id -> until when it gets no inverse offer for that agent.
    inverse_filters: dict[str, float] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    unreachable_tasks: dict[str, Task] = field(default_factory=dict)
    completed_tasks: list[Task] = field(default_factory=list)
    next_heartbeat: float = 0.0
    failover_deadline: float | None = None
    unregistered_at: float = 0.0

    @property
    def connected(self) -> bool:
        """Say whether a scheduler listens."""
        return self.stream_id is not None

    def capable(self, capability: str) -> bool:
        """Say whether the framework has ``capability``."""
        return any(one.get("type") == capability for one in self.info.get("capabilities", []))

    @property
    def roles(self) -> list[str]:
        """Return the Mesos roles that it wants offers for."""
        if self.capable("MULTI_ROLE"):
            return list(self.info.get("roles", []))
        return [self.info.get("role", "*")]

    @property
    def failover_timeout(self) -> float:
        """Return for how many seconds its tasks outlive its connection."""
        return float(self.info.get("failover_timeout", 0.0))

    def used(self) -> Resources:
        """Return what its live tasks hold."""
        live = (task.resources for task in self.tasks.values() if not task.terminal)
        return sum(live, Resources())


@dataclass
class Restriction:
    """What an operator said of an agent. It outlives the agent's absence and the master's loss."""

    #: Nothing of it is offered.
    deactivated: bool = False
    #: As DrainInfo; None when it is not drained.
    drain: Json | None = None
    drain_started_at: float = 0.0


@dataclass
class RegisteredAgent:
    """An agent that registered. ``link`` is its place in the cluster."""

    agent_id: str
    link: int
    info: Json
    total: Resources
    registered_at: float
    reregistered_at: float | None = None
    #: The executors of task groups hold resources of their own: executor id -> resources.
    executors: dict[tuple[str, str], Resources] = field(default_factory=dict)
    next_ping: float = 0.0
    unanswered_pings: int = 0
    #: Its connection is broken (the process died); it may register again.
    disconnected: bool = False
    restriction: Restriction = field(default_factory=Restriction)
    unavailability: Json | None = None

    @property
    def active(self) -> bool:
        """Say whether anything of it may be offered."""
        return not (self.restriction.deactivated or self.disconnected)

    @property
    def machine(self) -> tuple[str, str]:
        """Return what maintenance calls it."""
        return machine_key(self.info)

    @property
    def hostname(self) -> str:
        """Return the name it goes by."""
        return str(self.info["hostname"])

    @property
    def attributes(self) -> list[Json]:
        """Return its attributes as Attribute JSON."""
        return list(self.info.get("attributes", []))


@dataclass(frozen=True)
class Offer:
    """An offer that waits for an answer."""

    offer_id: str
    framework_id: str
    agent_id: str
    mesos_role: str
    resources: Resources


@dataclass(frozen=True)
class InverseOffer:
    """A request to leave an agent before its maintenance."""

    offer_id: str
    framework_id: str
    agent_id: str


@dataclass
class ClusterState:
    """Everything the master knows."""

    master_id: str
    frameworks: dict[str, Framework] = field(default_factory=dict)
    completed_frameworks: dict[str, Framework] = field(default_factory=dict)
    agents: dict[str, RegisteredAgent] = field(default_factory=dict)
    #: Agent id -> unix seconds at which it was lost.
    unreachable_agents: dict[str, float] = field(default_factory=dict)
    gone_agents: dict[str, float] = field(default_factory=dict)
    offers: dict[str, Offer] = field(default_factory=dict)
    inverse_offers: dict[str, InverseOffer] = field(default_factory=dict)
    #: Role -> limits in thousandths by resource name.
    quotas: dict[str, dict[str, int]] = field(default_factory=dict)
    #: Agent id -> what an operator said of it; only of agents that one spoke of.
    restrictions: dict[str, Restriction] = field(default_factory=dict)
    #: The windows of the maintenance schedule, and the machines of it that are down.
    maintenance: list[Json] = field(default_factory=list)
    down_machines: set[tuple[str, str]] = field(default_factory=set)
    #: (agent id, framework id) -> answer to an inverse offer.
    inverse_answers: dict[tuple[str, str], Json] = field(default_factory=dict)
    #: How often a role, and a framework in a role, was offered something: breaks ties.
    allocations: dict[tuple[str, str], int] = field(default_factory=dict)
    #: The agents of a lost master that have not come back, and until when they are waited for.
    recovering: set[str] = field(default_factory=set)
    recovering_until: float = 0.0
    #: How many periodic allocation cycles there have been.
    cycles: int = 0
    next_offer: int = 0
    next_framework: int = 0
    next_agent: int = 0

    # -- ids -----------------------------------------------------------------------------------

    def new_offer_id(self) -> str:
        """Return the next offer id; inverse offers have theirs of the same row."""
        self.next_offer += 1
        return f"{self.master_id}-O{self.next_offer - 1}"

    def new_framework_id(self) -> str:
        """Return the next framework id."""
        self.next_framework += 1
        return f"{self.master_id}-{self.next_framework - 1:04}"

    def new_agent_id(self) -> str:
        """Return the next agent id."""
        self.next_agent += 1
        return f"{self.master_id}-S{self.next_agent - 1}"

    # -- agents --------------------------------------------------------------------------------

    def agent_at(self, link: int) -> RegisteredAgent | None:
        """Return the agent at a place in the cluster, if it is known."""
        return next((agent for agent in self.agents.values() if agent.link == link), None)

    def knows_agent(self, agent_id: str) -> bool:
        """Say whether an agent is registered, unreachable, or to come back to a new master."""
        return (
            agent_id in self.agents
            or agent_id in self.unreachable_agents
            or agent_id in self.recovering
        )

    def may_come_back(self, agent_id: str | None, now: float) -> bool:
        """Say whether an agent of a lost master (None: any) may still come back."""
        if now >= self.recovering_until:
            return False
        return bool(self.recovering) if agent_id is None else agent_id in self.recovering

    def give_up_on_agents(self, now: float) -> None:
        """Call unreachable, as Mesos does, the lost master's agents that did not come in time."""
        if now >= self.recovering_until:
            self.unreachable_agents.update(dict.fromkeys(self.recovering, now))
            self.recovering.clear()

    def unavailability(self, agent: RegisteredAgent) -> Json | None:
        """Return when an agent will be away, by the maintenance schedule."""
        return scheduled(self.maintenance).get(agent.machine)

    def tasks_on(self, agent_id: str) -> list[tuple[Framework, Task]]:
        """Return an agent's tasks that have not ended, each with its framework."""
        return [
            (framework, task)
            for framework in self.frameworks.values()
            for task in framework.tasks.values()
            if task.agent_id == agent_id and not task.terminal
        ]

    # -- resources -----------------------------------------------------------------------------

    def used(self, agent_id: str) -> Resources:
        """Return what live tasks and executors hold on an agent, allocated."""
        live = (task.resources for _, task in self.tasks_on(agent_id))
        return sum((*live, *self.agents[agent_id].executors.values()), Resources())

    def offered(self, agent_id: str) -> Resources:
        """Return what open offers hold on an agent, allocated."""
        on_it = (one.resources for one in self.offers.values() if one.agent_id == agent_id)
        return sum(on_it, Resources())

    def available(self, agent_id: str) -> Resources:
        """Return what an agent has left, unallocated."""
        taken = self.used(agent_id) + self.offered(agent_id)
        return self.agents[agent_id].total - taken.allocated_to(None)


def agent_url(agent: RegisteredAgent) -> Json:
    """Return where an agent listens, as offers tell it."""
    return {
        "scheme": "http",
        "address": {
            "hostname": agent.hostname,
            "ip": agent.info["ip"],
            "port": agent.info["port"],
        },
        "path": "/slave(1)",
    }


def machine_key(machine: Json) -> tuple[str, str]:
    """Return what tells machines apart: Mesos compares both, the hostname without its case."""
    return str(machine.get("hostname", "")).lower(), str(machine.get("ip", ""))


def scheduled(windows: list[Json]) -> dict[tuple[str, str], Json]:
    """Return the unavailability of each machine in the windows of a maintenance schedule."""
    return {
        machine_key(machine): dict(window["unavailability"])
        for window in windows
        for machine in window.get("machine_ids", [])
    }


def nanoseconds(seconds: float) -> Json:
    """Return a TimeInfo."""
    return {"nanoseconds": round(seconds * 1e9)}


def last_details(task: Task) -> Json:
    """Return what the master repeats of a task's last status: container, health, checks."""
    if not task.statuses:
        return {}
    last = task.statuses[-1]
    return {k: last[k] for k in ("healthy", "check_status", "container_status") if k in last}
