"""The examples' trainings through the command line, with every version: only in ``make soak``.

``make test`` trains examples in tests that look at more: the digits in
``test_shared_filesystem_in_s3`` and ``test_task_contracts``, Keras in ``test_keras`` and
``test_under_strategy``. Sessions are in ``test_ps_checkpoints``, ``tf1_compat`` in
``test_task_contracts``.
"""

import json

import pytest

from command_line import EXAMPLES, SUPPORTED, accuracy_in
from processes import processes

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(400)]


@pytest.mark.soak
@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize(
    "example", ["digits", "keras", "tf1_script", "parameter_server", "multi_worker"]
)
def test_an_example_trains_with_every_supported_version(
    local_cluster, tensorflow, example, version
):
    name = f"every-{example}-{version}".replace("_", "-").replace(".", "-")
    settings = ("--set", f"service.name={name}", "--set", f"service.python={tensorflow(version)}")
    options = EXAMPLES / example / "options.json"
    ended = local_cluster("run", options, "--yes", *settings, timeout=300)
    assert ended.code == 0, ended.out[-4000:]
    assert accuracy_in(ended.out) > 0.9


def test_nothing_is_left_on_the_cluster(local_cluster):
    assert json.loads(local_cluster.mesos("/state"))["frameworks"] == []
    home = str(local_cluster.home)
    assert [one for one in processes("task-runner") if home in one.command] == []
