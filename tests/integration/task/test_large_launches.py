"""The largest cluster that the options allow, in real processes; and one member more."""

import json
import subprocess

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.launch import launch_task
from dcos_tensorflow.core.cluster.output_places import Run
from dcos_tensorflow.core.cluster.rendering import address_of
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.service_state import LaunchSettings
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.options import OptionsError, load, service_spec

TELLS = """
import json, os
text = os.environ["TF_CONFIG"]
hosts = os.environ["WORKER_HOSTS"].split(",")
print(len("TF_CONFIG=" + text) + 1, len(json.loads(text)["cluster"]["worker"]), len(hosts))
"""


def options(workers):
    return {
        "service": {"name": "mnist", "job_name": "job", "strategy": "multi_worker"},
        "parameter_server": {"count": 0},
        "worker": {"count": workers},
        "cluster_spec": {"addressing": "dns"},
    }


def launch_of_last(spec):
    """Return the launch of the task whose TF_CONFIG is the longest."""
    role, names = spec.roles[0], tuple(spec.task_names())
    cluster = ClusterSpec(1, {n: address_of(spec, role, i, "", 0) for i, n in enumerate(names)})
    record = TaskRecord(
        name=names[-1],
        role=role.role,
        index=len(names) - 1,
        attempt=1,
        task_id="mnist__worker__1",
        state=TaskState.LAUNCHING,
        epoch=1,
        agent_id="S0",
        hostname="agent",
        address="10.0.0.1",
        ports=(2222, 2218),
        launched_at=0.0,
        changed_at=0.0,
    )
    return launch_task(spec, LaunchSettings(), "F", record, cluster, run=Run())


@pytest.fixture(scope="module")
def most():
    with pytest.raises(OptionsError) as error:
        load(options(5000))
    return int(error.value.problems[0].allowed.split()[2])


def test_the_largest_cluster_reaches_the_users_process_whole(start, most):
    launch = launch_of_last(service_spec(load(options(most))))
    task = start(TELLS, variables=dict(launch.env), port=0)
    assert task.wait() == 0, task.text("stderr")
    size, members, hosts = map(int, task.text().split())
    assert members == hosts == most
    assert contract.VARIABLE_BYTES - 100 < size <= contract.VARIABLE_BYTES


def test_mesos_can_hand_that_launch_on_in_one_variable(most):
    launch = launch_of_last(service_spec(load(options(most))))
    variables = [{"name": n, "type": "VALUE", "value": v} for n, v in launch.env.items()]
    text = json.dumps({"command": {"value": launch.command}, "environment": variables})
    agents = "x" * 16_000
    given = {"MESOS_CONTAINERIZER_LAUNCH_INFO": text + agents}
    assert subprocess.run(["/bin/true"], env=given, check=False).returncode == 0


def test_one_member_more_is_refused_before_anything_is_placed(most):
    with pytest.raises(OptionsError, match=f"at most {most} members in all"):
        load(options(most + 1))


def test_a_runner_that_is_given_more_says_which_variable_is_too_long(start, most):
    addresses = [f"worker-{n}.mnist.autoip.dcos.thisdcos.directory:2222" for n in range(most + 50)]
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": 0}}
    table = {"cluster": {"worker": [[0, len(addresses)]]}, "task": config["task"]}
    cluster = ClusterSpec(1, {f"worker-{n}": a for n, a in enumerate(addresses)})
    task = start(
        TELLS,
        variables={contract.RUNNER_ADDRESSES_VARIABLE: cluster.table_text},
        version=2,
        cluster={"epoch": 1, "distribute": {"tf_config": table, "wait_for": []}},
    )
    assert task.wait() == contract.EXIT_JOB_UNUSABLE
    report = task.report()
    assert report["class"] == "job_unusable"
    size = len("TF_CONFIG=" + json.dumps(config, separators=(",", ":"))) + 1
    assert f"TF_CONFIG alone has {size} bytes" in report["summary"]
