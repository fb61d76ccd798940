"""The ClusterSpec of one epoch: who is where. What each task is told of it is rendered elsewhere.

``core.recovery.restarts`` makes one when an address or the membership has changed;
``core.cluster.cluster_spec`` renders it per strategy and per task.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from dcos_tensorflow.core.model.spec import TaskRole, split_task_name


@dataclass(frozen=True)
class ClusterSpec:
    """Who is where in one epoch."""

    #: The number of this version of the gang's ClusterSpec, upwards from 1.
    epoch: int
    #: Task name -> ``host:port`` of its TensorFlow server.
    addresses: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Return the names of everybody in it."""
        return frozenset(self.addresses)

    @functools.cached_property
    def names_by_role(self) -> Mapping[TaskRole, tuple[str, ...]]:
        """Return the members of each role by index. Worked out once: every member asks for it."""
        members = sorted((*split_task_name(name), name) for name in self.addresses)
        found: dict[TaskRole, tuple[str, ...]] = {}
        for role, group in itertools.groupby(members, key=lambda member: member[0]):
            found[role] = tuple(name for _, _, name in group)
        return found
