"""The options of machines that are bought for a service: the section ``capacity``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dcos_tensorflow.options.capacity_values import (
    Deadline,
    DiskGigabytes,
    MachineCount,
    MachineCountIfGiven,
    MoneyIfGiven,
    Prices,
)
from dcos_tensorflow.options.section import Section, group
from dcos_tensorflow.options.storage_values import EndpointUrl
from dcos_tensorflow.options.values import Count, Gpus, Line, Seconds, SomeSeconds, TextList


class AtLeast(Section):
    """What each machine must have."""

    cpus: Count = Field(0, title="CPUs", description="Least number of CPUs.")
    mem: Count = Field(0, title="Memory (MB)", description="Least memory.")
    gpus: Gpus = Field(0, title="GPUs", description="Least number of GPUs.")


class Ec2(Section):
    """Machines of Amazon EC2."""

    region: Line = Field("", title="Region", description="The region, such as eu-central-1.")
    endpoint_url: EndpointUrl = Field(
        "", title="Endpoint", description="Another address than the region's own."
    )
    launch_template: Line = Field(
        "",
        title="Launch template",
        description="Id or name of a launch template, used as it is: its machines must become "
        "agents by themselves. Empty: one is made of the options below.",
    )
    image_id: Line = Field("", title="Image", description="Id of the image (AMI) of the machines.")
    instance_profile: Line = Field(
        "", title="Instance profile", description="Name of what the machine itself may do."
    )
    key_name: Line = Field("", title="Key", description="Name of the key pair for SSH.")
    security_groups: TextList = Field(
        default=[], title="Security groups", description="Ids of the machines' security groups."
    )
    subnets: TextList = Field(
        default=[],
        title="Subnets",
        description="Ids; machines are bought in their zones alone. Empty: the default ones.",
    )
    disk_gb: DiskGigabytes = Field(50, title="Disk (GB)", description="Size of the root volume.")
    master: Line = Field(
        "",
        title="Master",
        description="Where a new machine's agent finds its master: zk://... or host:port.",
    )
    install: str = Field(
        "",
        title="Install",
        description="Commands of a shell that install Mesos on a new machine, where its image has "
        "none.",
    )
    agent_flags: Line = Field(
        "", title="Agent flags", description="More flags of that agent, as mesos-agent has them."
    )
    prices: Prices = Field(
        default={},
        title="Prices",
        description="What an on-demand machine costs an hour, by instance type. A type that is not "
        "there is bought on the spot market alone.",
    )


class MachinesCommand(Section):
    """Machines that an operator's own program starts and ends."""

    cmd: TextList = Field(
        default=[],
        title="Command",
        description="The program on the scheduler's machine and its first arguments; it is called "
        "with list, up or down behind them (docs/machines.md).",
    )
    timeout_seconds: SomeSeconds = Field(
        300.0, title="Timeout (seconds)", description="Longest time that one call may take."
    )


class Capacity(Section):
    """Machines that are bought when the job waits for them, and given back when it does not."""

    provider: Literal["", "ec2", "command"] = Field(
        "",
        title="Provider",
        description="Where machines come from: ec2, or a command of yours. Empty: none is bought.",
    )
    max_instances: MachineCountIfGiven = Field(
        None, title="Most machines", description="How many there may be at a time."
    )
    max_price_per_hour: MoneyIfGiven = Field(
        None, title="Most an hour", description="What all machines together may cost an hour."
    )
    budget: MoneyIfGiven = Field(
        None,
        title="Budget",
        description="What all machines of the service may cost in all. The job is ended in order "
        "before it is used up.",
    )
    max_spot_price: MoneyIfGiven = Field(
        None,
        title="Highest spot price",
        description="What one spot machine may cost an hour. Left out: the price on demand.",
    )
    zones: TextList = Field(
        default=[], title="Zones", description="Where machines may be. Empty: anywhere."
    )
    instance_types: TextList = Field(
        default=[],
        title="Instance types",
        description="Which machines may be bought. Empty: all that have what is needed.",
    )
    at_least: AtLeast = group(AtLeast, "What each machine must have.")
    one_zone: bool = Field(
        True,
        title="One zone",
        description="All machines of a gang are in one zone: traffic between zones is slow, and "
        "is paid.",
    )
    on_demand_base: MachineCount = Field(
        0,
        title="On-demand base",
        description="So many machines are on-demand ones whatever the market has.",
    )
    spot_wait_seconds: Seconds = Field(
        300.0,
        title="Wait for spot (seconds)",
        description="A gang that has waited for so long takes on-demand machines where the market "
        "has too few spot ones.",
    )
    deadline: Deadline = Field(
        "",
        title="Deadline",
        description="When the job must have ended: a number of seconds from its first wish for a "
        "machine, or a moment such as 2027-01-31T18:00:00Z. Spot machines are used as far as it "
        "stays safe (docs/capacity.md). Empty: none.",
    )
    total_steps: Count = Field(
        0,
        title="Steps in all",
        description="How many steps the job makes: with a deadline the work that is left is "
        "reckoned by it and by the measured pace. 0: by the epochs that the job tells, if it does.",
    )
    idle_seconds: Seconds = Field(
        300.0,
        title="Idle (seconds)",
        description="A machine on which no task has run for so long is given back.",
    )
    register_seconds: SomeSeconds = Field(
        600.0,
        title="Register (seconds)",
        description="A machine whose agent has not come within this time is given back.",
    )
    billing: Literal["second", "hour"] = Field(
        "second",
        title="Billing",
        description="Which piece of a machine's time is paid whole. By the hour an idle machine "
        "stays until shortly before the next one.",
    )
    ec2: Ec2 = group(Ec2, "Machines of Amazon EC2.")
    command: MachinesCommand = group(MachinesCommand, "Machines by a program of yours.")
