"""Which task is told what of S3: the storage sections of a runner's spec (docs/task-runner.md).

Called by ``core.launch``. Pure; knows references to credentials and never the credentials.
"""

from __future__ import annotations

from typing import Any

from dcos_tensorflow.core.cluster_spec import decider, rendered_strategy
from dcos_tensorflow.core.spec import TRAINING_ROLES, ServiceSpec, Strategy, TaskRole
from dcos_tensorflow.core.storage_spec import CredentialsReference
from dcos_tensorflow.core.task import TaskRecord

#: In the sandbox: where a task has its checkpoints, unless all machines share a directory.
CHECKPOINT_DIRECTORY = "checkpoints"


def checkpoints_place(spec: ServiceSpec) -> str:
    """Return where the checkpoints outlive their task, for people; empty when nowhere."""
    return spec.storage.checkpoints.uri or spec.job.checkpoint_dir or spec.job.shared_filesystem


def directories(spec: ServiceSpec, role: TaskRole) -> dict[str, str]:
    """Return ``checkpoint_dir``, ``log_dir`` and ``shared_filesystem`` of a runner's spec.

    TensorFlow has no S3 of its own since 2.6, so what is in S3 is a directory in the sandbox to
    the task, and its runner brings it there and back. The log directory is that of the
    checkpoints then: a job that knows its ``log_dir`` alone keeps its checkpoints in it.
    TensorBoard reads S3 by itself.
    """
    job, storage = spec.job, spec.storage
    shared = "" if storage.summaries_uri else job.shared_filesystem
    if storage.checkpoints.uri:
        checkpoints = CHECKPOINT_DIRECTORY
    else:
        checkpoints = job.checkpoint_dir or shared or CHECKPOINT_DIRECTORY
    reads_s3 = storage.summaries_uri if role is TaskRole.TENSORBOARD else ""
    return {
        "checkpoint_dir": checkpoints,
        "log_dir": reads_s3 or shared or checkpoints,
        "shared_filesystem": shared,
    }


def sections(spec: ServiceSpec, record: TaskRecord, lineage: str) -> dict[str, Any]:
    """Return ``checkpoints``, ``summaries``, ``data``, ``data_cache``, ``logs`` and ``s3``.

    What a task has no part in is null or empty. ``lineage`` tells the writers of this job from
    those of any other.
    """
    storage = spec.storage
    logs, s3 = storage.logs, storage.s3
    reads_data = record.role in (*TRAINING_ROLES, TaskRole.EVALUATOR)
    return {
        "checkpoints": _checkpoints(spec, record, lineage),
        "summaries": _summaries(spec, record),
        "data": [{"uri": d.uri, "path": d.path} for d in storage.data if reads_data],
        "data_cache": {
            "directory": storage.data_cache.directory,
            "max_bytes": storage.data_cache.max_bytes,
        }
        if reads_data and storage.data and storage.data_cache.directory
        else None,
        "logs": {
            "uri": logs.uri,
            "interval_seconds": logs.interval_seconds,
            "roll_bytes": logs.roll_bytes,
            "region": logs.region,
            "endpoint_url": logs.endpoint_url,
        }
        if logs.uri
        else None,
        "s3": {
            "endpoint_url": s3.endpoint_url,
            "region": s3.region,
            "path_style": s3.path_style,
            "ca_file": s3.ca_file,
        },
    }


def credentials(spec: ServiceSpec, role: TaskRole) -> CredentialsReference | None:
    """Return where the credentials of a role's tasks are; None when they are given none."""
    storage = spec.storage
    # Parameter servers keep nothing in S3 by themselves, but for their output.
    used = storage.is_used if role is not TaskRole.PS else bool(storage.logs.uri)
    return storage.s3.credentials if used else None


def _checkpoints(spec: ServiceSpec, record: TaskRecord, lineage: str) -> dict[str, Any] | None:
    """Return the section of a task that restores, null for one that does not.

    Parameter servers get their values from the chief, and so do its workers. In a gang without
    parameter servers each member restores, and the same.
    """
    wanted = spec.storage.checkpoints
    writes = record.name == decider(spec)
    together = rendered_strategy(spec) is Strategy.MULTI_WORKER and record.role in TRAINING_ROLES
    if not wanted.uri or not (writes or together or record.role is TaskRole.EVALUATOR):
        return None
    writer = {"lineage": lineage, "generation": record.attempt, "owner": record.task_id}
    return {
        "uri": wanted.uri,
        "initial_uri": wanted.initial_uri,
        "interval_seconds": wanted.interval_seconds,
        "keep": wanted.keep,
        "writer": writer if writes else None,
    }


def _summaries(spec: ServiceSpec, record: TaskRecord) -> dict[str, Any] | None:
    uri = spec.storage.summaries_uri
    writes = record.role is TaskRole.EVALUATOR or record.name == decider(spec)
    return {"uri": uri} if uri and writes else None
