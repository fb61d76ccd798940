"""A job with secrets: its tasks get them; a missing one holds up launches, nothing that runs."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from dcos_tensorflow.core.model.events import PodCommand, PodVerb
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.scheduler.beginning import NothingInForce
from dcos_tensorflow.scheduler.scheduler import Scheduler
from scheduled_jobs import command_job, done, running, wait_until

Made = Callable[..., Scheduler]

VALUE = "hush-4711"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(VALUE)
    return path


def with_secret(job: ServiceSpec, file: Path) -> ServiceSpec:
    secret = TaskSecret(f"file:{file}", env="KEY", option="worker.secrets.0")
    roles = tuple(dataclasses.replace(role, secrets=(secret,)) for role in job.roles)
    return dataclasses.replace(job, roles=roles)


def test_tasks_get_their_secret_and_the_store_does_not(
    schedule: Made, file: Path, tmp_path: Path, marks: Path
) -> None:
    job = with_secret(command_job(f'printf %s "$KEY" > {marks}/"$TASK_NAME"'), file)
    scheduler = schedule(job)
    wait_until(scheduler, done)
    assert (marks / "worker-0").read_text() == (marks / "worker-1").read_text() == VALUE
    scheduler.stop()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("state.db*"))
    assert b"worker.secrets.0" in stored
    assert VALUE.encode() not in stored


def test_a_job_without_its_secret_is_not_begun(schedule: Made, tmp_path: Path) -> None:
    with pytest.raises(NothingInForce, match=r"^worker\.secrets\.0: .*/none cannot be read"):
        schedule(with_secret(command_job("true"), tmp_path / "none"))


def test_options_whose_secret_is_missing_are_refused(schedule: Made, tmp_path: Path) -> None:
    scheduler = schedule(command_job("sleep 60", workers=1))
    wait_until(scheduler, running)
    secrets = [{"source": "env:NOT_THERE", "env": "KEY"}]
    changed = {"service": {"name": "job", "job_cmd": "sleep 60"}, "worker": {"secrets": secrets}}
    with pytest.raises(OptionsError, match=r"worker\.secrets\.0: the scheduler has no variable"):
        scheduler.change_configuration(changed)


def test_a_running_job_outlives_the_loss_of_its_secret_and_is_healed_when_it_is_back(
    schedule: Made, file: Path
) -> None:
    job = with_secret(command_job("sleep 60", workers=1), file)
    first = schedule(job)
    wait_until(first, running)
    first.stop()
    file.unlink()
    second = schedule(job)
    state = wait_until(second, running)
    second.submit(PodCommand(PodVerb.REPLACE, ("worker-0",)))
    missing = f"worker.secrets.0: {file} cannot be read"
    wait_until(second, lambda state: any(missing in each.summary for each in state.job.incidents))
    file.write_text(VALUE)
    healed = wait_until(second, running)
    assert healed.tasks["worker-0"].task_id != state.tasks["worker-0"].task_id
