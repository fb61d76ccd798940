"""Faults of agents, of their machines and of the processes on them. Part of ``Faults``."""

import signal
from collections.abc import Callable
from typing import Any

from cluster_faults import losses
from cluster_faults.disturbance import Disturbance
from cluster_faults.processes import descendants, kill_from_top, signal_tree
from embedded_mesos import EmbeddedCluster
from embedded_mesos.background_cluster import agent_of
from embedded_mesos.machine.process_tree import signal_process


class FaultError(Exception):
    """The fault cannot be ordered: there is no such task or agent, or the master refused it."""


class AgentFaults:
    """See the package, which tells what each order does to agent, tasks and scheduler."""

    _cluster: EmbeddedCluster
    _disturbance: Disturbance

    # -- looking -------------------------------------------------------------------------------

    def agent_id(self, agent: int) -> str:
        """Return the Mesos id of an agent. Raises FaultError for one that has none yet."""
        found = self._cluster.agents[agent].agent_id
        if found is None:
            raise FaultError(f"agent {agent} is not registered")
        return found

    def agent_of(self, task_id: str) -> int:
        """Return the agent that has a task's container. Raises FaultError when none has."""
        return self._find(task_id)[0]

    def task_pids(self, task_id: str) -> list[int]:
        """Return the processes of a task, the command's own first. Raises FaultError."""
        _, container_id = self._find(task_id)
        command = self._disturbance.commands.get(container_id)
        below = descendants(self._cluster.host.executor_pids().get(container_id, -1))
        if command not in below:
            raise FaultError(f"task {task_id} has no process")
        return [command, *(pid for pid in below if pid != command)]

    def _find(self, task_id: str) -> tuple[int, str]:
        with self._cluster.lock:
            for link, agent in enumerate(self._cluster.agents):
                for container in agent.containerizer.containers.values():
                    if container.task_id == task_id and not container.gone:
                        return link, container.container_id
        raise FaultError(f"no agent has a container of task {task_id}")

    # -- processes of tasks --------------------------------------------------------------------

    def signal_task(
        self, task_id: str, number: int = signal.SIGKILL, *, tree: bool = False
    ) -> None:
        """Send a signal to a task's command; with ``tree`` to all that it has started, too.

        Raises FaultError when the task has no process.
        """
        pids = self.task_pids(task_id)
        if tree:
            signal_tree(pids[0], number)
        else:
            signal_process(pids[0], number)

    def kill_executor(self, task_id: str) -> None:
        """Kill the process beside a task (SIGKILL); its task dies with it. Raises FaultError."""
        _, container_id = self._find(task_id)
        pid = self._cluster.host.executor_pids().get(container_id)
        if pid is not None:
            # Before its task, so that it can tell nothing of the task's end.
            kill_from_top(pid)

    # -- connections ---------------------------------------------------------------------------

    def partition_agent(self, agent: int) -> None:
        """Let nothing pass between an agent and anybody; its tasks run on."""
        with self._cluster.lock:
            self._disturbance.cut(agent, True)

    def heal_agent(self, agent: int) -> None:
        """End a partition. The agent registers again, as after every broken connection."""
        cluster = self._cluster
        with cluster.lock:
            self._disturbance.cut(agent, False)
            if cluster.agents[agent].running:
                cluster.agents[agent].master_changed(cluster.now())
            cluster.tick(cluster.now())

    # -- standing still ------------------------------------------------------------------------

    def freeze_agent(self, agent: int, *, tasks: bool = False) -> None:
        """Stop an agent as SIGSTOP does; with ``tasks`` everything on its machine, as if hung."""
        with self._cluster.lock:
            self._disturbance.freeze(agent, tasks=tasks)
            if tasks:
                self._each_task(agent, self._disturbance.freeze_task)

    def thaw_agent(self, agent: int) -> None:
        """Let a frozen agent and its tasks go on (SIGCONT)."""
        cluster = self._cluster
        with cluster.lock:
            self._each_task(agent, self._disturbance.thaw_task)
            held = self._disturbance.thaw(agent)
            now = cluster.now()
            core = cluster.agents[agent]
            # An agent that slept through its pings knows so before it reads its mail.
            core.tick(now)
            for source, message in held:
                if source == "executor":
                    core.executor_message(message, now)
                elif core.registered:
                    core.master_message(message, now)
            cluster.settle()

    def _each_task(self, agent: int, order: Callable[[str], None]) -> None:
        for container_id in list(self._cluster.agents[agent].containerizer.containers):
            order(container_id)

    # -- dying and coming back -----------------------------------------------------------------

    def crash_agent(self, agent: int) -> None:
        """Kill the agent's process (SIGKILL). Tasks of checkpointing frameworks run on."""
        cluster = self._cluster
        with cluster.lock:
            losses.crash(cluster.agents[agent])
            self._disturbance.freeze(agent)
            if self._disturbance.reaches(agent):
                losses.disconnected(cluster.core.desk, agent, cluster.now())
            cluster.settle()

    def restart_agent(self, agent: int) -> None:
        """Start an agent that crashed or was shut down.

        After a crash it takes its tasks up again; after a shutdown it is new, as in Mesos, which
        removes what it had checkpointed.
        """
        self._start_again(agent, anew=False)

    def _start_again(self, agent: int, *, anew: bool) -> None:
        cluster = self._cluster
        with cluster.lock:
            held = self._disturbance.thaw(agent)
            core = cluster.agents[agent]
            losses.restart(core, cluster.now(), anew=anew)
            for source, message in held:
                if source == "executor":
                    core.executor_message(message, cluster.now())
            core.tick(cluster.now())
            cluster.settle()

    def lose_machine(self, agent: int) -> None:
        """Take the power away: the agent and its tasks die without a message."""
        cluster = self._cluster
        with cluster.lock:
            core = cluster.agents[agent]
            self._disturbance.cut(agent, True)
            self._disturbance.freeze(agent)
            losses.lose_power(core)
            self._each_task(agent, cluster.host.destroy)
            cluster.settle()

    def replace_machine(self, agent: int) -> None:
        """Start a lost machine anew: an agent with a new id and no tasks."""
        with self._cluster.lock:
            self._disturbance.cut(agent, False)
            self._start_again(agent, anew=True)

    def start_machine(self, **described: Any) -> int:
        """Start one more machine with an agent, of which ``AgentConfig`` says what it has.

        Returns its place behind all others.
        """
        cluster = self._cluster
        with cluster.lock:
            agent = len(cluster.agents)
            self._disturbance.make_room(agent)
            cluster.add_agent(agent_of(described))
            cluster.settle()
        return agent

    def shut_down_agent(self, agent: int) -> None:
        """Tell an agent to leave (SIGUSR1): its tasks are lost at once."""
        cluster = self._cluster
        with cluster.lock:
            losses.shut_down(cluster.agents[agent], cluster.now())
            cluster.settle()
