"""What a launch carries."""

from __future__ import annotations

import dataclasses
import json
import subprocess

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.launch import launch_command, task_token
from dcos_tensorflow.core.model.spec import JobSpec, Uri
from simulated_scheduler import small_job, started


@pytest.fixture
def launch():
    scheduler = started()
    return scheduler.cluster.tasks[scheduler.cluster.id_of("worker-1")].launch


def test_the_runner_comes_under_its_own_name_and_is_not_unpacked(launch):
    runner = launch.uris[0]
    assert (runner.output_file, runner.extract) == ("task-runner.pyz", False)


def test_the_job_is_fetched_and_unpacked(launch):
    assert launch.uris[1] == Uri("http://127.0.0.1/job.zip")


def test_the_runners_spec_names_task_epoch_and_ports(launch):
    spec = json.loads(launch.env[contract.RUNNER_SPEC_VARIABLE])
    assert (spec["task"], spec["cluster"]["epoch"], spec["grpc_port"]) == (
        "worker-1",
        1,
        launch.ports[0],
    )


def test_the_cluster_definition_has_every_member_and_this_ones_place(launch):
    server = json.loads(launch.env[contract.RUNNER_SPEC_VARIABLE])["cluster"]["server"]
    assert (server["job_name"], server["task_index"]) == ("worker", 1)
    assert server["cluster"]["worker"][1].endswith(f":{launch.ports[0]}")


def test_the_users_environment_cannot_replace_ours():
    spec = small_job()
    roles = tuple(dataclasses.replace(r, env={"TF_CONFIG": "mine", "X": "1"}) for r in spec.roles)
    scheduler = started(dataclasses.replace(spec, roles=roles))
    env = scheduler.cluster.tasks[scheduler.cluster.id_of("worker-0")].launch.env
    assert env["X"] == "1"
    assert env["TF_CONFIG"] != "mine"


def test_extra_files_are_fetched_too():
    spec = small_job(job=JobSpec(uri="http://127.0.0.1/j.zip", extra_uris=(Uri("/etc/hosts"),)))
    scheduler = started(spec)
    launch = scheduler.cluster.tasks[scheduler.cluster.id_of("ps-0")].launch
    assert launch.uris[-1] == Uri("/etc/hosts")


@pytest.mark.parametrize(
    ("job", "wanted"),
    [
        (JobSpec(checkpoint_dir="/c", shared_filesystem="/s"), "/c"),
        (JobSpec(shared_filesystem="hdfs://default/s"), "hdfs://default/s"),
        (JobSpec(), "checkpoints"),
    ],
)
def test_checkpoints_are_kept_in_what_is_shared_where_anything_is(job, wanted):
    scheduler = started(small_job(job=job))
    launch = scheduler.cluster.tasks[scheduler.cluster.id_of("worker-0")].launch
    assert json.loads(launch.env[contract.RUNNER_SPEC_VARIABLE])["checkpoint_dir"] == wanted


def test_each_attempt_has_a_token_of_its_own():
    key = "ab" * 32
    assert task_token(key, "a") != task_token(key, "b")


def test_a_python_that_is_not_there_is_said_in_the_sandbox():
    command = launch_command("/no/such/python")
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == contract.EXIT_JOB_UNUSABLE
    assert "/no/such/python" in ended.stderr
    assert "service.python" in ended.stderr


def test_a_virtual_environments_directory_is_as_good_as_its_interpreter(tmp_path):
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text('#!/bin/sh\necho "ran $1"\n')
    python.chmod(0o755)
    ended = subprocess.run(
        ["sh", "-c", launch_command(str(tmp_path))],
        capture_output=True,
        text=True,
        check=True,
        env={"MESOS_SANDBOX": "/sandbox", "PATH": "/usr/bin:/bin"},
    )
    assert ended.stdout == "ran /sandbox/task-runner.pyz\n"


def test_a_path_with_quotes_stays_one_word(tmp_path):
    odd = tmp_path / "it's here"
    ended = subprocess.run(
        ["sh", "-c", launch_command(str(odd))], capture_output=True, text=True, check=False
    )
    assert str(odd) in ended.stderr
