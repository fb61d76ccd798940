"""Offers as a table: one row per agent and Mesos role, columns as numpy arrays.

``core.placement.place`` builds one table per decision and asks it for whole columns, so that a
decision over 10,000 agents is a few vector operations. Offers of the same agent and Mesos role are
added up (Mesos offers freed resources of an agent as one more offer); offers of different Mesos
roles are never combined, an ACCEPT of both would be refused whole. The table never changes and
never decides anything.

Rows are in the order of (agent id, Mesos role): nothing depends on the order of the offers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.resources import PortRanges, Resources
from dcos_tensorflow.core.placement.constraints import Column, field_value

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Rows of the resource matrix. All but gpus in thousandths, Mesos' own fixed point.
CPUS, MEM, DISK, GPUS = range(4)
#: A loopback address is always this machine: agents there share its ports.
_LOOPBACK = "127.0.0.0/8"
_OFFER_ID = attrgetter("offer_id")
_ROW = attrgetter("agent_id", "mesos_role")
_ORDER = attrgetter("agent_id", "mesos_role", "offer_id")
_AMOUNTS = (
    (CPUS, 1000, attrgetter("cpus")),
    (MEM, 1000, attrgetter("mem")),
    (DISK, 1000, attrgetter("disk")),
    (GPUS, 1, attrgetter("gpus")),
)


def as_vector(resources: Resources) -> IntArray:
    """Return ``resources`` as a column of the resource matrix: exact integers."""
    return np.array(
        [
            round(resources.cpus * 1000),
            round(resources.mem * 1000),
            round(resources.disk * 1000),
            resources.gpus,
        ],
        dtype=np.int64,
    )


@dataclass(frozen=True)
class AgentTable:
    """What every (agent, Mesos role) offers. All arrays have one entry per row.

    ``offers`` holds one offer per row that speaks for its host name, address and attributes;
    ``offer_ids`` all that were merged. ``free`` has a row per resource (CPUS, MEM, DISK, GPUS).
    ``machine`` numbers the machines: rows with the same number share one set of ports.
    ``range_*`` are all port ranges of all rows, flat: first and last port, and whose they are.
    ``mounts`` has the sizes (MB) of whole disks, of the rows that have some.
    """

    offers: tuple[Offer, ...]
    offer_ids: tuple[tuple[str, ...], ...]
    ports: tuple[PortRanges, ...]
    free: IntArray
    port_count: IntArray
    machine: IntArray
    range_first: IntArray
    range_last: IntArray
    range_row: IntArray
    mounts: Mapping[int, tuple[float, ...]]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.offers)

    def column(self, field: str, more_values: Iterable[str] = ()) -> Column:
        """Return ``field`` of every row; ``more_values`` are known besides those of the rows."""
        found = [
            field_value(field, offer.hostname, offer.attributes, offer.zone, offer.region)
            for offer in self.offers
        ]
        values = tuple(sorted({value for value in found if value is not None} | set(more_values)))
        code: dict[str | None, int] = {value: number for number, value in enumerate(values)}
        code[None] = -1
        codes = np.fromiter((code[value] for value in found), dtype=np.int64, count=len(found))
        return Column(values, codes)

    def offering_port(self, port: int) -> BoolArray:
        """Say for every row whether ``port`` is among its free ports."""
        rows = np.zeros(len(self), dtype=np.bool_)
        rows[self.range_row[(self.range_first <= port) & (port <= self.range_last)]] = True
        return rows


def table_of(offers: Sequence[Offer]) -> AgentTable:
    """Build the table. An offer given twice counts once."""
    groups = _groups(offers)
    rows = tuple(group[0] for group in groups)
    ports = tuple(map(_ports, groups))
    ranges = np.array(
        list(chain.from_iterable(free.ranges for free in ports)), dtype=np.int64
    ).reshape(-1, 2)
    range_row = np.repeat(np.arange(len(rows)), [len(free.ranges) for free in ports])
    sizes = ranges[:, 1] - ranges[:, 0] + 1
    return AgentTable(
        offers=rows,
        offer_ids=tuple(tuple(map(_OFFER_ID, group)) for group in groups),
        ports=ports,
        free=_free(groups),
        port_count=np.bincount(range_row, weights=sizes, minlength=len(rows)).astype(np.int64),
        machine=_machines(rows),
        range_first=ranges[:, 0],
        range_last=ranges[:, 1],
        range_row=range_row,
        mounts={
            row: disks
            for row, group in enumerate(groups)
            if (disks := tuple(chain.from_iterable(offer.mounts for offer in group)))
        },
    )


def _groups(offers: Sequence[Offer]) -> list[tuple[Offer, ...]]:
    """Return the offers of each agent and Mesos role, all in a fixed order."""
    ordered = sorted({offer.offer_id: offer for offer in offers}.values(), key=_ORDER)
    if len(set(map(_ROW, ordered))) == len(ordered):
        return [(offer,) for offer in ordered]
    return [tuple(group) for _, group in groupby(ordered, _ROW)]


def _ports(group: tuple[Offer, ...]) -> PortRanges:
    if len(group) == 1:
        return group[0].ports
    return sum((offer.ports for offer in group), PortRanges())


def _free(groups: Sequence[tuple[Offer, ...]]) -> IntArray:
    """Return the resource matrix: what the offers of each row add up to."""
    totals = [
        group[0].resources
        if len(group) == 1
        else sum((offer.resources for offer in group), Resources())
        for group in groups
    ]
    free = np.empty((4, len(groups)), dtype=np.int64)
    for resource, scale, amount in _AMOUNTS:
        amounts = np.fromiter(map(amount, totals), dtype=np.float64, count=len(totals))
        free[resource] = np.rint(amounts * scale)
    return free


def _machines(offers: Sequence[Offer]) -> IntArray:
    """Number the machines by address; all loopback addresses are one machine.

    TensorFlow's gRPC server listens on all interfaces whatever its address says, so agents of
    one machine cannot both use a port, though each may offer it.
    """
    machines = [
        _LOOPBACK if offer.address.startswith("127.") else offer.address or offer.agent_id
        for offer in offers
    ]
    numbers = {machine: number for number, machine in enumerate(dict.fromkeys(machines))}
    return np.array([numbers[machine] for machine in machines], dtype=np.int64)
