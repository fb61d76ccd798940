"""The storage sections of a task runner's spec, by task: its part in S3 (docs/task-runner.md).

Called by ``core.cluster.launch``. Pure; knows references to credentials and never the credentials.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dcos_tensorflow.core.cluster.output_places import Run, output_uri
from dcos_tensorflow.core.cluster.rendering import rendered_strategy
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.core.spec.service_spec import (
    TRAINING_ROLES,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
    name_in_gang,
)
from dcos_tensorflow.core.spec.storage_spec import CredentialsReference

#: In the sandbox: where a task has its checkpoints, unless all machines share a directory.
CHECKPOINT_DIRECTORY = "checkpoints"
#: In TensorBoard's sandbox: the copy of the log directory that it shows.
SHOWN_DIRECTORY = "logs"
#: In the sandbox: a credentials file of AWS that is a secret.
CREDENTIALS_FILE = ".secrets/aws-credentials"
#: What boto3 finds that file and its profile by (boto3 guide, "Credentials").
_CREDENTIALS_VARIABLE, _PROFILE_VARIABLE = "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE"


def checkpoints_place(spec: ServiceSpec) -> str:
    """Return where the checkpoints outlive their task, for people; empty when nowhere."""
    return spec.storage.checkpoints.uri or spec.job.checkpoint_dir or spec.job.shared_filesystem


def _own_directory(spec: ServiceSpec, role: TaskRole) -> str:
    """Return where in the sandbox a task has its checkpoints: in its volume, if it has one."""
    found = spec.role(role)
    return found.volume.path if found is not None and found.volume else CHECKPOINT_DIRECTORY


def directories(spec: ServiceSpec, role: TaskRole) -> dict[str, str]:
    """Return ``checkpoint_dir``, ``log_dir`` and ``shared_filesystem`` of a runner's spec.

    TensorFlow has no S3 of its own since 2.6, so what is in S3 is a directory in the sandbox to
    the task, and its runner brings it there and back. The log directory is that of the
    checkpoints then: a job that knows its ``log_dir`` alone keeps its checkpoints in it.
    """
    job, storage = spec.job, spec.storage
    shared = "" if storage.summaries_uri else job.shared_filesystem
    if storage.checkpoints.uri:
        checkpoints = CHECKPOINT_DIRECTORY
    else:
        checkpoints = job.checkpoint_dir or shared or _own_directory(spec, role)
    is_copy = role is TaskRole.TENSORBOARD and bool(storage.summaries_uri)
    return {
        "checkpoint_dir": checkpoints,
        "log_dir": SHOWN_DIRECTORY if is_copy else shared or checkpoints,
        "shared_filesystem": shared,
    }


def sections(spec: ServiceSpec, record: TaskRecord, run: Run) -> dict[str, Any]:
    """Return ``checkpoints``, ``summaries``, ``output`` and so on, each as its runner is told.

    What a task has no part in is null or empty.
    """
    storage = spec.storage
    s3 = asdict(storage.s3)
    # Where the credentials are is the scheduler's business.
    del s3["credentials"]
    reads = record.role.uses_data
    caches = reads and storage.data and storage.data_cache.directory
    return {
        "checkpoints": _checkpoints(spec, record, run.instance),
        "summaries": _summaries(spec, record),
        "output": _output(spec, record, run),
        "shown": _shown(spec, record),
        "data": [asdict(each) for each in storage.data if reads],
        "data_cache": asdict(storage.data_cache) if caches else None,
        "logs": asdict(storage.logs) if storage.logs.uri else None,
        "s3": s3,
    }


def credentials(spec: ServiceSpec, role: TaskRole) -> CredentialsReference | None:
    """Return where the scheduler finds the credentials of a role's tasks; None: nowhere."""
    found = _credentials(spec, role)
    return None if found is None or found.secret else found


def secrets(spec: ServiceSpec, role: TaskRole) -> tuple[TaskSecret, ...]:
    """Return the secret that is the credentials of a role's tasks, if it is one."""
    found = _credentials(spec, role)
    if found is None or not found.secret:
        return ()
    return (TaskSecret(found.secret, file=CREDENTIALS_FILE, option="s3.credentials.secret"),)


def sandbox_env(spec: ServiceSpec, role: RoleSpec) -> dict[str, str]:
    """Return the variable that names such a secret's file, as a path below the sandbox."""
    return {_CREDENTIALS_VARIABLE: CREDENTIALS_FILE} if secrets(spec, role.role) else {}


def env(spec: ServiceSpec, role: TaskRole) -> dict[str, str]:
    """Return the variable that names the profile in such a secret's file."""
    found = _credentials(spec, role)
    if found is None or not found.secret or found.profile == "default":
        return {}
    return {_PROFILE_VARIABLE: found.profile}


def _credentials(spec: ServiceSpec, role: TaskRole) -> CredentialsReference | None:
    storage = spec.storage
    # What only serves keeps nothing in S3 by itself, but for its output.
    serves = role in (TaskRole.PS, TaskRole.DATA_DISPATCHER)
    used = bool(storage.logs.uri) if serves else storage.is_used
    return storage.s3.credentials if used else None


def _checkpoints(spec: ServiceSpec, record: TaskRecord, lineage: str) -> dict[str, Any] | None:
    """Return the section of a task that restores, null for one that does not.

    Attempts are counted anew in another ``lineage``, which is the run's instance.
    Parameter servers get their values from the chief, and so do its workers. In a gang without
    parameter servers each member restores, and the same.
    """
    wanted = spec.storage.checkpoints
    writes = name_in_gang(record.name) == spec.decider
    together = rendered_strategy(spec) is Strategy.MULTI_WORKER and record.role in TRAINING_ROLES
    if not wanted.uri or not (writes or together or record.role is TaskRole.EVALUATOR):
        return None
    writer = {"lineage": lineage, "generation": record.attempt, "owner": record.task_id}
    return {
        **asdict(wanted),
        "writer": writer if writes else None,
        "follow": record.role is TaskRole.EVALUATOR,
    }


def _summaries(spec: ServiceSpec, record: TaskRecord) -> dict[str, Any] | None:
    uri = spec.storage.summaries_uri
    writes = record.role is TaskRole.EVALUATOR or name_in_gang(record.name) == spec.decider
    return {"uri": uri} if uri and writes else None


def _output(spec: ServiceSpec, record: TaskRecord, run: Run) -> dict[str, Any] | None:
    uri = output_uri(spec, record.role, record.name, run)
    return {"uri": uri} if uri else None


def _shown(spec: ServiceSpec, record: TaskRecord) -> dict[str, Any] | None:
    uri = spec.storage.summaries_uri
    return {"uri": uri} if uri and record.role is TaskRole.TENSORBOARD else None
