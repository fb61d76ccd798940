"""The machines that may be bought for a service: their provider, and the limits.

Made by ``options.sections.capacity``; read by ``scheduler.machines.buying`` and by the providers.
The core keeps it with the other options and never looks into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.records import dataclass


class Billing(StrEnum):
    """Which piece of a machine's time is paid whole."""

    SECOND = "second"
    HOUR = "hour"


@dataclass(frozen=True)
class Ec2Spec:
    """Machines of Amazon EC2. Empty texts are the account's own defaults, or nothing at all."""

    region: str
    #: Another address than the region's own.
    endpoint_url: str = ""
    #: Id or name of a launch template; without one it is made of the fields below.
    launch_template: str = ""
    image_id: str = ""
    instance_profile: str = ""
    key_name: str = ""
    security_groups: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    #: Of the root volume; GB.
    disk_gb: int = 50
    #: Where a new machine's agent finds its master: ``zk://...`` or ``host:port``.
    master: str = ""
    #: Commands of a shell that install Mesos, where the image has none.
    install: str = ""
    #: What that agent is started with beside our own flags.
    agent_flags: str = ""
    #: On-demand, of one machine an hour, by instance type.
    prices: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CommandSpec:
    """Machines that an operator's own program starts and ends."""

    #: The program and its first arguments; a verb (``up``, ``down``, ``list``) comes behind them.
    cmd: tuple[str, ...]
    #: Longest time that one call may take.
    timeout_seconds: float = 300.0


@dataclass(frozen=True)
class CapacitySpec:
    """All of the section ``capacity``. None is no limit; times are seconds."""

    provider: Ec2Spec | CommandSpec
    max_instances: int | None = None
    #: Of all machines together.
    max_price_per_hour: float | None = None
    #: Money in all.
    budget: float | None = None
    #: Empty: any.
    zones: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    #: The resources that each machine must have.
    at_least: Resources = Resources()
    #: A gang's machines lie in one zone.
    one_zone: bool = True
    #: So many machines are on-demand whatever the market has.
    on_demand_base: int = 0
    #: Of one spot machine, an hour.
    max_spot_price: float | None = None
    #: A gang that has waited for spot machines for so long gets on-demand ones.
    spot_wait_seconds: float = 300.0
    #: After the job's first wish for a place; 0 for none.
    deadline_seconds: float = 0.0
    #: The same as a moment, in unix seconds; 0 for none.
    deadline_at: float = 0.0
    #: How many steps the job makes in all; 0: as it tells itself, if it does.
    total_steps: int = 0
    #: So long nothing of ours runs on a machine before it is given back.
    idle_seconds: float = 300.0
    #: So long a machine may take until its agent is known.
    register_seconds: float = 600.0
    billing: Billing = Billing.SECOND
