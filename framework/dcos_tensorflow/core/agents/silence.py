"""The machines that make no offers, with the reason that the master knows and no offer shows.

``scheduler.master_watch`` asks it while a gang waits; ``why`` shows the answer beside the offers
that did not help. Pure; changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dcos_tensorflow.core.model.known_agents import KnownAgent, SilentAgents, names_of
from dcos_tensorflow.core.model.machine_records import emptied
from dcos_tensorflow.core.model.service_state import ServiceState

#: So many machines are named that are silent for the same reason; the others are counted.
NAMED = 5

#: Less than both of these a master does not offer (master.cpp, MIN_CPUS and MIN_MEM).
_LEAST_CPUS, _LEAST_MEM = 0.01, 32.0


def silent_agents(agents: Collection[KnownAgent], state: ServiceState) -> tuple[SilentAgents, ...]:
    """Return the machines that make no offer, by reason.

    Of a machine that has made one lately only the master's own word counts: what it is kept from
    depends on how the master was started.
    """
    heard = {verdict.agent_id: verdict.hostname for verdict in state.desk.log.verdicts}
    heard |= {offer.agent_id: offer.hostname for offer in state.desk.offers.values()}
    found: dict[str, dict[str, None]] = {}
    noticed = state.maintenance.noticed
    going = {name.lower() for name in emptied(state.capacity)}
    for agent in agents:
        goes = agent.agent_id in noticed or not names_of(agent).isdisjoint(going)
        why = "it goes back to its provider" if goes else _out_of_order(agent)
        if not why and agent.agent_id not in heard:
            why = _kept_from_us(agent, state)
        if why:
            found.setdefault(why, {})[agent.hostname] = None
    listed = {key for agent in agents for key in (agent.agent_id, agent.hostname)}
    for agent_id, hostname in heard.items():
        if agent_id not in listed and hostname not in listed:
            found.setdefault(_GONE, {})[hostname] = None
    return tuple(
        SilentAgents(why, tuple(hostnames)[:NAMED], len(hostnames))
        for why, hostnames in found.items()
    )


_GONE = "the master lists it no more: it is unreachable, or has left"


def _out_of_order(agent: KnownAgent) -> str:
    if agent.recovered:
        return "it has not come back since another master leads"
    if agent.draining:
        done = agent.draining == "DRAINED"
        return "it is drained" if done else "it is being drained"
    if agent.deactivated:
        return "it is deactivated: the master offers it to no framework"
    return "" if agent.active else "it does not answer the master"


def _kept_from_us(agent: KnownAgent, state: ServiceState) -> str:
    spec, home = state.spec, state.subscription.master_region
    if agent.total.get("gpus", 0.0) > 0 and not spec.wants_gpus():
        return "it has GPUs, and masters keep such machines from jobs that ask for none"
    far = agent.region and agent.region != home
    if far and not spec.region and not any(role.names_region() for role in spec.roles):
        return f"it is in the region {agent.region}, and the options name none but the master's"
    others = {
        role: amounts
        for role, amounts in agent.reserved.items()
        if not f"{spec.mesos_role}/".startswith(f"{role}/")
    }
    if others and _too_little(agent.total, *others.values()):
        roles = ", ".join(sorted(others))
        return f"it is reserved for another Mesos role: {roles} (the job has {spec.mesos_role})"
    if not others and agent.total and _too_little(agent.total, agent.used):
        return "all of it is in use"
    return ""


def _too_little(total: Mapping[str, float], *taken: Mapping[str, float]) -> bool:
    """Say whether what is left is less than a master offers."""

    def left(name: str) -> float:
        return total.get(name, 0.0) - sum(amounts.get(name, 0.0) for amounts in taken)

    return left("cpus") < _LEAST_CPUS and left("mem") < _LEAST_MEM
