"""A job that keeps things in S3: its tasks get the keys and the runner that brings boto3."""

import dataclasses
import logging
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.api.views.health import Health, health
from dcos_tensorflow.client.snapshot import snapshot_of
from dcos_tensorflow.core.contract import EXIT_JOB_UNUSABLE
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    LogShippingSpec,
    S3Spec,
    StorageSpec,
)
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.scheduler.beginning import NothingInForce
from dcos_tensorflow.scheduler.scheduler import Scheduler
from s3_server import KEY_ID, SECRET_KEY, Fault, S3Server
from scheduled_jobs import command_job, done, running, wait_until

Made = Callable[..., Scheduler]


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(
        f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    return file


def in_s3(job: ServiceSpec, server: S3Server, keys: Path) -> ServiceSpec:
    storage = StorageSpec(
        logs=LogShippingSpec("s3://bucket/logs"),
        s3=S3Spec(
            endpoint_url=server.url,
            region="us-east-1",
            credentials=CredentialsReference(file=str(keys)),
        ),
    )
    return dataclasses.replace(job, storage=storage)


def test_tasks_get_the_keys_and_the_runner_with_boto3(
    schedule: Made,
    server: S3Server,
    keys: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = tmp_path / "seen"
    seen.mkdir()
    command = (
        f'printenv AWS_SECRET_ACCESS_KEY > {seen}/"$TASK_NAME"; '
        f'cp "$MESOS_SANDBOX/task-runner.pyz" {seen}/"$TASK_NAME.pyz"'
    )
    scheduler = schedule(in_s3(command_job(command), server, keys))
    wait_until(scheduler, done)
    assert (seen / "worker-0").read_text() == (seen / "worker-1").read_text() == f"{SECRET_KEY}\n"
    with zipfile.ZipFile(seen / "worker-0.pyz") as runner:
        assert "libraries/boto3/__init__.py" in runner.namelist()
    scheduler.stop()
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("state.db*"))
    assert b"worker-0" in stored
    assert SECRET_KEY.encode() not in stored
    assert SECRET_KEY not in caplog.text


def test_a_denied_bucket_stops_no_training_and_is_told_where_people_look(
    schedule: Made, server: S3Server, keys: Path
) -> None:
    server.fault = lambda request: (
        Fault(403, "AccessDenied") if request.method == "PUT" and "/run/" in request.path else None
    )
    job = in_s3(command_job("sleep 60", workers=1), server, keys)
    checkpoints = CheckpointSpec("s3://bucket/run", interval_seconds=0.5)
    storage = dataclasses.replace(job.storage, checkpoints=checkpoints)
    scheduler = schedule(dataclasses.replace(job, storage=storage))
    state = wait_until(
        scheduler,
        lambda state: (
            [(problem.task, problem.kind) for problem in snapshot_of(state).storage_problems]
            == [("worker-0", ("checkpoints", "denied"))]
        ),
    )
    (problem,) = snapshot_of(state).storage_problems
    assert "allow s3:GetObject, s3:PutObject" in problem.text
    assert running(state)
    assert health(state)[0] is Health.DEGRADED


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(404, "NoSuchBucket"), "create the bucket"),
        (Fault(403, "AccessDenied"), "allow s3:GetObject"),
        (Fault(403, "InvalidAccessKeyId"), "set AWS_ACCESS_KEY_ID"),
    ],
)
def test_what_s3_refuses_for_good_ends_a_first_start_at_once(
    schedule: Made, server: S3Server, keys: Path, fault: Fault, said: str
) -> None:
    server.fault = lambda request: fault if "/run/" in request.path else None
    job = in_s3(command_job("sleep 60"), server, keys)
    storage = dataclasses.replace(job.storage, checkpoints=CheckpointSpec("s3://bucket/run"))
    state = wait_until(schedule(dataclasses.replace(job, storage=storage)), done)
    verdict = state.job.verdict
    assert verdict is not None
    assert verdict.exit_code == EXIT_JOB_UNUSABLE
    assert fault.code in verdict.summary
    assert said in verdict.summary
    assert len(state.job.incidents) == 1


def test_a_job_without_its_keys_is_not_begun(
    schedule: Made, server: S3Server, tmp_path: Path
) -> None:
    with pytest.raises(NothingInForce) as refused:
        schedule(in_s3(command_job("true"), server, tmp_path / "missing"))
    assert str(refused.value).startswith(f"s3.credentials: {tmp_path}/missing cannot be read")


def test_options_with_keys_that_cannot_be_read_are_refused(schedule: Made, tmp_path: Path) -> None:
    scheduler = schedule(command_job("sleep 60", workers=1))
    wait_until(scheduler, running)
    changed = {
        "service": {"name": "job", "job_cmd": "sleep 60"},
        "logs": {"uri": "s3://bucket/logs"},
        "s3": {"credentials": {"env": "NO_SUCH_"}},
    }
    with pytest.raises(OptionsError) as refused:
        scheduler.change_configuration(changed)
    assert str(refused.value.problems[0]) == (
        "s3.credentials: the variables NO_SUCH_* have no ACCESS_KEY_ID and no SECRET_ACCESS_KEY"
    )
