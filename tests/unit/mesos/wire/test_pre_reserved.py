"""Resources that an operator has reserved: to our Mesos role, to one above it, to another."""

from typing import Any

import pytest

from dcos_tensorflow.core.model.actions import LaunchTask
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.mesos.wire.convert import offer_from_json
from samples.launched_tasks import scalar, task_info

ROLE = "slave_public/vision"


def public(reserved_to: str = "slave_public") -> dict[str, Any]:
    """Return an offer of a public agent of DC/OS: all of it is reserved (--default_role)."""
    reservation = {"reservations": [{"type": "STATIC", "role": reserved_to}]}
    allocation = {"allocation_info": {"role": ROLE}}
    return {
        "id": {"value": "O1"},
        "agent_id": {"value": "S1"},
        "hostname": "node1",
        **allocation,
        "resources": [
            scalar("cpus", 4.0, **reservation, **allocation),
            scalar("mem", 512.0, **reservation, **allocation),
        ],
    }


@pytest.mark.parametrize("reserved_to", ["slave_public", ROLE])
def test_what_is_reserved_to_our_role_or_one_above_it_can_be_used(reserved_to: str) -> None:
    assert offer_from_json(public(reserved_to), 0.0).resources == Resources(cpus=4.0, mem=512.0)


@pytest.mark.parametrize("reserved_to", ["slave", "slave_public/other", f"{ROLE}/night"])
def test_what_is_reserved_to_another_role_is_not_there(reserved_to: str) -> None:
    assert offer_from_json(public(reserved_to), 0.0).resources == Resources()


def test_a_task_takes_reserved_resources_as_they_were_offered() -> None:
    launch = LaunchTask("t", "worker-0", "S1", Resources(cpus=1.0, mem=512.0), (), "true", {})
    cpus, mem = task_info(launch, [public()])["resources"]
    assert (cpus["reservations"], cpus["allocation_info"]) == (
        [{"type": "STATIC", "role": "slave_public"}],
        {"role": ROLE},
    )
    assert (cpus["scalar"], mem["scalar"]) == ({"value": 1.0}, {"value": 512.0})
