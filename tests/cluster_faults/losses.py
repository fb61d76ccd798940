"""How agents and masters are lost, and come back with what they had kept, or with nothing.

An agent keeps its containers and unacknowledged updates when it crashes (Mesos: the checkpoint in
its work directory), a master what is in Mesos' registry.
"""

from embedded_mesos import messages
from embedded_mesos.agent.agent import Agent
from embedded_mesos.agent.containers import Container
from embedded_mesos.master import offers
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.membership import Loss, lose_task
from embedded_mesos.master.records import ClusterState

_DISCONNECTED = Loss("TASK_LOST", "REASON_AGENT_DISCONNECTED", "Agent disconnected")
#: How long a new master waits for the agents of the old one (--agent_reregister_timeout).
REREGISTER_SECONDS = 600.0


def crash(agent: Agent) -> None:
    """Stop as SIGKILL would: executors of frameworks without checkpointing die with it."""
    lose_power(agent)
    held = agent.containerizer
    for container in held.live():
        if not held.frameworks[container.framework_id].get("checkpoint", False):
            _lose(agent, container)


def lose_power(agent: Agent) -> None:
    """Stop with the whole machine; the caller ends the processes on it."""
    agent.running = False
    agent.registered = False
    agent.updates.pause()


def shut_down(agent: Agent, now: float) -> None:
    """Leave in order (SIGUSR1 in Mesos): unregister, end every task without updates."""
    if agent.registered:
        agent.send(messages.UnregisterAgent())
    agent.leave(now)


def restart(agent: Agent, now: float, *, anew: bool) -> None:
    """Start again: with the same work directory, or as a new agent, as when it had left."""
    if anew or agent.left:
        for container in agent.containerizer.live():
            _lose(agent, container)
        agent.start_anew(now)
        return
    agent.running = True
    agent.started_at = now
    agent.master_changed(now)


def _lose(agent: Agent, container: Container) -> None:
    container.silent = True
    agent.containerizer.destroy(container)


def disconnected(desk: Desk, link: int, now: float) -> None:
    """Note that the connection to an agent broke: no offers, no tasks without checkpoint."""
    agent = desk.state.agent_at(link)
    if agent is None:
        return
    agent.disconnected = True
    offers.rescind_all(desk, agent.agent_id)
    for framework, task in desk.state.tasks_on(agent.agent_id):
        if not framework.info.get("checkpoint", False):
            lose_task(desk, framework, task, _DISCONNECTED, now)


def inherit(heir: ClusterState, lost: ClusterState, *, until: float) -> None:
    """Take over what Mesos keeps in its registry (``registry/registry.proto``).

    Those are agent ids, what operators said of agents and machines, and quotas; frameworks and
    tasks are known again when their agents are back.
    """
    heir.recovering = set(lost.agents)
    heir.recovering_until = until
    heir.unreachable_agents = dict(lost.unreachable_agents)
    heir.gone_agents = dict(lost.gone_agents)
    heir.restrictions = dict(lost.restrictions)
    heir.maintenance = list(lost.maintenance)
    heir.down_machines = set(lost.down_machines)
    heir.quotas = dict(lost.quotas)
