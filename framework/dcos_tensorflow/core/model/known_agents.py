"""Machines as a master lists them, and those of them that make no offers.

``scheduler.master_watch`` asks for them while something waits; ``core.agents.silence`` says which
make none, and why. Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from dcos_tensorflow.core.model.offer import AttributeValue
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class KnownAgent:
    """An agent as its master lists it. Amounts by Mesos' names of scalars."""

    agent_id: str
    hostname: str
    #: Known from the registry alone: it has not come back to this leading master.
    recovered: bool = False
    #: It is connected, and no operator has taken it out.
    active: bool = True
    #: An operator has taken it out ...
    deactivated: bool = False
    #: ... and how far it is drained: DRAINING, DRAINED, or nothing.
    draining: str = ""
    #: Empty where it has none.
    region: str = ""
    zone: str = ""
    #: Where it listens: its IP address; empty where that is not told.
    address: str = ""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    total: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)
    #: Mesos role -> what of it is reserved for that.
    reserved: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class SilentAgents:
    """Machines that make no offer, all for the same reason."""

    why: str
    #: The first of them, in the master's order ...
    hostnames: tuple[str, ...]
    #: ... and how many there are.
    count: int

    def __str__(self) -> str:
        more = self.count - len(self.hostnames)
        rest = f" and {more} more" if more else ""
        return f"no offer from {', '.join(self.hostnames)}{rest}: {self.why}"


def names_of(agent: KnownAgent) -> frozenset[str]:
    """Return by which names machines that are bought may be this agent's, in lower case."""
    return frozenset(name.lower() for name in (agent.hostname, agent.address) if name)
