"""The options of virtual networks: what is read of them, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from dcos_tensorflow.core.spec.service_spec import NetworkAddresses, VirtualNetwork
from dcos_tensorflow.options import load, service_spec

Problems = Callable[..., list[str]]


def network(**given: Any) -> VirtualNetwork | None:
    options = {"service": {"job_name": "train", "virtual_network_enabled": True, **given}}
    return service_spec(load(options)).network


def test_none_is_joined_unless_asked_for() -> None:
    assert network(virtual_network_enabled=False, virtual_network_plugin_labels="a:b") is None


def test_the_network_of_dcos_is_the_one_that_is_joined() -> None:
    assert network() == VirtualNetwork("dcos")


def test_labels_are_written_as_the_published_package_has_them() -> None:
    found = network(virtual_network_plugin_labels="k_0:v_0, k_1:v:1,k_2:")
    assert found is not None
    assert found.labels == {"k_0": "v_0", "k_1": "v:1", "k_2": ""}


def test_the_agents_addresses_can_be_chosen() -> None:
    found = network(virtual_network_name="mesos-bridge", virtual_network_addresses="host")
    assert found == VirtualNetwork("mesos-bridge", addresses=NetworkAddresses.HOST)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("k_0", "'k_0' is not of the form key:value"),
        ("a:1,,b:2", "'' is not of the form key:value"),
        (":v", "':v' is not of the form key:value"),
        ("a:1,a:2", "the label a stands there more than once"),
    ],
)
def test_wrong_labels_are_named(labels: str, message: str, problems: Problems) -> None:
    found = problems({"service": {"virtual_network_plugin_labels": labels}})
    assert found == [
        f"service.virtual_network_plugin_labels: {message} "
        f'(given: "{labels}"; allowed: labels such as k_0:v_0,k_1:v_1, or empty text)'
    ]
