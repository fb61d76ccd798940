"""What a launch carries."""

import dataclasses
import json
import subprocess

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.launch import launch_command, task_token
from dcos_tensorflow.core.cluster.rendering import launched_cluster, runner_cluster
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    JobSpec,
    LinkedData,
    PackagesSpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
    Uri,
)
from dcos_tensorflow.task.spec import FetchedJob, parse_order, parse_spec
from simulated.scheduler import small_job, started, training


@pytest.fixture
def launch():
    scheduler = started()
    return scheduler.cluster.tasks[scheduler.cluster.id_of("worker-1")].launch


def told(launch):
    """Return what the runner reads of a launch."""
    return parse_spec(
        launch.env[contract.RUNNER_SPEC_VARIABLE], launch.env[contract.RUNNER_ADDRESSES_VARIABLE]
    )


def test_the_runner_comes_under_its_own_name_and_is_not_unpacked(launch):
    runner = launch.uris[0]
    assert (runner.output_file, runner.extract) == ("task-runner.pyz", False)


def test_the_job_is_fetched_and_unpacked(launch):
    assert launch.uris[1] == Uri("http://127.0.0.1/job.zip")


def test_a_job_with_a_sum_is_left_packed_for_the_runner_to_look_at():
    checksum = "0" * 64
    spec = small_job(job=JobSpec(uri="http://h/a%20job.zip?token=1", sha256=checksum))
    scheduler = started(spec)
    launch = scheduler.cluster.tasks[scheduler.cluster.id_of("ps-0")].launch
    assert launch.uris[1] == Uri(
        spec.job.uri, extract=False, output_file=contract.UNCHECKED_JOB_FILE
    )
    assert told(launch).fetched == FetchedJob("a job.zip", checksum)


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("http://host/a/job.zip#x", "job.zip"),
        ("s3://bucket/job.tar.gz", "job.tar.gz"),
        ("/data/job.zip", "job.zip"),
        ("job?.zip", "job?.zip"),
        ("http://host", ""),
        ("http://host/a/", ""),
        ("http://host/%2e%2e", ""),
    ],
)
def test_the_file_of_a_uri_has_a_name(uri, name):
    assert JobSpec(uri).file_name == name


def test_the_runners_spec_names_task_epoch_and_ports(launch):
    spec = json.loads(launch.env[contract.RUNNER_SPEC_VARIABLE])
    assert (spec["task"], spec["cluster"]["epoch"], spec["grpc_port"]) == (
        "worker-1",
        1,
        launch.ports[0],
    )


def test_the_cluster_definition_has_every_member_and_this_ones_place(launch):
    server = told(launch).cluster.server
    assert (server.job_name, server.task_index) == ("worker", 1)
    assert server.cluster["worker"][1].endswith(f":{launch.ports[0]}")


def test_a_server_has_no_grace_because_it_has_nothing_to_save():
    cluster = started(training(Strategy.PARAMETER_SERVER)).cluster
    names = ("ps-0", "chief-0", "worker-0")
    graces = [told(cluster.tasks[cluster.id_of(n)].launch).grace_seconds for n in names]
    assert graces == [contract.NOTHING_TO_SAVE_SECONDS, 10.0, contract.NOTHING_TO_SAVE_SECONDS]


def test_a_worker_has_its_grace_where_it_is_not_known_to_serve(launch):
    assert told(launch).grace_seconds == 10.0


def test_no_address_is_said_in_clear_beside_the_table_of_all(launch):
    addresses = [a for job in told(launch).cluster.server.cluster.values() for a in job]
    assert len(addresses) == 3
    assert not [a for a in addresses for value in launch.env.values() if a in value]
    assert contract.TF_CONFIG not in launch.env


@pytest.mark.parametrize("strategy", list(Strategy))
def test_the_runner_makes_the_same_of_a_launch_as_of_an_order(strategy):
    counts = {"chief": 1, "worker": 3, "gpu-worker": 2, "evaluator": 1, "tensorboard": 1}
    if strategy in (Strategy.AUTO, Strategy.PARAMETER_SERVER, Strategy.BETWEEN_GRAPH):
        counts["ps"] = 2
    spec = ServiceSpec(
        name="mnist",
        roles=tuple(RoleSpec(TaskRole(r), n, Resources(cpus=1)) for r, n in counts.items()),
        strategy=strategy,
    )
    # A member may be missing: the job goes on with fewer.
    addresses = {n: f"10.0.0.{i}:{31000 + i}" for i, n in enumerate(spec.task_names())}
    del addresses["worker-1"]
    cluster = ClusterSpec(4, addresses)
    for name in addresses:
        cluster_told, table = launched_cluster(spec, cluster, name)
        document = {"version": 2, "service": "mnist", "task": name, "job": {}}
        launched = parse_spec(json.dumps({**document, "cluster": cluster_told}), table).cluster
        body = {**runner_cluster(spec, cluster, name), "start": 2, "run": True}
        assert launched == parse_order(json.dumps(body)).cluster


def test_a_task_without_peers_is_sent_no_table():
    roles = (RoleSpec(TaskRole.WORKER, 1000, Resources(cpus=1)),)
    spec = ServiceSpec(name="mnist", roles=roles, strategy=Strategy.INDEPENDENT)
    cluster = ClusterSpec(1, {f"worker-{n}": f"10.0.0.1:{n + 1}" for n in range(1000)})
    rendered, table = launched_cluster(spec, cluster, "worker-999")
    assert table == ""
    assert rendered["server"]["cluster"] == {"worker": ["10.0.0.1:1000"]}


def test_the_users_environment_cannot_replace_ours():
    spec = small_job()
    roles = tuple(dataclasses.replace(r, env={"TASK_NAME": "mine", "X": "1"}) for r in spec.roles)
    scheduler = started(dataclasses.replace(spec, roles=roles))
    env = scheduler.cluster.tasks[scheduler.cluster.id_of("worker-0")].launch.env
    assert env["X"] == "1"
    assert env["TASK_NAME"] == "worker-0"


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


def launched_with(job, **role):
    """Return launches by role of a job with a worker and a parameter server."""
    spec = small_job()
    roles = tuple(dataclasses.replace(each, **role) for each in spec.roles)
    spec = dataclasses.replace(spec, job=dataclasses.replace(spec.job, **job), roles=roles)
    scheduler = started(spec)
    return {
        name.rpartition("-")[0]: scheduler.cluster.tasks[scheduler.cluster.id_of(name)].launch
        for name in spec.task_names()
    }


def test_a_runner_is_told_of_the_packages_that_it_installs():
    packages = PackagesSpec(("a", "b>=1"), "2.15.1", "/cache")
    found = told(launched_with({}, packages=packages)["worker"]).packages
    assert found.lines == ("a", "b>=1")
    assert (found.tensorflow, found.directory) == ("2.15.1", "/cache")


def test_a_task_that_trains_is_told_of_data_of_its_machine_but_not_of_data_beside_the_options():
    links = (LinkedData("/mnt/images", "images"), LinkedData("./labels", "labels"))
    found = launched_with({"links": links})
    assert [(link.source, link.path) for link in told(found["worker"]).links] == [
        ("/mnt/images", "images")
    ]
    assert told(found["ps"]).links == ()


def test_a_launch_that_installs_and_links_nothing_says_nothing_of_it(launch):
    spec = json.loads(launch.env[contract.RUNNER_SPEC_VARIABLE])
    assert not {"packages", "links"} & spec.keys()
