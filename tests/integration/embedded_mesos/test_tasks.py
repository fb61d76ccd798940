"""Tasks are real processes: how they start, what they see, how they end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from embedded_mesos import EmbeddedCluster
from masters.mesos_scheduler import Scheduler, task
from processes import alive
from waiting import eventually

Json = dict[str, Any]
MakeCluster = Callable[..., EmbeddedCluster]


def test_kill_ends_with_sigkill_after_the_grace(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        policy = {"grace_period": {"nanoseconds": 200_000_000}}
        ready = tmp_path / "ready"
        command = f"trap '' TERM; touch {ready}; while true; do sleep 0.05; done"
        scheduler.launch(offer, task(offer, "t", command, kill_policy=policy))
        scheduler.run_until("t", "TASK_RUNNING")
        eventually(ready.exists, what="the trap")
        scheduler.kill("t")
        status = scheduler.run_until("t", "TASK_KILLED")
        assert status["message"] == "Command terminated with signal Killed"


def test_processes_that_a_task_left_behind_end_with_it(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster()
    pid_file = tmp_path / "pid"
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        # setsid: no signal to the task's process group reaches it.
        command = f"setsid sh -c 'echo $$ > {pid_file}; exec sleep 100' & "
        command += f"while [ ! -s {pid_file} ]; do sleep 0.02; done"
        scheduler.launch(offer, task(offer, "t", command))
        scheduler.run_until("t", "TASK_FINISHED")
        eventually(lambda: not alive(int(pid_file.read_text())), what="the orphan's end")


def test_what_executors_come_from_may_be_killed_between_two_tasks(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        scheduler.launch(offer := scheduler.offer(), task(offer, "first", "sleep 100"))
        scheduler.run_until("first", "TASK_RUNNING")
        (first,) = cluster.host._processes.values()
        source = Path(f"/proc/{first.pid}/stat").read_text().rpartition(")")[2].split()[1]
        os.kill(int(source), signal.SIGKILL)
        scheduler.launch(offer := scheduler.offer(), task(offer, "second", "true"))
        scheduler.run_until("second", "TASK_FINISHED")
        assert alive(first.task_pid or 0)
        scheduler.kill("first")
        scheduler.run_until("first", "TASK_KILLED")
        eventually(lambda: not cluster.host.executor_pids(), what="the end of both")


def test_gpus_are_named_to_the_task_and_hidden_from_others(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster(gpus=3)
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer("127.0.0.1", least_cpus=1)
        command = f"echo $CUDA_VISIBLE_DEVICES/$NVIDIA_VISIBLE_DEVICES > {tmp_path}/%s; sleep 100"
        scheduler.launch(
            offer,
            task(offer, "one", command % "one", gpus=1),
            task(offer, "two", command % "two", gpus=2),
            task(offer, "none", command % "none"),
        )
        seen = {}
        for name in ("one", "two", "none"):
            path = tmp_path / name
            eventually(lambda path=path: path.exists() and path.read_text() != "", what=name)
            seen[name] = path.read_text().strip()
        assert seen == {"one": "0/0", "two": "1,2/1,2", "none": "/void"}


def test_gpus_of_an_ended_task_are_given_to_the_next(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster(gpus=1)
    with Scheduler(cluster.master) as scheduler:
        for name in ("first", "second"):
            offer = scheduler.offer("127.0.0.1", least_cpus=1)
            command = f"echo $CUDA_VISIBLE_DEVICES > {tmp_path}/{name}"
            scheduler.launch(offer, task(offer, name, command, gpus=1, cpus=4))
            scheduler.run_until(name, "TASK_FINISHED")
            assert (tmp_path / name).read_text() == "0\n"


def test_max_completion_time_fails_the_task(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        limit = {"nanoseconds": 200_000_000}
        scheduler.launch(offer, task(offer, "t", "sleep 100", max_completion_time=limit))
        status = scheduler.run_until("t", "TASK_FAILED")
        assert status["reason"] == "REASON_MAX_COMPLETION_TIME_REACHED"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"container": {"type": "DOCKER", "docker": {"image": "x"}}}, "DOCKER"),
        (
            {
                "container": {
                    "type": "MESOS",
                    "mesos": {"image": {"type": "DOCKER", "docker": {"name": "tf:2"}}},
                }
            },
            "container images ('tf:2')",
        ),
        (
            {"container": {"type": "MESOS", "mesos": {}, "network_infos": [{"name": "dcos"}]}},
            "container networks ('dcos')",
        ),
        (
            {
                "command": {
                    "value": "true",
                    "environment": {
                        "variables": [
                            {
                                "name": "S",
                                "type": "SECRET",
                                "secret": {"type": "REFERENCE", "reference": {"name": "a"}},
                            }
                        ]
                    },
                }
            },
            "secrets of type REFERENCE",
        ),
        ({"command": {"value": "true", "uris": [{"value": "hdfs://n/a"}]}}, "hdfs://"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    more: Json, named: str, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        scheduler.launch(offer, {**task(offer, "t", "true"), **more})
        status = scheduler.update("t")
        assert status["state"] == "TASK_ERROR"
        assert status["message"].startswith("Not supported by the embedded cluster")
        assert named in status["message"]


_CLUSTER = """
import sys, time
from pathlib import Path
from embedded_mesos import AgentConfig, EmbeddedCluster
cluster = EmbeddedCluster([AgentConfig()], Path(sys.argv[1]))
cluster.start()
print(cluster.master, flush=True)
time.sleep(100)
"""


def test_no_task_survives_a_cluster_that_is_killed(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[3] / "framework")
    process = subprocess.Popen(
        [sys.executable, "-c", _CLUSTER, str(tmp_path / "work")],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": root, "PATH": "/usr/bin:/bin"},
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        master = process.stdout.readline().strip()
        pid_file = tmp_path / "pid"
        with Scheduler(master) as scheduler:
            offer = scheduler.offer()
            command = f"setsid sh -c 'echo $$ > {pid_file}; exec sleep 100' & sleep 100"
            scheduler.launch(offer, task(offer, "t", command))
            executor = scheduler.run_until("t", "TASK_RUNNING")["container_status"]
            eventually(lambda: pid_file.exists() and pid_file.read_text() != "", what="the task")
            process.send_signal(signal.SIGKILL)
        pids = [int(pid_file.read_text()), executor["executor_pid"]]
        eventually(lambda: not any(map(alive, pids)), what="the end of its tasks")
