"""The cluster as the queue counts it: each machine's resources for jobs of the queue. Pure.

Made of a master's ``/state``. Resources that other frameworks use do not count, nor do those
that are reserved for Mesos roles of no team. A machine that is being drained, or
that has not come back to the leading master, has nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from dcos_tensorflow.core.model.known_agents import KnownAgent
from dcos_tensorflow.queue.model import Host
from dcos_tensorflow.queue_service.needs import HOSTNAME
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.master_watch import agents_in

_LIVE = frozenset({"TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING"})


@dataclass(frozen=True)
class GpuKinds:
    """Which attribute says what kind of GPU a machine has, and what one of each kind counts."""

    attribute: str = ""
    weights: Mapping[str, float] | None = None

    def weight(self, agent: KnownAgent) -> float:
        """Return what one GPU of a machine counts; 1 where nothing is said of it."""
        kind = str(agent.attributes.get(self.attribute, ""))
        return (self.weights or {}).get(kind, 1.0)


@dataclass(frozen=True)
class ClusterView:
    """The machines, and where the tasks of the queue's jobs are."""

    hosts: tuple[Host, ...]
    #: Of each service of the queue: the agent of each of its tasks.
    tasks: Mapping[str, Mapping[str, str]]


def read_cluster(
    state: Mapping[str, Any],
    services: Collection[str],
    mesos_roles: Collection[str],
    gpus: GpuKinds,
) -> ClusterView:
    """Return what ``/state`` says. ``services`` are the frameworks that are the queue's own.

    Raises KeyError, TypeError, ValueError for what is no state of a master.
    """
    tasks: dict[str, dict[str, str]] = {}
    ours: dict[str, dict[str, float]] = {}
    for framework in state["frameworks"]:
        name = str(framework["name"]).strip("/")
        if name not in services:
            continue
        for task in framework.get("tasks", ()):
            if task["state"] not in _LIVE:
                continue
            agent = str(task["slave_id"])
            tasks.setdefault(name, {})[str(task["name"])] = agent
            used = ours.setdefault(agent, {})
            for kind, amount in task["resources"].items():
                if isinstance(amount, int | float):
                    used[kind] = used.get(kind, 0.0) + float(amount)
    hosts = tuple(
        _host(agent, ours.get(agent.agent_id, {}), mesos_roles, gpus)
        for agent in agents_in(state)
        if agent.active and not (agent.recovered or agent.deactivated or agent.draining)
    )
    return ClusterView(hosts, tasks)


def _host(
    agent: KnownAgent, ours: Mapping[str, float], mesos_roles: Collection[str], gpus: GpuKinds
) -> Host:
    def left(kind: str) -> float:
        theirs = max(agent.used.get(kind, 0.0) - ours.get(kind, 0.0), 0.0)
        kept = sum(
            amounts.get(kind, 0.0)
            for role, amounts in agent.reserved.items()
            if role != "*" and role not in mesos_roles
        )
        return max(agent.total.get(kind, 0.0) - max(theirs, kept), 0.0)

    return Host(
        name=agent.agent_id,
        cpu_milli=math.floor(left("cpus") * 1000 + 0.5),
        mem_mib=math.floor(left("mem")),
        gpu_milli=math.floor(left("gpus")) * 1000,
        attributes={
            **{name: str(value) for name, value in agent.attributes.items()},
            HOSTNAME: agent.hostname,
        },
        gpu_weight=gpus.weight(agent),
    )
