"""Who is told what of S3: each task's part of it in its runner's spec."""

import dataclasses
import json

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.actions import LaunchTask
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    JobSpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
)
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    DataCacheSpec,
    DataSpec,
    LogShippingSpec,
    S3Spec,
    StorageSpec,
)
from dcos_tensorflow.task.spec import RunnerSpec, parse_spec
from simulated.scheduler import small_job, started

IN_S3 = StorageSpec(
    checkpoints=CheckpointSpec("s3://bucket/run", "s3://bucket/first", 30.0, 3),
    summaries_uri="s3://bucket/run/logs",
    data=(DataSpec("s3://bucket/mnist", "data"),),
    data_cache=DataCacheSpec("/cache", 7),
    logs=LogShippingSpec("cloudwatch://training", 5.0, 2048, "eu-west-1", "http://127.0.0.1:5"),
    s3=S3Spec("http://127.0.0.1:9", "us-east-1", True, "ca.pem", CredentialsReference("AWS_")),
)
SMALL = Resources(cpus=1.0, mem=64.0, disk=1.0)


def with_storage(storage: StorageSpec = IN_S3, **changes: object) -> ServiceSpec:
    return dataclasses.replace(small_job(**changes), storage=storage)


def launch_of(task: str, spec: ServiceSpec) -> LaunchTask:
    scheduler = started(spec)
    launch: LaunchTask = scheduler.cluster.tasks[scheduler.cluster.id_of(task)].launch
    return launch


def told(task: str, spec: ServiceSpec) -> RunnerSpec:
    env = launch_of(task, spec).env
    return parse_spec(
        env[contract.RUNNER_SPEC_VARIABLE], env.get(contract.RUNNER_ADDRESSES_VARIABLE, "")
    )


def test_a_job_that_keeps_nothing_in_s3_is_told_nothing_of_it() -> None:
    assert not told("worker-0", small_job()).storage.is_used


def test_a_job_that_keeps_nothing_in_s3_gets_the_small_runner() -> None:
    assert launch_of("worker-0", small_job()).uris[0].value.endswith("task-runner.pyz")


def test_a_job_with_something_in_s3_gets_the_runner_that_brings_boto3() -> None:
    launch = launch_of("worker-0", with_storage())
    assert launch.uris[0].value == "task-runner-storage.pyz"
    assert launch.uris[0].output_file == "task-runner.pyz"


def test_member_0_publishes_where_there_is_no_chief() -> None:
    spec = with_storage()
    launch = launch_of("worker-0", spec)
    writer = told("worker-0", spec).storage.checkpoints.writer
    assert (writer.generation, writer.owner) == (1, launch.task_id)
    assert writer.lineage


def test_a_worker_beside_parameter_servers_has_no_part_in_checkpoints() -> None:
    storage = told("worker-1", with_storage()).storage
    assert storage.checkpoints is None
    assert storage.summaries is None


def test_each_member_of_a_multi_worker_gang_restores_and_one_publishes() -> None:
    plain = with_storage(strategy=Strategy.MULTI_WORKER)
    spec = dataclasses.replace(
        plain, roles=tuple(r for r in plain.roles if r.role is not TaskRole.PS)
    )
    other = told("worker-1", spec).storage.checkpoints
    assert (other.uri, other.initial_uri) == ("s3://bucket/run", "s3://bucket/first")
    assert (other.interval_seconds, other.keep) == (30.0, 3)
    assert other.writer is None
    assert told("worker-0", spec).storage.checkpoints.writer is not None


def with_role(role: TaskRole) -> ServiceSpec:
    spec = with_storage()
    return dataclasses.replace(spec, roles=(*spec.roles, RoleSpec(role, 1, SMALL, python="/py")))


def test_an_evaluator_restores_and_copies_its_summaries() -> None:
    storage = told("evaluator-0", with_role(TaskRole.EVALUATOR)).storage
    assert storage.checkpoints.writer is None
    assert storage.summaries.uri == "s3://bucket/run/logs"
    assert storage.data


def test_an_evaluator_alone_gets_newer_checkpoints_while_it_runs() -> None:
    spec = with_role(TaskRole.EVALUATOR)
    assert told("evaluator-0", spec).storage.checkpoints.follow
    assert not told("worker-0", spec).storage.checkpoints.follow


def test_tensorboard_shows_a_copy_of_the_summaries_in_s3() -> None:
    spec = told("tensorboard-0", with_role(TaskRole.TENSORBOARD))
    assert (spec.log_dir, spec.storage.shown.uri) == ("logs", "s3://bucket/run/logs")
    assert spec.storage.checkpoints is None
    assert not spec.storage.data


def test_who_trains_gets_the_data_and_a_parameter_server_does_not() -> None:
    assert told("worker-1", with_storage()).storage.data[0].uri == "s3://bucket/mnist"
    assert told("worker-1", with_storage()).storage.data_cache.directory == "/cache"
    assert told("ps-0", with_storage()).storage.data == ()


def test_the_output_of_every_task_is_shipped() -> None:
    logs = told("ps-0", with_storage()).storage.logs
    assert (logs.uri, logs.interval_seconds, logs.roll_bytes) == ("cloudwatch://training", 5, 2048)
    assert (logs.region, logs.endpoint_url) == ("eu-west-1", "http://127.0.0.1:5")


def test_every_task_is_told_how_s3_is_reached() -> None:
    s3 = told("ps-0", with_storage()).storage.s3
    assert (s3.endpoint_url, s3.region, s3.path_style, s3.ca_file) == (
        "http://127.0.0.1:9",
        "us-east-1",
        True,
        "ca.pem",
    )


def test_with_checkpoints_in_s3_the_task_has_them_in_its_sandbox() -> None:
    spec = told("worker-1", with_storage(job=JobSpec(shared_filesystem="s3://bucket")))
    assert (spec.checkpoint_dir, spec.log_dir, spec.shared_filesystem) == (
        "checkpoints",
        "checkpoints",
        "",
    )


def test_another_shared_filesystem_stays_the_log_directory() -> None:
    storage = dataclasses.replace(IN_S3, summaries_uri="")
    spec = told("worker-0", with_storage(storage, job=JobSpec(shared_filesystem="hdfs://d/s")))
    assert (spec.checkpoint_dir, spec.log_dir) == ("checkpoints", "hdfs://d/s")


def test_a_launch_refers_to_credentials_and_has_none() -> None:
    launch = launch_of("worker-0", with_storage())
    assert launch.credentials == CredentialsReference("AWS_")
    assert set(launch.secret_env) == {contract.RUNNER_TOKEN_VARIABLE}


def test_a_parameter_server_that_keeps_nothing_in_s3_gets_no_credentials() -> None:
    storage = dataclasses.replace(IN_S3, logs=LogShippingSpec())
    assert launch_of("ps-0", with_storage(storage)).credentials is None
    assert launch_of("ps-0", with_storage()).credentials is not None


def test_the_runners_spec_says_nothing_of_credentials() -> None:
    assert "credentials" not in json.loads(
        launch_of("worker-0", with_storage()).env[contract.RUNNER_SPEC_VARIABLE]
    ).get("s3")


@pytest.mark.parametrize("storage", [StorageSpec(), IN_S3])
def test_a_stored_service_is_read_again_as_it_was(storage: StorageSpec) -> None:
    spec = with_storage(storage)
    assert codec.decode(ServiceSpec, codec.encode(spec)) == spec
