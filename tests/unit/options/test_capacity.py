"""The section ``capacity``: what it becomes, and what is wrong with it."""

from typing import Any

import pytest

from dcos_tensorflow.core.spec.capacity_spec import Billing, CommandSpec, Ec2Spec
from dcos_tensorflow.options import OptionsError, load, notes, service_spec


def given(**capacity: Any) -> dict[str, Any]:
    return {
        "service": {"name": "train", "job_url": "file:///job.zip", "job_name": "train"},
        "worker": {"count": 2},
        "capacity": capacity,
    }


def problems(**capacity: Any) -> str:
    with pytest.raises(OptionsError) as raised:
        load(given(**capacity))
    return str(raised.value)


RACK = {"provider": "command", "command": {"cmd": ["rack", "--row", "1"]}}
EC2 = {"region": "eu-central-1", "image_id": "ami-1", "master": "zk://one:2181/mesos"}


def test_without_a_provider_nothing_is_bought() -> None:
    assert service_spec(load(given())).capacity is None


def test_a_command_with_limits() -> None:
    options = {**RACK, "budget": 10.0, "max_instances": 4, "deadline": 7200, "billing": "hour"}
    spec = service_spec(load(given(**options))).capacity
    assert spec is not None
    assert spec.provider == CommandSpec(("rack", "--row", "1"))
    assert (spec.budget, spec.max_instances, spec.billing) == (10.0, 4, Billing.HOUR)
    assert (spec.deadline_seconds, spec.deadline_at) == (7200.0, 0.0)


def test_machines_of_ec2() -> None:
    spec = service_spec(load(given(provider="ec2", ec2={**EC2, "prices": {"c5.large": 0.1}})))
    assert spec.capacity is not None
    assert spec.capacity.provider == Ec2Spec(
        "eu-central-1", image_id="ami-1", master="zk://one:2181/mesos", prices={"c5.large": 0.1}
    )


def test_a_deadline_may_be_a_moment() -> None:
    spec = service_spec(load(given(**RACK, deadline="2027-01-31T18:00:00Z"))).capacity
    assert spec is not None
    assert spec.deadline_at == 1801418400.0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"provider": "command"}, "capacity.command.cmd: the provider command needs it"),
        ({"provider": "ec2"}, "capacity.ec2.region: the provider ec2 needs it"),
        ({"provider": "ec2", "ec2": {"region": "x"}}, "capacity.ec2.image_id: the provider ec2"),
        ({"provider": "ec22"}, "ec2"),
        ({**RACK, "budget": 0}, "capacity.budget"),
        ({**RACK, "deadline": "tomorrow"}, "capacity.deadline: is no deadline"),
        ({**RACK, "deadline": "2027-01-31T18:00:00"}, "it names no time zone"),
        ({**RACK, "deadline": -5}, "capacity.deadline: is no deadline"),
        ({**RACK, "max_instances": 2, "on_demand_base": 3}, "more than capacity.max_instances, 2"),
        ({**RACK, "max_instance": 2}, "max_instances"),
    ],
)
def test_what_is_wrong_is_said_at_once(options: dict[str, Any], told: str) -> None:
    assert told in problems(**options)


def test_a_sweep_without_any_limit_would_buy_for_all_trials() -> None:
    sweep = {"parameters": {"rate": [1, 2]}, "objective": {"metric": "loss"}}
    with pytest.raises(
        OptionsError, match=r"capacity\.max_instances: with sweep\.parallelism auto"
    ):
        load({**given(**RACK), "sweep": sweep})
    load({**given(**RACK, max_instances=4), "sweep": sweep})


def test_options_that_do_nothing_are_told_of() -> None:
    assert any(
        note.startswith("capacity.budget: has no effect without capacity.provider")
        for note in notes(load(given(budget=5)))
    )
