"""Real training through the command line: each way to bring code, both TensorFlow versions.

Here ``make test`` trains TensorFlow 1's script; the other examples in tests that train them anyway:
the digits in ``test_shared_filesystem_in_s3``, Keras, under two strategies, in ``test_keras``. The
rest, each with all of its workers, and with every version, only ``make soak`` trains.
"""

import json

import pytest

from command_line import EXAMPLES, OLD, SUPPORTED, accuracy_in
from processes import processes

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(400)]

ALL_END = ("service.outcome=all_workers",)


def run_arguments(example: str, name: str, python: str, *more: str) -> tuple[object, ...]:
    return (
        *("run", EXAMPLES / example / "options.json", "--yes"),
        *("--set", f"service.name={name}", "--set", f"service.python={python}"),
        *more,
    )


def test_a_tensorflow_1_script_trains_to_its_end(local_cluster, tensorflow):
    arguments = run_arguments("tf1_script", "script", tensorflow(OLD), "--set", "worker.count=1")
    ended = local_cluster.ask(*arguments, "--set", *ALL_END)
    assert ended.code == 0, ended.out[-4000:]
    assert accuracy_in(ended.out) > 0.9


@pytest.mark.soak
@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize(
    "example", ["digits", "keras", "tf1_script", "parameter_server", "multi_worker"]
)
def test_an_example_trains_with_every_supported_version(
    local_cluster, tensorflow, example, version
):
    name = f"every-{example}-{version}".replace("_", "-").replace(".", "-")
    ended = local_cluster(*run_arguments(example, name, tensorflow(version)), timeout=300)
    assert ended.code == 0, ended.out[-4000:]
    assert accuracy_in(ended.out) > 0.9


def test_nothing_is_left_on_the_cluster(local_cluster):
    assert json.loads(local_cluster.mesos("/state"))["frameworks"] == []
    home = str(local_cluster.home)
    assert [one for one in processes("task-runner") if home in one.command] == []
