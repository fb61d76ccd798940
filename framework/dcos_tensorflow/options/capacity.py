"""Which machines may be bought, of the options. Called by ``service``; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dcos_tensorflow.core.spec.capacity_spec import (
    Billing,
    CapacitySpec,
    CommandSpec,
    Ec2Spec,
)
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.options.capacity_values import deadline_of
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.section import differing
from dcos_tensorflow.options.workload_checks import given_inputs
from dcos_tensorflow.options.workload_values import AUTO


def capacity_spec(options: Options) -> CapacitySpec | None:
    """Return what may be bought; None where nothing is."""
    given = options.capacity
    if not given.provider:
        return None
    seconds, moment = deadline_of(given.deadline)
    least = given.at_least
    return CapacitySpec(
        provider=_ec2(options) if given.provider == "ec2" else _command(options),
        max_instances=given.max_instances,
        max_price_per_hour=given.max_price_per_hour,
        budget=given.budget,
        zones=tuple(given.zones),
        instance_types=tuple(given.instance_types),
        at_least=Resources(cpus=least.cpus, mem=least.mem, gpus=least.gpus),
        one_zone=given.one_zone,
        on_demand_base=given.on_demand_base,
        max_spot_price=given.max_spot_price,
        spot_wait_seconds=given.spot_wait_seconds,
        deadline_seconds=seconds,
        deadline_at=moment,
        total_steps=given.total_steps,
        idle_seconds=given.idle_seconds,
        register_seconds=given.register_seconds,
        billing=Billing(given.billing),
    )


def _ec2(options: Options) -> Ec2Spec:
    """Return the spec: its fields are the options of the same names."""
    given: dict[str, Any] = options.capacity.ec2.model_dump()
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return Ec2Spec(**{**given, **lists})


def _command(options: Options) -> CommandSpec:
    given = options.capacity.command
    return CommandSpec(tuple(given.cmd), given.timeout_seconds)


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
