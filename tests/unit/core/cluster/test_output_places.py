"""Where tasks leave what the job makes: where its checkpoints lie, and each run's apart."""

import dataclasses

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.output_places import Run, output_dir, output_place, output_uri
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, TaskRole
from dcos_tensorflow.core.spec.storage_spec import CheckpointSpec, StorageSpec
from dcos_tensorflow.task.spec import parse_spec
from simulated.scheduler import small_job, started

RUN = Run(3, "0123456789abcdef")
HERE = dataclasses.replace(RUN, home="/home/me/mnist/output")
IN_S3 = StorageSpec(checkpoints=CheckpointSpec("s3://bucket/mnist"))


NOWHERE = StorageSpec()


def job(storage: StorageSpec = NOWHERE, **of_job: str) -> ServiceSpec:
    spec = small_job()
    return dataclasses.replace(spec, storage=storage, job=dataclasses.replace(spec.job, **of_job))


def directory_of(spec: ServiceSpec, run: Run) -> str:
    role = spec.role(TaskRole.WORKER)
    assert role is not None
    return output_dir(spec, role, "worker-1", run)


@pytest.mark.parametrize(
    ("spec", "run", "directory", "place"),
    [
        (job(), RUN, "job-output", ""),
        (job(), HERE, "/home/me/mnist/output/3/worker-1", "/home/me/mnist/output/3"),
        (
            job(checkpoint_dir="/shared/mnist/"),
            RUN,
            "/shared/mnist/output/3-01234567/worker-1",
            "/shared/mnist/output/3-01234567",
        ),
        (
            job(shared_filesystem="hdfs://h/mnist"),
            RUN,
            "hdfs://h/mnist/output/3-01234567/worker-1",
            "hdfs://h/mnist/output/3-01234567",
        ),
        (job(IN_S3), RUN, "job-output", "s3://bucket/mnist/output/3-01234567"),
    ],
)
def test_it_lies_where_the_checkpoints_do(
    spec: ServiceSpec, run: Run, directory: str, place: str
) -> None:
    assert directory_of(spec, run) == directory
    assert output_place(spec, run) == place


def test_what_is_in_s3_is_that_of_the_tasks_that_run_the_code_and_save() -> None:
    spec = job(IN_S3)
    kept = "s3://bucket/mnist/output/3-01234567/worker-1"
    assert output_uri(spec, TaskRole.WORKER, "worker-1", RUN) == kept
    assert output_uri(spec, TaskRole.EVALUATOR, "evaluator-0", RUN).endswith("/evaluator-0")
    assert output_uri(spec, TaskRole.PS, "ps-0", RUN) == ""
    assert output_uri(job(), TaskRole.WORKER, "worker-1", RUN) == ""


def test_each_task_is_told_its_own() -> None:
    scheduler = started(job(IN_S3))
    told = {}
    for name in ("worker-0", "worker-1"):
        launch = scheduler.cluster.tasks[scheduler.cluster.id_of(name)].launch
        spec = parse_spec(
            launch.env[contract.RUNNER_SPEC_VARIABLE],
            launch.env.get(contract.RUNNER_ADDRESSES_VARIABLE, ""),
        )
        assert spec.storage.output is not None
        told[name] = spec.storage.output.uri
    instance = scheduler.state.instance[:8]
    assert told == {
        name: f"s3://bucket/mnist/output/1-{instance}/{name}" for name in ("worker-0", "worker-1")
    }
