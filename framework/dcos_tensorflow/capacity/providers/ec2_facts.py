"""Answers of EC2 as pools and machines: instance types, their zones and prices, our instances.

Used by ``ec2``. Types and zones change with years and are read once; spot prices are those of now.
On-demand prices come from the operator: the API that tells them is another service, in another
region, and knows nothing of an account's contract with AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.provider import Machine, MachineState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.records import dataclass

#: More values no filter takes (EC2, "Filtering": 200).
_MOST_VALUES = 200
#: More types are not described by name in one call (EC2, DescribeInstanceTypes).
_MOST_NAMED = 100
#: What Linux and its firmware keep of the memory, as a share: the rest an agent sees.
_SYSTEM_SHARE = 0.05
#: What a Mesos agent leaves to the system, of memory and of disk (MB), where it has twice as much;
#: else it takes half (Mesos, src/slave/containerizer/containerizer.cpp).
_AGENT_KEEPS_MEM = 1024.0
_AGENT_KEEPS_DISK = 5120.0
#: A file system has no more of its volume than this share.
_FILE_SYSTEM_SHARE = 0.93


@dataclass(frozen=True)
class Ec2Facts:
    """What changes with years."""

    #: What an agent on a machine offers, by instance type.
    resources: Mapping[str, Resources]
    #: Which types there are, by zone.
    offered: Mapping[str, frozenset[str]]


def read_facts(
    client: Any, wanted: frozenset[str], zones: frozenset[str], disk_gb: int
) -> Ec2Facts:
    """Return types and zones; nothing wanted is anything that runs x86_64 programs, and any zone.

    Raises botocore's errors.
    """
    resources = {
        item["InstanceType"]: resources_of(item, disk_gb) for item in _types(client, wanted)
    }
    offered: dict[str, set[str]] = {}
    filters = []
    if wanted and len(wanted) <= _MOST_VALUES:
        filters = [{"Name": "instance-type", "Values": sorted(wanted)}]
    pages = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone", Filters=filters
    )
    for page in pages:
        for item in page["InstanceTypeOfferings"]:
            if item["InstanceType"] in resources and (not zones or item["Location"] in zones):
                offered.setdefault(item["Location"], set()).add(item["InstanceType"])
    return Ec2Facts(resources, {zone: frozenset(types) for zone, types in offered.items()})


def _types(client: Any, wanted: frozenset[str]) -> Iterator[Mapping[str, Any]]:
    pages = client.get_paginator("describe_instance_types")
    if not wanted:
        filters = {"bare-metal": "false", "processor-info.supported-architecture": "x86_64"}
        asked = [{"Name": name, "Values": [value]} for name, value in filters.items()]
        for page in pages.paginate(Filters=asked):
            yield from page["InstanceTypes"]
    names = sorted(wanted)
    for first in range(0, len(names), _MOST_NAMED):
        for page in pages.paginate(InstanceTypes=names[first : first + _MOST_NAMED]):
            yield from page["InstanceTypes"]


def resources_of(item: Mapping[str, Any], disk_gb: int) -> Resources:
    """Return what an agent on such a machine offers: rather too little than too much.

    A machine on which a task does not fit after all would be bought for nothing.
    """
    gpus = sum(gpu.get("Count", 0) for gpu in (item.get("GpuInfo") or {}).get("Gpus", ()))
    mem = item["MemoryInfo"]["SizeInMiB"] * (1 - _SYSTEM_SHARE)
    disk = disk_gb * 1024 * _FILE_SYSTEM_SHARE
    return Resources(
        cpus=float(item["VCpuInfo"]["DefaultVCpus"]),
        mem=float(int(_left_by_agent(mem, _AGENT_KEEPS_MEM))),
        disk=float(int(_left_by_agent(disk, _AGENT_KEEPS_DISK))),
        gpus=gpus,
    )


def _left_by_agent(there: float, keeps: float) -> float:
    return there - keeps if there > 2 * keeps else there / 2


def read_pools(client: Any, facts: Ec2Facts, on_demand: Mapping[str, float]) -> tuple[Pool, ...]:
    """Return what can be bought from now. Raises botocore's errors."""
    spot = _spot_prices(client, facts)
    found = []
    for zone in sorted(facts.offered):
        for kind in sorted(facts.offered[zone]):
            has = facts.resources[kind]
            prices = (Market.SPOT, spot.get((kind, zone))), (Market.ON_DEMAND, on_demand.get(kind))
            found += [Pool(kind, zone, m, price, has) for m, price in prices if price is not None]
    return tuple(found)


def _spot_prices(client: Any, facts: Ec2Facts) -> dict[tuple[str, str], float]:
    named = {}
    if len(facts.resources) <= _MOST_NAMED:
        named = {"InstanceTypes": sorted(facts.resources)}
    # From now on: the price in force for each, and no history (EC2, DescribeSpotPriceHistory).
    pages = client.get_paginator("describe_spot_price_history").paginate(
        StartTime=datetime.now(UTC),
        ProductDescriptions=["Linux/UNIX", "Linux/UNIX (Amazon VPC)"],
        **named,
    )
    newest: dict[tuple[str, str], tuple[datetime, float]] = {}
    for page in pages:
        for item in page["SpotPriceHistory"]:
            key = item["InstanceType"], item["AvailabilityZone"]
            told = item["Timestamp"], float(item["SpotPrice"])
            newest[key] = max(told, newest.get(key, told))
    return {key: price for key, (_, price) in newest.items()}


OWNER_TAG = "dcos-tensorflow:owner"
PURCHASE_TAG = "dcos-tensorflow:purchase"
#: What a machine costs an hour at most; the agent tells it as an attribute.
PRICE_TAG = "dcos-tensorflow:price"

_STATES = {
    "pending": MachineState.STARTING,
    "running": MachineState.RUNNING,
    "terminated": MachineState.ENDED,
}
#: EC2 itself has taken a spot machine back (EC2 User Guide, "State reason codes").
_TAKEN_BACK = frozenset({"Server.SpotInstanceShutdown", "Server.SpotInstanceTermination"})
#: When a user ended an instance: "User initiated (2026-03-01 10:20:30 GMT)".
_ENDED = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")


def told_at(answer: Mapping[str, Any]) -> float:
    """Return EC2's time of an answer (unix seconds): its header has it, and nothing else."""
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    return parsedate_to_datetime(headers["date"]).timestamp()


def machine_of(item: Mapping[str, Any], at: float) -> Machine:
    """Return an instance as EC2 described it ``at`` (unix seconds, EC2's)."""
    tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags", ())}
    names = ("PrivateDnsName", "PrivateIpAddress", "PublicDnsName", "PublicIpAddress")
    spot = item.get("InstanceLifecycle") == "spot"
    reason = item.get("StateReason") or {}
    return Machine(
        item["InstanceId"],
        tags.get(PURCHASE_TAG, ""),
        tags.get(OWNER_TAG, ""),
        item["InstanceType"],
        item["Placement"]["AvailabilityZone"],
        Market.SPOT if spot else Market.ON_DEMAND,
        _STATES.get(item["State"]["Name"], MachineState.ENDING),
        item["LaunchTime"].timestamp(),
        tuple(item[name] for name in names if item.get(name)),
        reason.get("Code", ""),
        ended_at=_ended_at(item),
        told_at=at,
        taken_back=reason.get("Code") in _TAKEN_BACK,
    )


def _ended_at(item: Mapping[str, Any]) -> float:
    """Return when an instance was ended (unix seconds), where EC2 says: 0 where it does not."""
    found = _ENDED.search(item.get("StateTransitionReason") or "")
    return datetime.fromisoformat(f"{found[1]}+00:00").timestamp() if found else 0.0
