"""Real training through the command line: each way to bring code, both TensorFlow versions.

Here ``make test`` trains TensorFlow 1's script; the other examples in tests that train them anyway:
the digits in ``test_shared_filesystem_in_s3``, Keras, under two strategies, in ``test_keras``. The
rest, each with all of its workers, and with every version, only ``make soak`` trains.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

from command_line import EXAMPLES, NEWEST, OLD, SUPPORTED, accuracy_in

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


# The jobs of ``test_ps_checkpoints`` and of others are commands with TensorFlow as well.
@pytest.mark.soak
def test_a_command_runs_with_tf_config_in_its_environment(local_cluster, tensorflow):
    ended = local_cluster.ask(*run_arguments("command", "command", tensorflow(NEWEST)))
    assert ended.code == 0, ended.out[-4000:]


# Others do so with jobs without TensorFlow.
@pytest.mark.soak
@pytest.mark.zookeeper
def test_an_example_trains_with_state_in_zookeeper(local_cluster, tensorflow, zookeeper_server):
    state = f"zk://{zookeeper_server.address}/jobs"
    arguments = run_arguments("tf1_script", "zookeeper", tensorflow(OLD), "--state", state)
    ended = local_cluster.ask(*arguments)
    assert ended.code == 0, ended.out[-4000:]
    assert accuracy_in(ended.out) > 0.9


# ``test_package`` has two services of two versions beside each other.
@pytest.mark.soak
def test_two_jobs_of_different_tensorflow_versions_run_at_once(local_cluster, tensorflow):
    first = local_cluster.start(*run_arguments("digits", "both-old", tensorflow(OLD)))
    second = local_cluster.start(*run_arguments("multi_worker", "both-new", tensorflow(NEWEST)))
    try:
        outs = [process.communicate(timeout=350)[0] for process in (first, second)]
    finally:
        for process in (first, second):
            process.kill()
    assert [first.returncode, second.returncode] == [0, 0], "\n".join(o[-3000:] for o in outs)
    assert all(accuracy_in(out) > 0.9 for out in outs)


# ``cli/test_run`` has it without TensorFlow; ``test_task_contracts`` restores a checkpoint with it.
@pytest.mark.soak
@pytest.mark.parametrize("version", [OLD, NEWEST])
def test_a_job_run_again_goes_on_from_its_checkpoints(local_cluster, tensorflow, version):
    all_end = ("--set", *ALL_END)
    name = "again-" + version.replace(".", "-")
    arguments = run_arguments("tf1_script", name, tensorflow(version), *all_end)
    first = local_cluster(*arguments, timeout=300)
    second = local_cluster(*arguments, timeout=300)
    assert [first.code, second.code] == [0, 0], second.out[-4000:]
    assert min(accuracy_in(first.out), accuracy_in(second.out)) > 0.9
    steps = [int(re.findall(r"^  steps +(\d+)", out, re.M)[-1]) for out in (first.out, second.out)]
    # Trained again from nothing it would make all of its steps once more and stop at the same one.
    assert steps[0] <= steps[1] <= steps[0] + 10
    assert "goes on from the checkpoints" in second.out


def test_nothing_is_left_on_the_cluster(local_cluster):
    assert json.loads(local_cluster.mesos("/state"))["frameworks"] == []
    home = str(local_cluster.home).encode()
    assert [c for c in command_lines() if home in c and b"task-runner" in c] == []


def command_lines() -> list[bytes]:
    """Return the command line of every process; those that end meanwhile are left out."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(file.read_bytes())
    return found
