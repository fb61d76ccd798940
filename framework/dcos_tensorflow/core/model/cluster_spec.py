"""The ClusterSpec of one epoch: the place of each task.

``core.restarts.restarts`` makes one when an address or the membership has changed;
``core.cluster.rendering`` renders it per strategy and per task.
"""

from __future__ import annotations

import base64
import functools
import itertools
import zlib
from collections.abc import Mapping
from dataclasses import field

from dcos_tensorflow.core.spec.service_spec import TaskRole, split_task_name
from dcos_tensorflow.records import dataclass

#: The job of a TF_CONFIG that a role is a member of. GPU workers follow the workers in ``worker``.
#: Members of one job stand together here, also for the other table: each job is one stretch.
TF_CONFIG_JOBS = {
    TaskRole.CHIEF: "chief",
    TaskRole.WORKER: "worker",
    TaskRole.GPU_WORKER: "worker",
    TaskRole.PS: "ps",
}
#: The job of a ``tf.compat.v1.train.Server``: the chief is index 0 of ``worker``.
SERVER_JOBS = {
    TaskRole.PS: "ps",
    TaskRole.CHIEF: "worker",
    TaskRole.WORKER: "worker",
    TaskRole.GPU_WORKER: "worker",
}


@dataclass(frozen=True)
class ClusterSpec:
    """Where each task is in one epoch. It may have sidecars; rendering leaves them out.

    What is made of it is worked out once: every member asks for it.
    """

    #: The number of this version of the gang's ClusterSpec, upwards from 1.
    epoch: int
    #: Task name -> ``host:port`` of its TensorFlow server.
    addresses: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Return the names of all members."""
        return frozenset(self.addresses)

    @functools.cached_property
    def names_by_role(self) -> Mapping[TaskRole, tuple[str, ...]]:
        """Return the members of each role by index."""
        members = sorted((*split_task_name(name), name) for name in self.addresses)
        found: dict[TaskRole, tuple[str, ...]] = {}
        for role, group in itertools.groupby(members, key=lambda member: member[0]):
            found[role] = tuple(name for _, _, name in group)
        return found

    @functools.cached_property
    def places(self) -> Mapping[str, int]:
        """Return the place of each member of the gang: chief, workers, GPU workers, ps."""
        ordered = (n for role in TF_CONFIG_JOBS for n in self.names_by_role.get(role, ()))
        return {name: place for place, name in enumerate(ordered)}

    @functools.cached_property
    def table(self) -> tuple[str, ...]:
        """Return the members' addresses, each at its place."""
        return tuple(self.addresses[name] for name in self.places)

    @functools.cached_property
    def table_text(self) -> str:
        """Return the table as what a launch carries it in (docs/task-runner.md)."""
        return base64.b64encode(zlib.compress("\n".join(self.table).encode())).decode()

    @functools.cached_property
    def tf_config_jobs(self) -> Mapping[str, range]:
        """Return the places of each job's members in a TF_CONFIG."""
        return self._jobs(TF_CONFIG_JOBS)

    @functools.cached_property
    def server_jobs(self) -> Mapping[str, range]:
        """Return the places of each job's members for a ``tf.compat.v1.train.Server``."""
        return self._jobs(SERVER_JOBS)

    def _jobs(self, jobs: Mapping[TaskRole, str]) -> Mapping[str, range]:
        found: dict[str, range] = {}
        for role, job in jobs.items():
            names = self.names_by_role.get(role, ())
            if names:
                start = self.places[names[0]]
                first = found[job].start if job in found else start
                found[job] = range(first, start + len(names))
        return found
