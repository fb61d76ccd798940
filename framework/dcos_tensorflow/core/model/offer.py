"""An offer as the core sees it: the free resources of one agent for one Mesos role.

Built by ``mesos.wire.convert`` from the wire; the raw JSON stays there (an ACCEPT needs it again).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.records import dataclass

#: TEXT attributes are str, SCALAR ones float. RANGES and SET are rendered as text by mesos.convert.
AttributeValue = str | float


@dataclass(frozen=True)
class OfferedReservation:
    """What an offer holds of one labelled reservation, ours or another's.

    ``resources`` are the scalars beside the volumes, whose persistence ids are ``volumes``.
    """

    framework_id: str
    resource_id: str
    resources: Resources = Resources()
    ports: PortRanges = PortRanges()
    volumes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Offer:
    """One offer.

    ``resources`` and ``ports`` are there for any task. Of these, ``fixed`` and ``fixed_ports`` are
    reserved to our Mesos role by an operator, and cannot be reserved once more. ``reserved`` is
    what carries another framework's labels, ``mounts`` the sizes (MB) of whole disks that are free.

    ``address`` is the agent's IP: what peers dial. ``zone`` and ``region`` come from the fault
    domain. ``unavailable_from`` is the start of a maintenance window in unix seconds.
    ``received_at`` is the clock of the event that brought it.
    """

    offer_id: str
    agent_id: str
    hostname: str
    address: str
    mesos_role: str
    resources: Resources
    ports: PortRanges = PortRanges()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    zone: str | None = None
    region: str | None = None
    unavailable_from: float | None = None
    received_at: float = 0.0
    fixed: Resources = Resources()
    fixed_ports: PortRanges = PortRanges()
    reserved: tuple[OfferedReservation, ...] = ()
    mounts: tuple[float, ...] = ()
