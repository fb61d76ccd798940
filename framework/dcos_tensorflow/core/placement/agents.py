"""One agent as placement sees it: what it offers for one Mesos role, and the ports a task gets.

``core.placement.agent_table`` has a row for each. Nothing here decides anything.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from operator import attrgetter

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.spec.resources import PortRanges, Resources

Key = tuple[str, str]

#: What is counted of an agent, and the rows of ``AgentTable.numbers``. CPUS, MEM and DISK in
#: thousandths, Mesos' own fixed point; PORTS is how many there are. OFFERS is how many were merged,
#: UNAVAILABLE whether a maintenance window is announced.
CPUS, MEM, DISK, GPUS, PORTS, OFFERS, UNAVAILABLE = range(7)
#: A loopback address is always this machine: agents there share its ports.
_LOOPBACK = "127.0.0.0/8"
#: The order of the offers of one agent.
OFFER_ID = attrgetter("offer_id")


def amounts(resources: Resources) -> tuple[int, int, int, int]:
    """Return CPUS, MEM, DISK and GPUS of ``resources`` as the table has them: exact integers."""
    return (
        round(resources.cpus * 1000),
        round(resources.mem * 1000),
        round(resources.disk * 1000),
        resources.gpus,
    )


class Agent:
    """One row: what an agent offers for one Mesos role.

    ``offers`` were merged; the first by offer id, ``speaker``, says host name, address and
    attributes. ``ports`` are the free ports of all, ``mounts`` the sizes (MB) of their whole disks.
    """

    __slots__ = ("key", "mounts", "offers", "ports", "speaker")

    def __init__(self, offers: tuple[Offer, ...]) -> None:
        self.offers = offers
        self.speaker = speaker = offers[0]
        self.key: Key = (speaker.agent_id, speaker.mesos_role)
        self.ports, self.mounts = speaker.ports, speaker.mounts
        for offer in offers[1:]:
            self.ports = self.ports + offer.ports
            self.mounts = self.mounts + offer.mounts

    @property
    def offer_ids(self) -> tuple[str, ...]:
        """Return the ids of all offers: one ACCEPT takes them together."""
        return tuple(map(OFFER_ID, self.offers))

    def numbers(self) -> tuple[int, ...]:
        """Return what it has of each: CPUS ... UNAVAILABLE."""
        total = self.speaker.resources
        for offer in self.offers[1:]:
            total = total + offer.resources
        unavailable = self.speaker.unavailable_from is not None
        return (*amounts(total), len(self.ports), len(self.offers), unavailable)


def key_of(offer: Offer) -> Key:
    """Return whose offer it is: offers with the same key are added up."""
    return (offer.agent_id, offer.mesos_role)


def machine_of(offer: Offer) -> str:
    """Return the machine of an agent: its address.

    TensorFlow's gRPC server listens on all interfaces whatever its address says, so agents of one
    machine cannot both use a port, though each may offer it.
    """
    return _LOOPBACK if offer.address.startswith("127.") else offer.address or offer.agent_id


def choose_ports(
    offered: PortRanges,
    count: int,
    first: int | None,
    name: str,
    *,
    taken: AbstractSet[int],
    shunned: AbstractSet[int],
) -> tuple[int, ...]:
    """Choose distinct ports, none ``taken``: ``first``, then by name, ``shunned`` ones last.

    The rest starts at a place among the offered ports that follows from ``name``, and goes on
    upwards and around. Two services with different names so begin at different places: the port
    that one has just released is not what the other takes next, while a task that comes back to an
    agent finds its old ports, if they are free.
    """
    chosen: list[int] = []
    if first is not None and first in offered and first not in taken:
        chosen.append(first)
    start = zlib.crc32(name.encode())
    for avoided in (shunned, frozenset[int]()):
        if len(chosen) == count:
            break
        for port in _from(offered, start):
            if port not in taken and port not in avoided and port not in chosen:
                chosen.append(port)
                if len(chosen) == count:
                    break
    return tuple(chosen)


def _from(offered: PortRanges, start: int) -> Iterator[int]:
    skip = start % max(len(offered), 1)
    head: list[tuple[int, int]] = []
    for position, (first, last) in enumerate(offered.ranges):
        if skip <= last - first:
            yield from range(first + skip, last + 1)
            for later_first, later_last in offered.ranges[position + 1 :]:
                yield from range(later_first, later_last + 1)
            head.append((first, first + skip - 1))
            break
        head.append((first, last))
        skip -= last - first + 1
    for first, last in head:
        yield from range(first, last + 1)
