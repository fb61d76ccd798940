"""Machines on EC2: what is bought, found and ended, and each way in which EC2 refuses.

What moto's fleets lack is added by ``ec2_server``; that EC2 chooses among pools by price and room
is EC2's, and nothing here shows it.
"""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.provider import (
    Denied,
    MachineState,
    ProviderError,
    PurchaseOrder,
    Throttled,
)
from dcos_tensorflow.capacity.providers.agent_script import user_data
from dcos_tensorflow.capacity.providers.ec2 import Ec2Provider
from dcos_tensorflow.core.spec.capacity_spec import Ec2Spec
from dcos_tensorflow.core.spec.resources import Resources
from servers.ec2_server import KEY_ID, REGION, SECRET_KEY, Ec2Server, Refusal

POLICY = Path(__file__).parents[3] / "docs" / "iam-capacity.json"
ZONES = ("us-east-1a", "us-east-1b")
TYPES = ("c5.large", "g4dn.xlarge")
KIND = Resources(cpus=2, mem=2867, disk=43_000)
POOL = Pool("c5.large", ZONES[0], Market.SPOT, 0.03, KIND)
#: What a fleet does in the name of its caller; no client calls it.
OF_A_FLEET = {"RunInstances", "CreateTags", "PassRole"}


@pytest.fixture(scope="module")
def running() -> Iterator[Ec2Server]:
    made = Ec2Server()
    yield made
    made.close()


@pytest.fixture
def ec2(running: Ec2Server) -> Ec2Server:
    """The server, without orders of failures."""
    running.refusal = lambda action, fields: None
    running.room, running.stale, running.loses_answer = None, 0, False
    running.calls.clear()
    return running


@pytest.fixture(scope="module")
def spec(running: Ec2Server) -> Ec2Spec:
    subnets = running.client.describe_subnets(
        Filters=[{"Name": "availability-zone", "Values": list(ZONES)}]
    )["Subnets"]
    image = running.client.describe_images()["Images"][0]["ImageId"]
    return Ec2Spec(
        REGION,
        image_id=image,
        subnets=tuple(subnet["SubnetId"] for subnet in subnets),
        prices={"c5.large": 0.085},
        master="10.0.0.1:5050",
    )


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> str:
    """The owner of what a test buys: the server keeps it."""
    return str(request.node.name)


@pytest.fixture
def provider(ec2: Ec2Server, spec: Ec2Spec, owner: str) -> Ec2Provider:
    return Ec2Provider(spec, owner, TYPES, ec2.client)


def order(owner: str, *pools: Pool, count: int = 2, number: int = 1) -> PurchaseOrder:
    return PurchaseOrder(f"{owner[:50]}-{number}", owner, pools or (POOL,), count)


def instance_of(ec2: Ec2Server, machine_id: str) -> dict[str, object]:
    answer = ec2.client.describe_instances(InstanceIds=[machine_id])
    found: dict[str, object] = answer["Reservations"][0]["Instances"][0]
    return found


def test_pools_are_types_in_the_zones_of_the_subnets(provider: Ec2Provider) -> None:
    pools = provider.pools()
    # moto's spot prices are all the same; on-demand ones come from the operator.
    assert {pool.key for pool in pools} == {
        *((kind, zone, Market.SPOT) for kind in TYPES for zone in ZONES),
        *(("c5.large", zone, Market.ON_DEMAND) for zone in ZONES),
    }
    assert {pool.price for pool in pools if pool.market is Market.ON_DEMAND} == {0.085}
    gpu = next(pool.resources for pool in pools if pool.instance_type == "g4dn.xlarge")
    assert (gpu.cpus, gpu.gpus) == (4, 1)
    # 16 GiB less what Linux and the agent keep: too little is safe, too much is bought in vain.
    assert 14_000 < gpu.mem < 15_360
    assert 40_000 < gpu.disk < 47_000


@pytest.mark.soak
def test_without_types_all_that_run_our_programs_are_there(ec2: Ec2Server, spec: Ec2Spec) -> None:
    provider = Ec2Provider(spec, "job", client=ec2.client)
    kinds = {pool.instance_type for pool in provider.pools()}
    assert "m5.large" in kinds
    assert not {kind for kind in kinds if kind.startswith(("m6g.", "t4g."))}
    assert not {kind for kind in kinds if kind.endswith(".metal")}


@pytest.mark.parametrize("market", list(Market))
def test_an_order_is_one_fleet_with_tags(
    ec2: Ec2Server, provider: Ec2Provider, owner: str, market: Market
) -> None:
    pools = [replace(POOL, market=market, zone=ZONES[1])]
    bought = provider.buy(replace(order(owner, *pools), max_price=0.05))
    assert len(bought.machines) == 2
    assert bought.missing == ""
    found = provider.machines()
    assert {m.machine_id for m in found} == {m.machine_id for m in bought.machines}
    for machine in (*bought.machines, *found):
        assert machine.purchase_id == order(owner).purchase_id
        assert (machine.owner, machine.instance_type) == (owner, "c5.large")
        assert (machine.zone, machine.market) == (ZONES[1], market)
    assert {m.state for m in bought.machines} == {MachineState.STARTING}
    assert {m.state for m in found} == {MachineState.RUNNING}
    assert all(m.hostnames for m in found)
    assert abs(found[0].started_at - bought.machines[0].started_at) < 60
    fleet = next(fields for action, fields in ec2.calls if action == "CreateFleet")
    asked = "LaunchTemplateConfigs.1.Overrides.1.MaxPrice"
    if market is Market.SPOT:
        assert fleet["SpotOptions.AllocationStrategy"] == "price-capacity-optimized"
        assert fleet[asked] == "0.05000"
    else:
        assert fleet["OnDemandOptions.AllocationStrategy"] == "prioritized"
        assert asked not in fleet


def test_an_order_of_several_pools_is_one_call_and_what_came_is_told(
    ec2: Ec2Server, provider: Ec2Provider, owner: str
) -> None:
    dearer = replace(POOL, instance_type="g4dn.xlarge", price=0.05)
    elsewhere = replace(POOL, zone=ZONES[1], price=0.04)
    bought = provider.buy(order(owner, POOL, elsewhere, dearer, count=3))
    (fleet,) = (fields for action, fields in ec2.calls if action == "CreateFleet")
    asked = "LaunchTemplateConfigs.1.Overrides.{}.{}"
    kinds = [fleet[asked.format(number, "InstanceType")] for number in (1, 2, 3)]
    subnets = [fleet[asked.format(number, "SubnetId")] for number in (1, 2, 3)]
    assert kinds == ["c5.large", "c5.large", "g4dn.xlarge"]
    assert subnets[0] == subnets[2] != subnets[1]
    assert fleet["SpotOptions.AllocationStrategy"] == "price-capacity-optimized"
    listed = {m.machine_id: m for m in provider.machines()}
    assert len(listed) == len(bought.machines) == 3
    for machine in bought.machines:
        known = listed[machine.machine_id]
        assert (machine.instance_type, machine.zone) == (known.instance_type, known.zone)
    # What a machine tells of its price is the most that it may cost.
    told = instance_of(ec2, bought.machines[0].machine_id)["Tags"]
    assert {"Key": "dcos-tensorflow:price", "Value": "0.05"} in told  # type: ignore[operator]


def test_a_machine_begins_with_the_user_data(
    ec2: Ec2Server, spec: Ec2Spec, provider: Ec2Provider, owner: str
) -> None:
    provider.buy(order(owner))
    name = next(f["LaunchTemplateName"] for a, f in ec2.calls if a == "CreateLaunchTemplate")
    told = ec2.client.describe_launch_template_versions(LaunchTemplateName=name)
    data = told["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    assert base64.b64decode(data["UserData"]).decode() == user_data(spec)
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    assert data["MetadataOptions"]["InstanceMetadataTags"] == "enabled"


def test_an_operators_launch_template_is_used_as_it_is(
    ec2: Ec2Server, spec: Ec2Spec, owner: str
) -> None:
    data = {"ImageId": spec.image_id}
    ec2.client.create_launch_template(LaunchTemplateName="operators", LaunchTemplateData=data)
    ec2.calls.clear()
    provider = Ec2Provider(replace(spec, launch_template="operators"), owner, TYPES, ec2.client)
    assert len(provider.buy(order(owner)).machines) == 2
    assert "CreateLaunchTemplate" not in ec2.actions()


def test_the_same_order_asked_twice_buys_once(ec2: Ec2Server, spec: Ec2Spec, owner: str) -> None:
    first = Ec2Provider(spec, owner, TYPES, ec2.client).buy(order(owner))
    # Another process, after a crash.
    again = Ec2Provider(spec, owner, TYPES, ec2.client).buy(order(owner))
    assert [m.machine_id for m in again.machines] == [m.machine_id for m in first.machines]
    assert len(Ec2Provider(spec, owner, TYPES, ec2.client).machines()) == 2


def test_an_order_whose_answer_was_lost_buys_once(
    ec2: Ec2Server, provider: Ec2Provider, owner: str
) -> None:
    ec2.loses_answer = True
    with pytest.raises(ProviderError, match="ec2:CreateFleet failed: InternalError"):
        provider.buy(order(owner))
    assert len(provider.buy(order(owner)).machines) == 2
    assert len(provider.machines()) == 2


def test_an_order_made_with_other_words_before_is_what_it_bought(
    provider: Ec2Provider, owner: str
) -> None:
    bought = provider.buy(order(owner))
    again = provider.buy(replace(order(owner), max_price=0.07))
    assert {m.machine_id for m in again.machines} == {m.machine_id for m in bought.machines}


def test_half_of_a_fleet_says_why(ec2: Ec2Server, provider: Ec2Provider, owner: str) -> None:
    ec2.room = 2
    bought = provider.buy(order(owner, count=4))
    assert len(bought.machines) == 2
    assert bought.missing == (
        "2 of 4 machines could be had: InsufficientInstanceCapacity: There is no Spot capacity."
    )


def test_nothing_to_be_had_is_no_error(ec2: Ec2Server, provider: Ec2Provider, owner: str) -> None:
    ec2.room = 0
    bought = provider.buy(order(owner))
    assert bought.machines == ()
    assert bought.missing.startswith("0 of 2 machines could be had: InsufficientInstanceCapacity")


def test_a_limit_of_the_account_is_a_shortage(
    ec2: Ec2Server, provider: Ec2Provider, owner: str
) -> None:
    told = Refusal("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
    ec2.refusal = lambda action, fields: told if action == "CreateFleet" else None
    assert "MaxSpotInstanceCountExceeded" in provider.buy(order(owner)).missing


def test_throttling_is_told_apart(ec2: Ec2Server, provider: Ec2Provider) -> None:
    ec2.refusal = lambda *_: Refusal("RequestLimitExceeded", "Request limit exceeded.", 503)
    with pytest.raises(Throttled, match="EC2 throttles ec2:DescribeInstances: Request limit"):
        provider.machines()


def test_a_call_that_is_throttled_once_is_made_again(
    ec2: Ec2Server, spec: Ec2Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    refusals = [Refusal("RequestLimitExceeded", "Request limit exceeded.", 503)]
    ec2.refusal = lambda *_: refusals.pop() if refusals else None
    own_client = Ec2Provider(replace(spec, endpoint_url=ec2.url), "nobody")
    assert own_client.machines() == []
    assert ec2.actions() == ["DescribeInstances", "DescribeInstances"]


def test_without_credentials_a_person_is_asked(
    ec2: Ec2Server, spec: Ec2Spec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    with pytest.raises(Denied, match="there are no credentials for EC2"):
        Ec2Provider(replace(spec, endpoint_url=ec2.url), "nobody").machines()


def test_a_missing_permission_is_named(ec2: Ec2Server, provider: Ec2Provider, owner: str) -> None:
    ec2.refusal = lambda *_: Refusal("UnauthorizedOperation", "You are not authorized.", 403)
    with pytest.raises(Denied, match="EC2 refuses ec2:TerminateInstances: UnauthorizedOperation"):
        provider.give_back(["i-0123456789abcdef0"])


def test_a_permission_that_a_fleet_misses_is_named(
    ec2: Ec2Server, provider: Ec2Provider, owner: str
) -> None:
    ec2.room = 0
    ec2.shortage, before = (
        Refusal("UnauthorizedOperation", "User is not authorized to perform: iam:PassRole on x"),
        ec2.shortage,
    )
    try:
        with pytest.raises(Denied, match="EC2 refuses iam:PassRole: UnauthorizedOperation"):
            provider.buy(order(owner))
    finally:
        ec2.shortage = before


def test_no_server_at_the_address_is_an_error_for_later(spec: Ec2Spec) -> None:
    gone = Ec2Server()
    gone.close()
    with pytest.raises(ProviderError, match="EC2 cannot be asked: Could not connect") as caught:
        Ec2Provider(spec, "job", client=gone.client).machines()
    assert not caught.value.is_final


def test_what_was_just_bought_may_be_missing_for_a_while(
    ec2: Ec2Server, provider: Ec2Provider, owner: str
) -> None:
    provider.buy(order(owner))
    ec2.stale = 1
    assert provider.machines() == []
    assert len(provider.machines()) == 2


def test_the_machines_of_others_are_not_found(
    ec2: Ec2Server, spec: Ec2Spec, provider: Ec2Provider, owner: str
) -> None:
    Ec2Provider(spec, "somebody", client=ec2.client).buy(order("somebody"))
    provider.buy(order(owner, count=1))
    assert [m.owner for m in provider.machines()] == [owner]


def test_machines_end_once_and_for_all(provider: Ec2Provider, owner: str) -> None:
    ids = [m.machine_id for m in provider.buy(order(owner)).machines]
    provider.give_back(ids)
    provider.give_back(ids)
    found = provider.machines()
    assert {m.state for m in found} == {MachineState.ENDED}
    assert {m.reason for m in found} == {"Client.UserInitiatedShutdown"}
    assert not any(m.taken_back for m in found)
    assert all(m.started_at <= m.ended_at <= m.told_at for m in found)


def test_a_machine_that_ec2_takes_back_says_so(
    ec2: Ec2Server, provider: Ec2Provider, owner: str
) -> None:
    (bought,) = provider.buy(order(owner, count=1)).machines
    ec2.take_back([bought.machine_id])
    (found,) = provider.machines()
    assert (found.state, found.taken_back) == (MachineState.ENDED, True)


def test_a_machine_that_ec2_has_forgotten_keeps_no_other_one(
    provider: Ec2Provider, owner: str
) -> None:
    ids = [m.machine_id for m in provider.buy(order(owner)).machines]
    provider.give_back([*ids, "i-0123456789abcdef0"])
    assert {m.state for m in provider.machines()} == {MachineState.ENDED}


@pytest.mark.soak
def test_hundreds_of_machines_are_all_found(provider: Ec2Provider, owner: str) -> None:
    provider.buy(order(owner, count=101))
    found = provider.machines()
    assert len(found) == 101
    provider.give_back([m.machine_id for m in found])
    assert {m.state for m in provider.machines()} == {MachineState.ENDED}


def test_the_policy_allows_what_is_called_and_nothing_else(
    ec2: Ec2Server, provider: Ec2Provider, owner: str
) -> None:
    provider.pools()
    bought = provider.buy(order(owner))
    provider.machines()
    provider.give_back([m.machine_id for m in bought.machines])
    statements = json.loads(POLICY.read_text())["Statement"]
    allowed = [re.sub("^(ec2|iam):", "", one) for s in statements for one in _list(s["Action"])]
    assert sorted(allowed) == sorted({*ec2.actions(), *OF_A_FLEET})
    assert {s["Effect"] for s in statements} == {"Allow"}


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_an_image_that_was_taken_back_is_named(
    provider: Ec2Provider, spec: Ec2Spec, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # EC2's answer for one that is shared no more; moto knows an error alone.
    monkeypatch.setattr(provider._client, "describe_images", lambda **_: {"Images": []})
    with pytest.raises(ProviderError, match=spec.image_id):
        provider.buy(order(owner))
