"""Everything the core can ask for, as frozen values.

A Decision (``core.step``) carries them: the scheduler commits ``writes`` first, then performs
``actions`` in order: write before act.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from dcos_tensorflow.core.spec.container_spec import ResourceLimit, TaskSecret
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Container, NetworkAddresses, Uri, VirtualNetwork
from dcos_tensorflow.core.spec.storage_spec import CredentialsReference
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class ReservationOrder:
    """What a task is launched on: its reservation and its volume, made as far as needed.

    ``principal`` is the framework's. What the reservation holds beyond the task's wishes is given
    back.
    """

    resource_id: str
    framework_id: str
    mesos_role: str
    principal: str
    persistence_id: str
    volume: VolumeSpec


@dataclass(frozen=True)
class Vip:
    """A virtual address: one name and port for whichever tasks listen behind it."""

    prefix: str
    port: int

    @property
    def label(self) -> str:
        """Return the value of the port label that DC/OS makes the address of."""
        return f"{self.prefix}:{self.port}"


@dataclass(frozen=True)
class LaunchTask:
    """One task of an ACCEPT, complete but for the wire format.

    ``secret_env`` is sent as Mesos secrets of type VALUE, so that it shows in no task listing.
    ``credentials`` is where the scheduler finds what it adds to that when it sends the launch, and
    ``secret_values`` what it adds for the sources of ``secrets`` that it reads itself; the others
    are Mesos' to find.
    ``ports`` are where it listens: ports of the offer, unless ``network`` gives it an address of
    its own. ``vip`` is the virtual address of the first of them.
    """

    task_id: str
    name: str
    agent_id: str
    resources: Resources
    ports: tuple[int, ...]
    command: str
    env: Mapping[str, str]
    secret_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: CredentialsReference | None = None
    secrets: tuple[TaskSecret, ...] = ()
    secret_values: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    rlimits: tuple[ResourceLimit, ...] = ()
    shm_size: int = 0
    uris: tuple[Uri, ...] = ()
    container: Container | None = None
    user: str = ""
    kill_grace_seconds: float = 10.0
    labels: Mapping[str, str] = field(default_factory=dict)
    reservation: ReservationOrder | None = None
    network: VirtualNetwork | None = None
    vip: Vip | None = None

    @property
    def host_ports(self) -> tuple[int, ...]:
        """Return the ports of the agent that it takes: none where it has its own address."""
        network = self.network
        own = network is not None and network.addresses is NetworkAddresses.CONTAINER
        return () if own else self.ports


@dataclass(frozen=True)
class Accept:
    """Launch tasks on one agent, using offers of one Mesos role; the rest is declined by it."""

    offer_ids: tuple[str, ...]
    agent_id: str
    launches: tuple[LaunchTask, ...]
    refuse_seconds: float


@dataclass(frozen=True)
class Release:
    """Give back what an offer holds of these reservations (framework id, resource id).

    Volumes of ``everything`` are destroyed with everything in them; of ``but_volumes`` they stay.
    """

    offer_ids: tuple[str, ...]
    agent_id: str
    everything: tuple[tuple[str, str], ...]
    but_volumes: tuple[tuple[str, str], ...]
    refuse_seconds: float

    @property
    def resource_ids(self) -> tuple[str, ...]:
        """Return all resource ids."""
        return tuple(resource_id for _, resource_id in (*self.everything, *self.but_volumes))


@dataclass(frozen=True)
class Decline:
    """Hand offers back, not to be offered again for ``refuse_seconds``."""

    offer_ids: tuple[str, ...]
    refuse_seconds: float


@dataclass(frozen=True)
class AcceptInverse:
    """Say that the agents of these inverse offers will be left in time."""

    inverse_offer_ids: tuple[str, ...]


@dataclass(frozen=True)
class Suppress:
    """Ask for no more offers."""

    mesos_roles: tuple[str, ...]


@dataclass(frozen=True)
class Revive:
    """Ask for offers again, and drop all filters."""

    mesos_roles: tuple[str, ...]


@dataclass(frozen=True)
class Kill:
    """Ask for a task's end: SIGTERM, and SIGKILL ``grace_seconds`` later."""

    task_id: str
    agent_id: str
    grace_seconds: float


@dataclass(frozen=True)
class Reconcile:
    """Ask for the state of tasks (task id, agent id); empty means implicit: all of them."""

    tasks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Acknowledge:
    """Tell the agent that an update was handled; always the last of a Decision."""

    agent_id: str
    task_id: str
    uuid: str


@dataclass(frozen=True)
class CollectEvidence:
    """Read from an ended task's sandbox why it ended; answered by EvidenceFound."""

    task_id: str
    agent_id: str


@dataclass(frozen=True)
class UnitsWanted:
    """Ask the producer for units of work, ``count`` from ``first`` on; answered by UnitsGiven.

    It is asked again when nothing comes, and when a unit has ended since: it may have nothing to
    give before that.
    """

    first: int
    count: int


@dataclass(frozen=True)
class UnitEnded:
    """Tell the producer that a unit is decided. What became of it is kept by then."""

    number: int


@dataclass(frozen=True)
class CapacityKept:
    """Tell the sender of CapacityNoted that what it noted is kept: it may act on it."""

    number: int


@dataclass(frozen=True)
class ReleaseIdleMachines:
    """Have the bought machines given back on which nothing runs, however short."""


@dataclass(frozen=True)
class Teardown:
    """Remove the framework and kill all its tasks. Only an explicit uninstall, or a finished
    run of ``dcos-tensorflow run``, ever asks for this."""


@dataclass(frozen=True)
class EraseState:
    """Forget the service: every value it has in the state store. The last act of an uninstall."""


@dataclass(frozen=True)
class Resubscribe:
    """Subscribe as a new framework: the master has removed the one that we were."""


@dataclass(frozen=True)
class Exit:
    """End the scheduler process. Tasks are left alone."""

    code: int
    message: str


Action = (
    Accept
    | Release
    | Decline
    | AcceptInverse
    | Suppress
    | Revive
    | Kill
    | Reconcile
    | Acknowledge
    | CollectEvidence
    | UnitsWanted
    | UnitEnded
    | CapacityKept
    | ReleaseIdleMachines
    | Teardown
    | EraseState
    | Resubscribe
    | Exit
)


@dataclass(frozen=True)
class Write:
    """One value of the state store; ``value`` None deletes. Paths are below the service's root."""

    path: str
    value: bytes | None
