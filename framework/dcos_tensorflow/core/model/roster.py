"""The names of a gang: its part that depends on the options and the membership alone.

Made once when one of the two changes (``core.model.task_table``), and asked by every verb of the
core: order, positions and membership of names cost nothing per step and per task.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping

from dcos_tensorflow.core.spec.service_spec import (
    MAIN,
    RoleSpec,
    ServiceSpec,
    TaskRole,
    split_task_name,
    task_in,
)
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True, eq=False)
class Roster:
    """The names of one gang. Two rosters are the same when they are one object."""

    #: The members that the gang is to have now, in the order of the roles: no ``absent`` ones.
    names: tuple[str, ...]
    #: All members that the options ask for, in that order.
    every: tuple[str, ...]
    #: Every task that the options ask for: members and sidecars.
    wanted: frozenset[str]
    #: The member that decides about the job's end; empty when nothing trains.
    decider: str
    #: The gang's own name.
    gang: str = MAIN
    #: It takes units of work.
    is_of_slot: bool = False

    @classmethod
    def of(cls, spec: ServiceSpec, absent: Collection[str] = (), gang: str = MAIN) -> Roster:
        """Return the roster of a gang of these options that goes on without ``absent``."""
        every = tuple(task_in(gang, name) for name in spec.gang_members)
        wanted = frozenset(task_in(gang, name) for name in spec.wanted_names)
        if spec.units is not None:
            # One TensorBoard shows them all: it is beside the whole service, and so in its gang.
            boards = frozenset(n for n in wanted if split_task_name(n)[0] is TaskRole.TENSORBOARD)
            if gang == MAIN:
                return cls((), (), boards, "", gang)
            wanted -= boards
        decider, in_slot = task_in(gang, spec.decider), spec.units is not None
        return cls(every, every, wanted, decider, gang, in_slot).without(absent)

    def without(self, absent: Collection[str]) -> Roster:
        """Return the roster of the same gang that goes on without these members alone."""
        gone = frozenset(absent)
        names = tuple(n for n in self.every if n not in gone) if gone else self.every
        return Roster(names, self.every, self.wanted, self.decider, self.gang, self.is_of_slot)

    def names_of(self, role: RoleSpec) -> tuple[str, ...]:
        """Return the gang's tasks of a role, by index."""
        key = (role.role, role.count)
        if key not in self._of_roles:
            names = (task_in(self.gang, name) for name in role.task_names())
            self._of_roles[key] = tuple(name for name in names if name in self.wanted)
        return self._of_roles[key]

    @functools.cached_property
    def _of_roles(self) -> dict[tuple[TaskRole, int], tuple[str, ...]]:
        return {}

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def __len__(self) -> int:
        return len(self.names)

    @functools.cached_property
    def members(self) -> frozenset[str]:
        """Return the names of the members as a set."""
        return frozenset(self.names)

    @functools.cached_property
    def _positions(self) -> Mapping[str, int]:
        return {name: position for position, name in enumerate(self.every)}

    def in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the members among ``names``, each once, in the order of the roster."""
        mine = self.members.intersection(names)
        if len(mine) == len(self.names):
            return self.names
        return tuple(sorted(mine, key=self._positions.__getitem__))
