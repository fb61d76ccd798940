"""What EC2 says of instances that carry our tags, as machines. Used by ``ec2``; asks nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from dcos_tensorflow.capacity.market import Market
from dcos_tensorflow.capacity.provider import Machine, MachineState

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
