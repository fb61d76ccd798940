"""Which address of a machine lies in the network of the peers."""

import subprocess
from collections.abc import Iterator

import pytest

from dcos_tensorflow.task.network.own_address import NotInNetwork, of_network


@pytest.fixture
def fabric() -> Iterator[str]:
    """Return the name of an interface with an address of each family."""
    name = "tf-fabric0"
    try:
        peer = ["peer", "name", f"{name}p"]
        subprocess.run(["ip", "link", "add", name, "type", "veth", *peer], check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("no interface can be made here: that takes root and iproute2")
    try:
        for end in (name, f"{name}p"):
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
        subprocess.run(["ip", "addr", "add", "10.254.9.7/24", "dev", name], check=True)
        subprocess.run(["ip", "addr", "add", "fd00:9::7/64", "dev", name, "nodad"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "link", "delete", name], check=True)


@pytest.mark.parametrize("network", ["127.0.0.0/8", "127.0.0.1/32", "lo"])
def test_the_loopback_of_each_machine_has_one(network: str) -> None:
    assert of_network(network) == "127.0.0.1"


@pytest.mark.parametrize(
    ("network", "found"), [("10.254.9.0/24", "10.254.9.7"), ("fd00:9::/64", "fd00:9::7")]
)
def test_of_several_addresses_that_in_the_network_is_taken(
    fabric: str, network: str, found: str
) -> None:
    assert of_network(network) == found


def test_an_interface_has_its_ipv4_address(fabric: str) -> None:
    assert of_network(fabric) == "10.254.9.7"


def test_an_interface_without_ipv4_has_its_ipv6_address(fabric: str) -> None:
    subprocess.run(["ip", "addr", "del", "10.254.9.7/24", "dev", fabric], check=True)
    assert of_network(fabric) == "fd00:9::7"


@pytest.mark.parametrize(
    ("network", "why"),
    [
        ("10.253.253.0/24", "10.253.253.0/24"),
        ("ib99", "no interface ib99; it has lo"),
        ("fd00:77::/64", "fd00:77::/64"),
    ],
)
def test_a_machine_that_is_not_in_it_says_so(network: str, why: str) -> None:
    with pytest.raises(NotInNetwork, match=why):
        of_network(network)
