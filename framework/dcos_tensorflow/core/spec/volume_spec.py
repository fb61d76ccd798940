"""A task's persistent volume: the volume in the options, and the reservation on one agent.

``VolumeSpec`` is part of ``core.spec.service_spec.RoleSpec``. A ``Reservation`` is kept in the
state store before the ACCEPT that makes it is sent; a resource of an offer with its ``resource_id``
is that task's alone (``core.offers.reservations``).
"""

from __future__ import annotations

from enum import StrEnum

from dcos_tensorflow.records import dataclass


class VolumeType(StrEnum):
    """Where a volume is: on a share of the agent's disk, or on a whole disk of its own."""

    ROOT = "ROOT"
    MOUNT = "MOUNT"


@dataclass(frozen=True)
class VolumeSpec:
    """A volume of at least ``size`` MB that a task finds at ``path`` below its sandbox."""

    size: float
    path: str
    kind: VolumeType = VolumeType.ROOT


@dataclass(frozen=True)
class Reservation:
    """What is reserved for one task on one agent: its resources, and a volume on them.

    The labels ``framework_id`` and ``resource_id`` tell it from those of others. ``task_id`` is
    the launch that it was made with; it is ``confirmed`` once that task or an offer has shown it.
    ``given_up`` says why it is not wanted any more, since ``given_up_at``. It was told to be given
    back at ``released_at``, 0 when it was not. ``volume_only`` says that all of it but the volume
    was given back. Times are unix seconds.
    """

    resource_id: str
    framework_id: str
    task: str
    task_id: str
    agent_id: str
    hostname: str
    mesos_role: str
    confirmed: bool = False
    given_up: str = ""
    given_up_at: float = 0.0
    released_at: float = 0.0
    volume_only: bool = False

    @property
    def persistence_id(self) -> str:
        """Return the id of its volume: Mesos wants it to be unique on the agent."""
        return f"{self.task}.{self.resource_id}"
