"""A secret that is missing holds up launches, and nothing that runs."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from dcos_tensorflow.core.model.events import PodCommand, PodVerb
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.scheduler.scheduler import Scheduler
from jobs.scheduled_jobs import command_job, running, wait_until

Made = Callable[..., Scheduler]

VALUE = "hush-4711"


def test_a_running_job_outlives_the_loss_of_its_secret_and_is_healed_when_it_is_back(
    schedule: Made, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(VALUE)
    job = command_job("sleep 60", workers=1)
    secret = TaskSecret(f"file:{file}", env="KEY", option="worker.secrets.0")
    roles = tuple(dataclasses.replace(role, secrets=(secret,)) for role in job.roles)
    job = dataclasses.replace(job, roles=roles)
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
