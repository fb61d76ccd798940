"""How tasks are reached, as Mesos reads it: networks, port mappings, virtual addresses."""

from typing import Any

import pytest

from dcos_tensorflow.core.model.actions import Vip
from dcos_tensorflow.core.spec.service_spec import (
    Container,
    Containerizer,
    NetworkAddresses,
    VirtualNetwork,
)
from samples.launched_tasks import a_launch, port_ranges, scalar, task_info

OVERLAY = VirtualNetwork("dcos", {"team": "vision", "tier": ""})
BRIDGE = VirtualNetwork("mesos-bridge", addresses=NetworkAddresses.HOST)


def info(**fields: Any) -> dict[str, Any]:
    """Return the TaskInfo of a launch on an agent with 4 cpus and the ports 31000 to 31009."""
    launch = a_launch(**{"ports": (2222, 2218), **fields})
    offered = [scalar("cpus", 4.0), scalar("mem", 1024.0), port_ranges((31000, 31009))]
    return task_info(launch, [{"allocation_info": {"role": "*"}, "resources": offered}])


def test_a_container_with_an_address_of_its_own_joins_the_network():
    assert info(network=OVERLAY)["container"] == {
        "type": "MESOS",
        "mesos": {},
        "network_infos": [
            {
                "name": "dcos",
                "labels": {
                    "labels": [{"key": "team", "value": "vision"}, {"key": "tier", "value": ""}]
                },
            }
        ],
    }


def test_a_container_with_an_address_of_its_own_takes_no_port_of_the_agent():
    assert [r["name"] for r in info(network=OVERLAY)["resources"]] == ["cpus", "mem"]


def test_an_image_joins_the_network():
    found = info(network=OVERLAY, container=Container("tf:2.21"))["container"]
    assert (found["mesos"]["image"]["docker"], found["network_infos"][0]["name"]) == (
        {"name": "tf:2.21"},
        "dcos",
    )


def test_with_the_agents_address_its_ports_are_mapped_to_the_same_numbers():
    found = info(network=BRIDGE, ports=(31000, 31001))
    assert found["container"]["network_infos"] == [
        {
            "name": "mesos-bridge",
            "port_mappings": [
                {"host_port": 31000, "container_port": 31000, "protocol": "tcp"},
                {"host_port": 31001, "container_port": 31001, "protocol": "tcp"},
            ],
        }
    ]


def test_with_the_agents_address_its_ports_are_taken():
    taken = info(network=BRIDGE, ports=(31000, 31001))["resources"][-1]
    assert taken["ranges"] == {"range": [{"begin": 31000, "end": 31001}]}


def test_dockers_engine_joins_a_user_network():
    container = Container("tf:2.21", Containerizer.DOCKER)
    found = info(network=OVERLAY, container=container)["container"]
    assert found == {
        "type": "DOCKER",
        "docker": {"image": "tf:2.21", "network": "USER", "force_pull_image": False},
        "network_infos": [
            {
                "name": "dcos",
                "labels": {
                    "labels": [{"key": "team", "value": "vision"}, {"key": "tier", "value": ""}]
                },
            }
        ],
    }


def test_dockers_engine_maps_ports_itself():
    container = Container("tf:2.21", Containerizer.DOCKER)
    found = info(network=BRIDGE, container=container, ports=(31000, 31001))["container"]
    assert found["docker"]["port_mappings"] == [
        {"host_port": 31000, "container_port": 31000, "protocol": "tcp"},
        {"host_port": 31001, "container_port": 31001, "protocol": "tcp"},
    ]
    assert found["network_infos"] == [{"name": "mesos-bridge"}]


def test_without_a_network_there_is_no_container():
    assert "container" not in info(ports=(31000, 31001))


def test_discovery_names_the_ports():
    assert info(ports=(31000, 31001))["discovery"] == {
        "visibility": "CLUSTER",
        "name": "worker-0",
        "ports": {
            "ports": [
                {"number": 31000, "name": "grpc", "protocol": "tcp"},
                {"number": 31001, "name": "runner", "protocol": "tcp"},
            ]
        },
    }


@pytest.mark.parametrize(
    ("network", "scope"), [(None, "host"), (BRIDGE, "host"), (OVERLAY, "container")]
)
def test_a_virtual_address_leads_to_whose_port_it_is(network, scope):
    found = info(network=network, ports=(31000, 31001), vip=Vip("tensorboard", 6006))
    assert found["discovery"]["ports"]["ports"][0] == {
        "number": 31000,
        "name": "tensorboard",
        "protocol": "tcp",
        "labels": {
            "labels": [
                {"key": "VIP_0", "value": "tensorboard:6006"},
                {"key": "network-scope", "value": scope},
            ]
        },
    }
