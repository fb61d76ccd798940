"""Offers as a table: one row per agent and Mesos role, columns as numpy arrays.

The service keeps the table of its last decision beside its offers. Before the next one
:meth:`AgentTable.of` looks up which offers came and went, and makes only the rows of those agents
anew: a decision over 10,000 agents costs its changes, and some copying of arrays. Offers
of the same agent and Mesos role are added up (Mesos offers freed resources of an agent as one more
offer); offers of different Mesos roles are never combined, an ACCEPT of both would be refused
whole. A table never changes and never decides anything.

Rows are in the order of (agent id, Mesos role): nothing depends on the order of the offers, nor on
the tables before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import attrgetter, is_not

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.agents import OFFER_ID, PORTS, Agent, Key, key_of, machine_of
from dcos_tensorflow.core.placement.columns import BoolArray, Column, IntArray, Values
from dcos_tensorflow.core.placement.constraints import field_value

#: The field by which machines are told apart. No constraint can have it: theirs is never empty.
MACHINE = ""
_WIDTH = 7
#: A column is made anew once it remembers more texts that are gone than rows, and this many.
_FORGOTTEN_TEXTS = 1000
_KEY = attrgetter("key")


class AgentTable:
    """What every (agent, Mesos role) offers. All arrays have one entry per row.

    ``offers`` is what the table was made of, by offer id; ``agents`` are the rows; ``numbers`` has
    an array per resource and more (CPUS ... UNAVAILABLE). Fields and ports are worked out when they
    are first asked for; the tables made from this one then have them, too.
    """

    def __init__(
        self,
        offers: Mapping[str, Offer] | None = None,
        agents: NDArray[np.object_] | None = None,
        numbers: IntArray | None = None,
    ) -> None:
        self.offers = {} if offers is None else offers
        self.agents = np.empty(0, dtype=np.object_) if agents is None else agents
        self.numbers = np.empty((_WIDTH, 0), dtype=np.int64) if numbers is None else numbers
        self._columns: dict[str, Column] = {}
        self._ranges: IntArray | None = None

    def __len__(self) -> int:
        return len(self.agents)

    @property
    def free(self) -> IntArray:
        """Return an array per resource: CPUS, MEM, DISK, GPUS, PORTS."""
        return self.numbers[: PORTS + 1]

    def of(self, offers: Mapping[str, Offer]) -> AgentTable:
        """Return the table of ``offers``, by id; only rows whose offers changed are made anew."""
        before = self.offers
        if offers is before:
            return self
        other = map(is_not, map(before.get, offers), offers.values())
        come = [o for o in compress(offers.values(), other) if o != before.get(o.offer_id)]
        replaced = [before[o.offer_id] for o in come if o.offer_id in before]
        gone: list[Offer] = []
        if len(before) - len(replaced) != len(offers) - len(come):
            gone = [before[offer_id] for offer_id in before.keys() - offers.keys()]
        groups: dict[Key, list[Offer]] = {key_of(offer): [] for offer in (*gone, *replaced)}
        for offer in come:
            groups.setdefault(key_of(offer), []).append(offer)
        return self._with(offers, groups)

    def rows_of(self, agent_id: str) -> slice:
        """Return the rows of an agent, whatever their Mesos roles."""
        first = bisect_left(self.agents, (agent_id, ""), key=_KEY)
        last = first
        while last < len(self) and self.agents[last].speaker.agent_id == agent_id:
            last += 1
        return slice(first, last)

    def column(self, field: str) -> Column:
        """Return ``field`` of every row. Numbers may be added to ``values``, never changed."""
        column = self._columns.get(field)
        if column is None:
            values = Values()
            column = self._columns[field] = Column(values, _codes(values, field, self.agents))
        return column

    def offering_port(self, port: int) -> BoolArray:
        """Say for every row whether ``port`` is among its free ports."""
        if self._ranges is None:
            self._ranges = _ranges(self.agents, 0)
        first, last, row = self._ranges
        found = np.zeros(len(self), dtype=np.bool_)
        found[row[(first <= port) & (port <= last)]] = True
        return found

    def _with(
        self, offers: Mapping[str, Offer], groups: Mapping[Key, Sequence[Offer]]
    ) -> AgentTable:
        """Make the rows of ``groups`` anew: of what has come, and what is left of before."""
        fresh: list[Agent] = []
        places: list[int] = []
        removed: list[int] = []
        for key, come in sorted(groups.items()):
            row = bisect_left(self.agents, key, key=_KEY)
            group = {offer.offer_id: offer for offer in come}
            place = row - len(removed)
            if row < len(self) and self.agents[row].key == key:
                removed.append(row)
                for offer in self.agents[row].offers:
                    now = offers.get(offer.offer_id)
                    if now is not None and key_of(now) == key:
                        group[offer.offer_id] = now
            if group:
                fresh.append(Agent(tuple(sorted(group.values(), key=OFFER_ID))))
                places.append(place)
        stay = np.delete(np.arange(len(self)), removed)
        return self._spliced(
            offers, np.insert(stay, places, len(self) + np.arange(len(fresh))), fresh
        )

    def _spliced(
        self, offers: Mapping[str, Offer], source: IntArray, fresh: Sequence[Agent]
    ) -> AgentTable:
        """Return a table of old and ``fresh`` rows; ``source`` numbers them, the old ones first."""
        agents = np.empty(len(fresh), dtype=np.object_)
        agents[:] = fresh
        numbers = np.array([agent.numbers() for agent in fresh], dtype=np.int64)
        found = AgentTable(
            offers,
            np.concatenate([self.agents, agents])[source],
            np.concatenate([self.numbers, numbers.reshape(-1, _WIDTH).T], axis=1)[:, source],
        )
        for name, column in self._columns.items():
            codes = np.concatenate([column.codes, _codes(column.values, name, agents)])[source]
            if len(column.values) <= 2 * len(found) + _FORGOTTEN_TEXTS:
                found._columns[name] = Column(column.values, codes)
        if self._ranges is not None:
            ranges = np.concatenate([self._ranges, _ranges(agents, len(self))], axis=1)
            row = np.full(len(self) + len(fresh), -1, dtype=np.int64)
            row[source] = np.arange(len(source))
            ranges[2] = row[ranges[2]]
            found._ranges = ranges[:, ranges[2] >= 0]
        return found


def _codes(values: Values, field: str, agents: NDArray[np.object_]) -> IntArray:
    texts = (_text(field, agent.speaker) for agent in agents)
    return np.fromiter(map(values.code, texts), dtype=np.int64, count=len(agents))


def _text(field: str, offer: Offer) -> str | None:
    if field == MACHINE:
        return machine_of(offer)
    return field_value(field, offer.hostname, offer.attributes, offer.zone, offer.region)


def _ranges(agents: NDArray[np.object_], first_row: int) -> IntArray:
    """Return all port ranges, flat: first ports, last ports, and the rows that offer them."""
    found = [
        (first, last, row)
        for row, agent in enumerate(agents, first_row)
        for first, last in agent.ports.ranges
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 3).T
