"""Machines on EC2, by its own engine: one instant fleet for each order.

EC2 chooses among an order's pools by its knowledge of the market (``price-capacity-optimized``); no
price is watched here. The purchase id is the call's token, and instances carry it as a tag from the
call on that makes them, so that none is ever without. ``docs/machines.md`` has the permissions.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.provider import (
    Bought,
    Denied,
    Machine,
    MachineState,
    ProviderError,
    PurchaseOrder,
    Throttled,
)
from dcos_tensorflow.capacity.providers.agent_script import user_data
from dcos_tensorflow.capacity.providers.ec2_facts import (
    OWNER_TAG,
    PRICE_TAG,
    PURCHASE_TAG,
    Ec2Facts,
    machine_of,
    read_facts,
    read_pools,
    told_at,
)
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.spec.capacity_spec import Ec2Spec

#: Refused for our rights: nothing changes before an operator does something.
_DENIALS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "InvalidClientTokenId",
        "OptInRequired",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
#: What EC2 says of a call that was signed at another time than it is there: "RequestExpired", or
#: one of the codes of a signature that is wrong.
_UNTIMELY = frozenset({"RequestExpired", "SignatureDoesNotMatch", "AuthFailure"})
#: It allows for as much (AWS, "Troubleshoot SigV4 signing"; seconds).
_SKEW_SECONDS = 300.0
#: Too many calls; the client itself has slowed down and tried again before one of these is seen.
_THROTTLES = frozenset(
    {
        "RequestLimitExceeded",
        "RequestThrottled",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
#: The market has nothing, or the account's limits let us have no more: others may be tried.
_SHORTAGES = frozenset(
    {
        "InstanceLimitExceeded",
        "InsufficientCapacity",
        "InsufficientFreeAddressesInSubnet",
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "SpotMaxPriceTooLow",
        "UnfulfillableCapacity",
        "Unsupported",
        "VcpuLimitExceeded",
    }
)
#: How EC2 names what a client may not do.
_ACTION = re.compile(r"not authorized to perform: ([a-z0-9-]+:\w+)")
_NOT_FOUND = "InvalidInstanceID.NotFound"
#: Ids in one call to end instances: a refused one concerns no others.
_MOST_ENDED = 100


class Ec2Provider:
    """A ``Provider`` of the instances of ``owner``; ``client`` is boto3's, else one is made.

    Without ``instance_types`` all that run x86_64 programs can be bought, but for bare metal.
    Raises Denied where EC2 would not take what a machine is to run first.
    """

    def __init__(
        self, spec: Ec2Spec, owner: str, instance_types: Collection[str] = (), client: Any = None
    ) -> None:
        self._spec = spec
        self._owner = owner
        self._instance_types = frozenset(instance_types)
        self._first = "" if spec.launch_template else user_data(spec)
        self._given = client
        self._known_facts: Ec2Facts | None = None
        self._subnets: dict[str, str] | None = None
        self._template: dict[str, str] | None = None

    def pools(self) -> Sequence[Pool]:
        """Return what can be bought from, with the spot prices of now."""
        with _told():
            if self._known_facts is None:
                zones = frozenset(self._zones().values())
                self._known_facts = read_facts(
                    self._client, self._instance_types, zones, self._spec.disk_gb
                )
            return read_pools(self._client, self._known_facts, self._spec.prices)

    def buy(self, order: PurchaseOrder) -> Bought:
        """Ask for a fleet of the order's machines; the token makes it the same fleet each time."""
        with _told():
            try:
                answer = self._client.create_fleet(**self._fleet(order))
            except ClientError as error:
                code = _code(error)
                if code == "IdempotentParameterMismatch":
                    # It was bought with other words, by an earlier release: what came of it counts.
                    there = [m for m in self.machines() if m.purchase_id == order.purchase_id]
                    return Bought(tuple(there), _missing(order, len(there), ()))
                if code in _SHORTAGES:
                    return Bought((), _missing(order, 0, (f"{code}: {_message(error)}",)))
                raise
        machines = tuple(self._bought(answer, order))
        errors = answer.get("Errors", ())
        denied = [one for one in errors if one.get("ErrorCode") in _DENIALS]
        if denied and not machines:
            # A fleet starts instances in our name, and tells of it so.
            raise _denied("ec2:RunInstances", denied[0]["ErrorCode"], denied[0]["ErrorMessage"])
        return Bought(machines, _missing(order, len(machines), _reasons(errors)))

    def machines(self) -> Sequence[Machine]:
        """Return the owner's instances; EC2 shows one that has ended for about an hour."""
        ours = [
            {
                "Name": f"tag:{OWNER_TAG}",
                "Values": [f"{self._owner}*" if self._owner.endswith(".") else self._owner],
            }
        ]
        with _told():
            pages = self._client.get_paginator("describe_instances").paginate(Filters=ours)
            return [
                machine_of(item, told_at(page))
                for page in pages
                for reservation in page["Reservations"]
                for item in reservation["Instances"]
            ]

    def give_back(self, machine_ids: Collection[str]) -> None:
        """Terminate instances, those that EC2 knows of."""
        ids = sorted(machine_ids)
        for first in range(0, len(ids), _MOST_ENDED):
            with _told():
                self._terminate(ids[first : first + _MOST_ENDED])

    def _terminate(self, ids: list[str]) -> None:
        try:
            self._client.terminate_instances(InstanceIds=ids)
        except ClientError as error:
            if _code(error) != _NOT_FOUND:
                raise
            # One that EC2 has forgotten keeps it from ending the others.
            for one in ids if len(ids) > 1 else ():
                self._terminate([one])

    @property
    def _client(self) -> Any:
        if self._given is None:
            # Adaptive: the client slows down by itself where EC2 throttles it.
            config = Config(retries={"mode": "adaptive", "total_max_attempts": 6}, read_timeout=60)
            self._given = boto3.session.Session().client(
                "ec2",
                region_name=self._spec.region,
                endpoint_url=self._spec.endpoint_url or None,
                config=config,
            )
        return self._given

    # -- an order in EC2's words ---------------------------------------------------------------

    def _fleet(self, order: PurchaseOrder) -> dict[str, Any]:
        market = order.pools[0].market
        strategy = {"AllocationStrategy": "price-capacity-optimized"}
        options: dict[str, Any] = {"SpotOptions": strategy}
        if market is Market.ON_DEMAND:
            options = {"OnDemandOptions": {"AllocationStrategy": "prioritized"}}
        config = {
            "LaunchTemplateSpecification": self._launch_template(),
            "Overrides": list(self._overrides(order)),
        }
        return {
            "Type": "instant",
            "ClientToken": order.purchase_id,
            "LaunchTemplateConfigs": [config],
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": order.count,
                "DefaultTargetCapacityType": str(market),
            },
            "TagSpecifications": [{"ResourceType": "instance", "Tags": _tags(order)}],
            **options,
        }

    def _overrides(self, order: PurchaseOrder) -> Iterator[dict[str, Any]]:
        subnet_of = {zone: subnet for subnet, zone in self._zones().items()}
        for rank, pool in enumerate(order.pools):
            place = {"AvailabilityZone": pool.zone}
            if pool.zone in subnet_of:
                place = {"SubnetId": subnet_of[pool.zone]}
            override = {"InstanceType": pool.instance_type, **place, "Priority": float(rank)}
            if order.max_price is not None and pool.market is Market.SPOT:
                override["MaxPrice"] = f"{order.max_price:.5f}"
            yield override

    def _zones(self) -> Mapping[str, str]:
        if self._subnets is None:
            self._subnets = {}
            if self._spec.subnets:
                answer = self._client.describe_subnets(SubnetIds=list(self._spec.subnets))
                self._subnets = {s["SubnetId"]: s["AvailabilityZone"] for s in answer["Subnets"]}
        return self._subnets

    def _launch_template(self) -> dict[str, str]:
        """Return the launch template to use; one of ours is made where it is not there yet."""
        if self._template is None:
            given = self._spec.launch_template
            kind = "LaunchTemplateId" if given.startswith("lt-") else "LaunchTemplateName"
            name = given or self._make_template()
            self._template = {kind: name, "Version": "$Default"}
        return self._template

    def _make_template(self) -> str:
        """Make a launch template whose name says what is in it: it never changes."""
        images = self._client.describe_images(ImageIds=[self._spec.image_id])["Images"]
        if not images:
            # EC2 leaves out without an error what was taken back from this account.
            raise ProviderError(f"EC2 has no image {self._spec.image_id} for this account")
        data = template_data(self._spec, self._first, images[0]["RootDeviceName"])
        digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
        name = f"dcos-tensorflow-{digest[:16]}"
        try:
            self._client.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        except ClientError as error:
            if _code(error) != "InvalidLaunchTemplateName.AlreadyExistsException":
                raise
        return name

    def _bought(self, answer: Mapping[str, Any], order: PurchaseOrder) -> Iterator[Machine]:
        zones = self._zones()
        now = told_at(answer)
        for group in answer.get("Instances", ()):
            override = group.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
            zone = override.get("AvailabilityZone") or zones.get(override.get("SubnetId", ""), "")
            for instance_id in group["InstanceIds"]:
                yield Machine(
                    instance_id,
                    order.purchase_id,
                    order.owner,
                    group["InstanceType"],
                    zone,
                    Market(group["Lifecycle"]),
                    MachineState.STARTING,
                    started_at=now,
                    told_at=now,
                )


def template_data(spec: Ec2Spec, first: str, root_device: str) -> dict[str, Any]:
    """Return a launch template in EC2's words; ``first`` is what a machine runs first."""
    volume = {"VolumeSize": spec.disk_gb, "VolumeType": "gp3", "DeleteOnTermination": True}
    data = {
        "ImageId": spec.image_id,
        "KeyName": spec.key_name,
        "SecurityGroupIds": list(spec.security_groups),
        "UserData": base64.b64encode(first.encode()).decode(),
        "BlockDeviceMappings": [{"DeviceName": root_device, "Ebs": volume}],
        # A machine that shuts itself down is gone, and costs nothing.
        "InstanceInitiatedShutdownBehavior": "terminate",
        # Tokens alone (IMDSv2), also from within a container; the agent reads its tags there.
        "MetadataOptions": {
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 2,
            "InstanceMetadataTags": "enabled",
        },
    }
    if spec.instance_profile:
        data["IamInstanceProfile"] = {"Name": spec.instance_profile}
    return {name: value for name, value in data.items() if value}


def _tags(order: PurchaseOrder) -> list[dict[str, str]]:
    price = max(pool.price for pool in order.pools)
    tags = {
        OWNER_TAG: order.owner,
        PURCHASE_TAG: order.purchase_id,
        PRICE_TAG: f"{price:g}",
        "Name": order.owner,
    }
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _reasons(errors: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return why a fleet is not whole, each reason once."""
    told = (f"{one.get('ErrorCode', '')}: {one.get('ErrorMessage', '')}" for one in errors)
    return tuple(dict.fromkeys(told))


def _missing(order: PurchaseOrder, count: int, reasons: Sequence[str]) -> str:
    if count >= order.count:
        return ""
    why = "; ".join(reasons)
    told = f"{count} of {counted(order.count, 'machine')} could be had"
    return f"{told}: {why}" if why else told


@contextmanager
def _told() -> Iterator[None]:
    """Turn botocore's errors into those of a provider."""
    try:
        yield
    except ClientError as error:
        code, action = _code(error), f"ec2:{error.operation_name}"
        if code in _UNTIMELY and (off := _clock_off(error)):
            raise Denied(f"EC2 refuses {action}: {off}") from None
        if code in _DENIALS:
            raise _denied(action, code, _message(error)) from None
        if code in _THROTTLES:
            raise Throttled(f"EC2 throttles {action}: {_message(error)}") from None
        raise ProviderError(f"{action} failed: {code}: {_message(error)}") from None
    except NoCredentialsError:
        raise Denied("there are no credentials for EC2") from None
    except BotoCoreError as error:
        raise ProviderError(f"EC2 cannot be asked: {error}") from None


def _clock_off(error: ClientError) -> str:
    """Return by how much this machine's clock is off, if that is why a call was refused."""
    try:
        ahead = time.time() - told_at(error.response)
    except (KeyError, ValueError):
        return ""
    if abs(ahead) < _SKEW_SECONDS:
        return ""
    way = "ahead of" if ahead > 0 else "behind"
    return f"the clock of this machine is {abs(ahead) / 60:.0f} minutes {way} EC2's"


def _denied(action: str, code: str, message: str) -> Denied:
    """Return the error that names the permission which is missing: a call may need several."""
    named = _ACTION.search(message)
    return Denied(f"EC2 refuses {named[1] if named else action}: {code}: {message}")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _message(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))
