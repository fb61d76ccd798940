"""Ports that the clusters of one machine do not offer twice.

Each agent has an address of its own, but a task that listens on all addresses takes its port from
the whole machine. ``background_cluster`` therefore claims the ports of its agents before it offers
them, and takes the next ones that no other cluster has claimed. A claim is a name among the
machine's abstract sockets: the kernel gives it once, and takes it back when the process ends,
however it ends. It ignores ports of other programs (as Mesos does).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import replace

from embedded_mesos.configuration import LAST_PORT, PORTS_PER_AGENT, AgentConfig

#: No cluster is given ports below: servers of the machine have them.
_LOWEST = 12000
_NAME = "\0embedded-mesos-ports-{}"


def claim(agents: Sequence[AgentConfig], claims: contextlib.ExitStack) -> tuple[AgentConfig, ...]:
    """Return the agents with ports that are theirs until ``claims`` is closed.

    First those that they have, then others upwards from the lowest, all moved by as much: the ports
    of outgoing connections (``ip_local_port_range``) come last. On a machine that has no more, or
    no abstract sockets, they keep what they have, and share it.
    """
    first = min(agent.ports[0] for agent in agents)
    last = max(agent.ports[1] for agent in agents)
    for begin in (first, *range(_LOWEST, LAST_PORT - (last - first) + 1, PORTS_PER_AGENT)):
        shift = begin - first
        blocks = range((first + shift) // PORTS_PER_AGENT, (last + shift) // PORTS_PER_AGENT + 1)
        with contextlib.ExitStack() as taken, contextlib.suppress(OSError):
            for block in blocks:
                named = taken.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
                named.bind(_NAME.format(block))
            claims.push(taken.pop_all())
            return tuple(
                replace(agent, ports=(agent.ports[0] + shift, agent.ports[1] + shift))
                for agent in agents
            )
    return tuple(agents)
