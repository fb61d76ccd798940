"""A job that keeps checkpoints in S3: its tasks have the keys, and what is denied them is told."""

import dataclasses
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from dcos_tensorflow.api.views.health import Health, health
from dcos_tensorflow.client.snapshot import snapshot_of
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    S3Spec,
    StorageSpec,
)
from dcos_tensorflow.scheduler.scheduler import Scheduler
from jobs.scheduled_jobs import command_job, running, wait_until
from servers.s3_server import KEY_ID, SECRET_KEY, Fault, S3Server


def test_a_denied_bucket_stops_no_training_and_is_told_where_people_look(
    schedule: Callable[..., Scheduler], tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(
        f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    with closing(S3Server()) as server:
        server.fault = lambda request: (
            Fault(403, "AccessDenied")
            if request.method == "PUT" and "/run/" in request.path
            else None
        )
        storage = StorageSpec(
            checkpoints=CheckpointSpec("s3://bucket/run", interval_seconds=0.5),
            s3=S3Spec(server.url, "us-east-1", credentials=CredentialsReference(file=str(keys))),
        )
        job = dataclasses.replace(command_job("sleep 60", workers=1), storage=storage)
        scheduler = schedule(job)
        # Of a task without the keys there would be another problem.
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
