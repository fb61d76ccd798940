"""Machines that may be bought for a service: the section ``capacity``.

Its fields and their types, and their part of the ServiceSpec. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dcos_tensorflow.core.spec.capacity_spec import Billing, CapacitySpec, CommandSpec, Ec2Spec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.sections.section import Section, differing, group
from dcos_tensorflow.options.sections.storage import EndpointUrl
from dcos_tensorflow.options.sections.values import (
    MAXIMUM_COUNT,
    MAXIMUM_SECONDS,
    Allowed,
    Count,
    Gpus,
    Line,
    Seconds,
    SomeSeconds,
    TextList,
    given,
    object_from_text,
    problem,
    text_schema,
    whole,
)
from dcos_tensorflow.options.sections.workload_models import AUTO, given_inputs

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

_MAXIMUM_MONEY = 1_000_000_000.0


def deadline_of(text: str) -> tuple[float, float]:
    """Return a deadline as seconds from the beginning and as a moment; one of the two is 0.

    Raises ValueError.
    """
    if not text.strip():
        return 0.0, 0.0
    try:
        seconds = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            raise ValueError("it names no time zone") from None
        return 0.0, moment.timestamp()
    if not 0 < seconds <= MAXIMUM_SECONDS:
        raise ValueError(f"{text} is no number of seconds from 1 to {MAXIMUM_SECONDS:.0f}")
    return seconds, 0.0


def _as_text(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if is_number else value


def _deadline(value: str) -> str:
    try:
        deadline_of(value)
    except ValueError as error:
        raise problem(f"is no deadline: {error}") from None
    return value


Money = Annotated[float, Field(gt=0, le=_MAXIMUM_MONEY, allow_inf_nan=False)]
MoneyIfGiven = Annotated[Money | None, BeforeValidator(given)]
MachineCount = Annotated[int, Field(ge=0, le=MAXIMUM_COUNT), BeforeValidator(whole)]
MachineCountIfGiven = Annotated[
    Annotated[int, Field(ge=1, le=MAXIMUM_COUNT), BeforeValidator(whole)] | None,
    BeforeValidator(given),
]
DiskGigabytes = Annotated[int, Field(ge=8, le=16_384), BeforeValidator(whole)]
Deadline = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_deadline),
    Allowed("a number of seconds, a moment such as 2027-01-31T18:00:00Z, or empty text"),
]
Prices = Annotated[
    dict[str, Money],
    BeforeValidator(object_from_text),
    Field(json_schema_extra=text_schema),
    Allowed("an object of prices by instance type, or JSON text of one"),
]


class AtLeast(Section):
    """The resources that each machine must have."""

    cpus: Count = Field(0, title="CPUs", description="Least number of CPUs.")
    mem: Count = Field(0, title="Memory (MB)", description="Least memory.")
    gpus: Gpus = Field(0, title="GPUs", description="Least number of GPUs.")


class Ec2(Section):
    """Machines of Amazon EC2."""

    region: Line = Field("", title="Region", description="Region, such as eu-central-1.")
    endpoint_url: EndpointUrl = Field(
        "", title="Endpoint", description="Endpoint in place of the region's own."
    )
    launch_template: Line = Field(
        "",
        title="Launch template",
        description="Id or name of a launch template for machines that become agents by "
        "themselves. Empty: the service makes one from the options below.",
    )
    image_id: Line = Field("", title="Image", description="Id of the image (AMI) of the machines.")
    instance_profile: Line = Field(
        "",
        title="Instance profile",
        description="Name of the instance profile, which gives the machine its rights.",
    )
    key_name: Line = Field("", title="Key", description="Name of the key pair for SSH.")
    security_groups: TextList = Field(
        default=[], title="Security groups", description="Ids of the machines' security groups."
    )
    subnets: TextList = Field(
        default=[],
        title="Subnets",
        description="Ids of the subnets; machines are bought only in their zones. Empty: the "
        "default subnets.",
    )
    disk_gb: DiskGigabytes = Field(50, title="Disk (GB)", description="Size of the root volume.")
    master: Line = Field(
        "",
        title="Master",
        description="Address of the master for the agent of a new machine: zk://... or host:port.",
    )
    install: str = Field(
        "",
        title="Install",
        description="Shell commands that install Mesos on a new machine, if its image has none.",
    )
    agent_flags: Line = Field(
        "", title="Agent flags", description="Further flags of mesos-agent on a new machine."
    )
    prices: Prices = Field(
        default={},
        title="Prices",
        description="Price of an on-demand machine per hour, by instance type. A type without "
        "a price is bought only on the spot market.",
    )


class MachinesCommand(Section):
    """Machines that an operator's own program starts and ends."""

    cmd: TextList = Field(
        default=[],
        title="Command",
        description="Program on the scheduler's machine and its first arguments; the service "
        "adds list, up or down (docs/machines.md).",
    )
    timeout_seconds: SomeSeconds = Field(
        300.0, title="Timeout (seconds)", description="Longest time of one call."
    )


class Capacity(Section):
    """Machines that are bought when the job waits for them, and given back when it does not."""

    provider: Literal["", "ec2", "command"] = Field(
        "",
        title="Provider",
        description="Provider of machines: ec2, or a command of your own. Empty: the service "
        "buys none.",
    )
    max_instances: MachineCountIfGiven = Field(
        None, title="Most machines", description="Largest number of machines at a time."
    )
    max_price_per_hour: MoneyIfGiven = Field(
        None, title="Most an hour", description="Highest price per hour of all machines together."
    )
    budget: MoneyIfGiven = Field(
        None,
        title="Budget",
        description="Highest total cost of all machines of the service. Before it is used up, "
        "the service ends the job in order.",
    )
    max_spot_price: MoneyIfGiven = Field(
        None,
        title="Highest spot price",
        description="Highest price per hour of one spot machine. Left out: the on-demand price.",
    )
    zones: TextList = Field(
        default=[], title="Zones", description="Zones of the machines. Empty: all zones."
    )
    instance_types: TextList = Field(
        default=[],
        title="Instance types",
        description="Instance types that may be bought. Empty: all types that are large enough.",
    )
    at_least: AtLeast = group(AtLeast, "The resources that each machine must have.")
    one_zone: bool = Field(
        True,
        title="One zone",
        description="Keep all machines of a gang in one zone: traffic between zones is slow "
        "and costs money.",
    )
    on_demand_base: MachineCount = Field(
        0, title="On-demand base", description="Number of machines that are always on-demand ones."
    )
    spot_wait_seconds: Seconds = Field(
        300.0,
        title="Wait for spot (seconds)",
        description="Time after which a waiting gang takes on-demand machines for missing spot "
        "machines.",
    )
    deadline: Deadline = Field(
        "",
        title="Deadline",
        description="Time by which the job must end: a number of seconds since it first waited "
        "for a machine, or a moment such as 2027-01-31T18:00:00Z. The service uses spot "
        "machines as far as the deadline stays safe (docs/capacity.md). Empty: no deadline.",
    )
    total_steps: Count = Field(
        0,
        title="Steps in all",
        description="Number of steps of the job; with a deadline the service estimates the "
        "rest of the work from it and the measured pace. 0: from the epochs that the job "
        "reports.",
    )
    idle_seconds: Seconds = Field(
        300.0, title="Idle (seconds)", description="Time after which an idle machine is given back."
    )
    register_seconds: SomeSeconds = Field(
        600.0,
        title="Register (seconds)",
        description="Time within which the agent of a new machine must register; otherwise the "
        "machine is given back.",
    )
    billing: Literal["second", "hour"] = Field(
        "second",
        title="Billing",
        description="Billing period of a machine. With hour an idle machine stays until "
        "shortly before the next hour.",
    )
    ec2: Ec2 = group(Ec2, "Machines of Amazon EC2.")
    command: MachinesCommand = group(MachinesCommand, "Machines by a program of yours.")


def capacity_spec(options: Options) -> CapacitySpec | None:
    """Return what may be bought; None where nothing is."""
    given = options.capacity
    if not given.provider:
        return None
    seconds, moment = deadline_of(given.deadline)
    values = _values(given)
    for name in ("deadline", "ec2", "command"):
        del values[name]
    values |= {
        "provider": Ec2Spec(**_values(given.ec2))
        if given.provider == "ec2"
        else CommandSpec(**_values(given.command)),
        "at_least": Resources(**_values(given.at_least)),
        "deadline_seconds": seconds,
        "deadline_at": moment,
        "billing": Billing(given.billing),
    }
    return CapacitySpec(**values)


def _values(section: Section) -> dict[str, Any]:
    """Return the options of a section as the fields of the same names have them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in section}


def capacity_findings(options: Options) -> Iterator[Finding]:
    """Yield what is wrong with options about machines each of which is right in itself."""
    given = options.capacity
    if given.provider == "command" and not given.command.cmd:
        path = "capacity.command.cmd"
        yield Finding(path, "the provider command needs it", "a list of texts", ("capacity",))
    if given.provider == "ec2":
        yield from _ec2_findings(options)
    if not given.provider:
        return
    most = given.max_instances
    if most is not None and given.on_demand_base > most:
        path = "capacity.on_demand_base"
        yield Finding(path, f"is more than capacity.max_instances, {most}", looked_at=("capacity",))
    units = options.sweep if options.sweep.parameters else options.batch
    is_many = bool(options.sweep.parameters) or given_inputs(options)
    if is_many and given.deadline:
        told = "is for one job: the work left of a sweep or a batch is not known"
        yield Finding("capacity.deadline", told, looked_at=("capacity", "sweep", "batch"))
    limits = (most, given.max_price_per_hour, given.budget)
    if is_many and units.parallelism == AUTO and all(limit is None for limit in limits):
        group = "sweep" if options.sweep.parameters else "batch"
        yield Finding(
            "capacity.max_instances",
            f"with {group}.parallelism auto machines would be bought for all units at once: set it,"
            " capacity.max_price_per_hour, or capacity.budget",
            looked_at=("capacity", group),
        )


def _ec2_findings(options: Options) -> Iterator[Finding]:
    given = options.capacity.ec2
    missing = {"region": not given.region}
    if not given.launch_template:
        missing |= {"image_id": not given.image_id, "master": not given.master}
    for name, is_missing in missing.items():
        if is_missing:
            without = " without capacity.ec2.launch_template" if name != "region" else ""
            told = f"the provider ec2 needs it{without}"
            yield Finding(f"capacity.ec2.{name}", told, looked_at=("capacity",))


def idle_capacity(options: Options) -> Iterator[tuple[str, bool, str]]:
    """Yield the options about machines that may be idle: (path, is idle, why)."""
    given = options.capacity
    for name in differing(given) - {"provider", "ec2", "command", "total_steps"}:
        yield f"capacity.{name}", not given.provider, " without capacity.provider"
    yield "capacity.total_steps", not given.deadline, " without capacity.deadline"
    for name in ("ec2", "command"):
        idle = given.provider != name
        yield f"capacity.{name}", idle, f" unless capacity.provider is {name}"
    made = {"image_id", "instance_profile", "key_name", "security_groups", "disk_gb"}
    for name in sorted(made | {"master", "install", "agent_flags"}):
        why = " with capacity.ec2.launch_template"
        yield f"capacity.ec2.{name}", bool(given.ec2.launch_template), why
