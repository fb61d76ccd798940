"""Where tasks can be reached, as ``/v1/endpoints/<role>`` tells it."""

from dataclasses import replace

from dcos_tensorflow.api.views.cluster import endpoint
from dcos_tensorflow.core.spec.service_spec import TaskRole, VirtualNetwork
from samples.states import a_record, a_role, a_spec, running, with_records


def test_tensorboard_has_the_virtual_address_of_the_published_package() -> None:
    spec = a_spec(name="team/mnist", roles=(a_role(TaskRole.TENSORBOARD, 1, port=6007),))
    found = endpoint(replace(running(), spec=spec), "tensorboard")
    assert found["vip"] == "tensorboard.teammnist.l4lb.thisdcos.directory:6007"


def test_without_a_configured_port_tensorboards_virtual_address_has_its_usual_one() -> None:
    spec = a_spec(roles=(a_role(TaskRole.TENSORBOARD, 1),))
    found = endpoint(replace(running(), spec=spec), "tensorboard")
    assert found["vip"] == "tensorboard.tensorflow.l4lb.thisdcos.directory:6006"


def test_members_of_the_cluster_have_no_virtual_address() -> None:
    assert "vip" not in endpoint(running(), "worker")


def test_a_container_whose_address_is_not_known_has_a_name_already() -> None:
    state = replace(running(), spec=a_spec(network=VirtualNetwork("dcos")))
    for name, address in (("worker-0", "9.0.0.1"), ("worker-1", "")):
        state = with_records(state, a_record(name, address=address, ports=(2222, 2218)))
    assert endpoint(state, "worker") == {
        "address": ["9.0.0.1:2222"],
        "dns": [
            "worker-0.tensorflow.autoip.dcos.thisdcos.directory:2222",
            "worker-1.tensorflow.autoip.dcos.thisdcos.directory:2222",
        ],
    }
