"""A runner of 0.1.0 that still runs when its scheduler is a newer one.

``former/task-runner-0.1.0.zip`` is the runner as that release packed it.
"""

import json
from pathlib import Path

import pytest

from dcos_tensorflow.core.cluster.rendering import runner_cluster
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec, Strategy, TaskRole
from runner_process import Starter

FORMER = Path(__file__).parent / "former" / "task-runner-0.1.0.zip"
TELLS = "import os\nprint(os.environ['TF_EPOCH'], os.environ['TF_CONFIG'], flush=True)\n"
WAITS = "import time\nwhile True: time.sleep(60)\n"


@pytest.fixture
def start_former(tmp_path):
    starter = Starter(tmp_path, [str(FORMER)])
    yield starter
    starter.close()


def cluster_of(epoch: int, port: int) -> dict:
    roles = (RoleSpec(TaskRole.WORKER, 2, Resources(cpus=1)),)
    spec = ServiceSpec(name="mnist", roles=roles, strategy=Strategy.MULTI_WORKER)
    addresses = {"worker-0": f"127.0.0.1:{port}", "worker-1": f"127.0.0.1:{port + 1}"}
    return runner_cluster(spec, ClusterSpec(epoch, addresses), "worker-0")


def test_it_takes_the_orders_of_this_scheduler(start_former):
    task = start_former(TELLS + WAITS, cluster=cluster_of(1, 31000))
    task.wait_for_text("1 {")
    code, status = task.request(
        "PUT",
        "/v1/cluster",
        {
            **cluster_of(2, 32000),
            "start": 2,
            "run": True,
            "grace_seconds": 5.0,
            "expects_restore_step": True,
            "restore_step": None,
        },
    )
    assert (code, status["changed"]) == (200, True)
    task.wait_for_text("2 {")
    told = json.loads(task.text().splitlines()[-1].partition(" ")[2])
    assert told["cluster"] == {"worker": ["127.0.0.1:32000", "127.0.0.1:32001"]}
    assert task.request("POST", "/v1/stop")[0] == 202
    task.wait()


def test_a_runner_of_now_takes_what_that_scheduler_says(start):
    task = start(TELLS, cluster=cluster_of(1, 31000), version=1)
    assert task.wait() == 0
    assert json.loads(task.text().partition(" ")[2])["task"] == {"type": "worker", "index": 0}
