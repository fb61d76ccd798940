"""The observations of the loop that buys, from the state and from the master's answers. Pure.

Called by ``scheduler.machines.buying``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.capacity.losses import Pause
from dcos_tensorflow.capacity.mirror import Agents
from dcos_tensorflow.capacity.observation import Rules
from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.core.model.job import RESTARTING_PHASES
from dcos_tensorflow.core.model.known_agents import KnownAgent, names_of
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.offers.waiting import WaitingGang
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.core.spec.resources import PortRanges, Resources

#: Seconds. Tasks of a job that is over end well within their grace and this.
_ENDING_MARGIN = 90.0
#: Which ports are free is not asked: a machine has enough of them.
_PORTS = PortRanges.of([(1, 65_535)])


def owner_of(state: ServiceState) -> str:
    """Return for whom machines are bought: this instance of the service, and no other."""
    return f"{owner_prefix(state.spec.name)}{state.instance}"


def owner_prefix(service: str) -> str:
    """Return how the owners of all instances of a service begin that there ever were."""
    return f"{service.strip('/').replace('/', '.')}."


def rules_of_service(spec: CapacitySpec, state: ServiceState, patience_seconds: float) -> Rules:
    """Return the rules by which a service buys."""
    ending = state.spec.kill_grace_seconds + _ENDING_MARGIN
    return Rules(spec, owner_of(state), state.instance, ending, patience_seconds)


def offers_of(agents: Sequence[KnownAgent] | None, state: ServiceState) -> tuple[Offer, ...]:
    """Return what is free: by the master's word, else by the offers in hand."""
    if agents is None:
        return tuple(state.desk.offers.values())
    return tuple(_offer(agent, state) for agent in agents if _may_offer(agent, state))


def demand_of(waiting: WaitingGang, now: float) -> GangDemand:
    """Return what waits as the planner takes it: machines are bought in the region it names."""
    requests = tuple(replace(request, region="") for request in waiting.requests)
    return GangDemand(waiting.name, requests, max(0.0, now - waiting.since), waiting.zone)


def _may_offer(agent: KnownAgent, state: ServiceState) -> bool:
    out = agent.recovered or agent.deactivated or bool(agent.draining) or not agent.active
    wanted = state.spec.region or state.subscription.master_region
    elsewhere = agent.region and wanted and agent.region != wanted
    known = state.maintenance
    leaves = any(agent.agent_id in said for said in (known.starts, known.noticed, known.advised))
    return not (out or elsewhere or leaves)


def _offer(agent: KnownAgent, state: ServiceState) -> Offer:
    mine = state.spec.mesos_role
    kept = [
        amounts
        for role, amounts in agent.reserved.items()
        if mine != role and not mine.startswith(f"{role}/")
    ]

    def free(name: str) -> float:
        taken = agent.used.get(name, 0.0) + sum(amounts.get(name, 0.0) for amounts in kept)
        return max(0.0, agent.total.get(name, 0.0) - taken)

    return Offer(
        offer_id=agent.agent_id,
        agent_id=agent.agent_id,
        hostname=agent.hostname,
        address=agent.address,
        mesos_role=mine,
        resources=Resources(
            cpus=free("cpus"), mem=free("mem"), disk=free("disk"), gpus=int(free("gpus"))
        ),
        ports=_PORTS,
        attributes=agent.attributes,
        zone=agent.zone or str(agent.attributes.get("zone", "")) or None,
        region=agent.region or None,
    )


def agents_of(
    agents: Sequence[KnownAgent] | None, state: ServiceState, ledger: Ledger, *, can_be_closed: bool
) -> Agents:
    """Return whose agents are known, and which of them have tasks.

    A master that does not say is made up for by offers and by our own tasks: then a machine once
    known stays so.
    """
    noticed = state.maintenance.noticed
    ours = {name for r in state.live_tasks for name in (r.hostname, r.address)}
    if agents is not None:
        there = [a for a in agents if (a.active or a.deactivated) and not a.recovered]
        with_tasks = (agent for agent in there if any(v > 0 for v in agent.used.values()))
        to_go = (agent for agent in there if agent.agent_id in noticed)
        return Agents(
            known=names_in(there),
            busy=_lower(ours) | names_in(with_tasks),
            noticed=names_in(to_go),
            twice=_twice(there),
            closed=names_in(agent for agent in there if agent.deactivated),
            can_be_closed=can_be_closed,
        )
    registered = (m for _, m in ledger.machines() if m.is_registered)
    known = {name for machine in registered for name in machine.hostnames}
    known |= {name for o in state.desk.offers.values() for name in (o.hostname, o.address)}
    known |= {verdict.hostname for verdict in state.desk.log.verdicts}
    told = [record for record in state.live_tasks if record.agent_id in noticed]
    going = {name for record in told for name in (record.hostname, record.address)}
    return Agents(_lower(known | ours), _lower(ours), _lower(going))


def pauses_of(state: ServiceState) -> dict[str, Pause]:
    """Return by gang when it last did not train; gangs that always did are left out."""
    jobs = {name: gang.job for name, gang in state.gangs.items() if gang.job.trained_until}
    return {
        name: Pause(job.trained_until, None if job.phase in RESTARTING_PHASES else job.phase_since)
        for name, job in jobs.items()
    }


def _twice(agents: Iterable[KnownAgent]) -> frozenset[str]:
    """Return the hostnames that more than one agent has which makes offers."""
    names = Counter(agent.hostname.lower() for agent in agents if agent.active)
    return frozenset(name for name, count in names.items() if count > 1)


def called(agents: Iterable[KnownAgent], names: frozenset[str]) -> tuple[str, ...]:
    """Return the ids of agents that have one of these names."""
    return tuple(agent.agent_id for agent in agents if not names.isdisjoint(names_of(agent)))


def names_in(agents: Iterable[KnownAgent]) -> frozenset[str]:
    """Return all names of these agents, in lower case."""
    return frozenset(name for agent in agents for name in names_of(agent))


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names if name)
