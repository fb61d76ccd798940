"""Options that were given and do nothing beside the others: a sentence for each.

Called by ``options.service`` for the notes of a job. An option with its default counts as not
given: the app of a DC/OS package carries every option. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dcos_tensorflow.core.contract import TF_DATA_SERVICE
from dcos_tensorflow.options.cross_checks import image_of
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.sections.capacity import idle_capacity
from dcos_tensorflow.options.sections.role_models import (
    TensorBoard,
    count_of,
    gpus_of,
    role_options,
)
from dcos_tensorflow.options.sections.section import ROLE_GROUPS, differing
from dcos_tensorflow.options.sections.storage import storage_spec

_KERBEROS = "service.security.kerberos"
_PROXY = "gRPC between the tasks would go through the proxy, so it is unset"
#: Why none of a kind of task that has no count of its own.
_NOT_WANTED = {
    "tensorboard": "service.use_tensorboard is false",
    "data_dispatcher": "data_worker.count is 0",
}
#: Variables of any task that are not what the options say.
_REPLACED = {
    "http_proxy": _PROXY,
    "https_proxy": _PROXY,
    "all_proxy": _PROXY,
    "grpc_proxy": _PROXY,
    "PYTHONUNBUFFERED": "it is 1",
}


def idle_notes(options: Options) -> list[str]:
    """Return a sentence for each option that has no effect, and says which other one is why."""
    return [
        *_rows(options, _of_service(options)),
        *_of_roles(options),
        *_of_environments(options),
        *_rows(options, _of_storage(options)),
        *_rows(options, _of_workloads(options)),
        *_rows(options, _of_tracking(options)),
        *_rows(
            options, iter([("queue.teams", True, ": this is a job; queue serve serves a queue")])
        ),
        *_rows(options, _of_placement(options)),
        *_rows(options, idle_capacity(options)),
    ]


_Row = tuple[str, bool, str]


def _rows(options: Options, rows: Iterator[_Row]) -> Iterator[str]:
    """Yield the notes of the options that are given and idle: (path, is idle, why)."""
    return (
        f"{path}: has no effect{why}." for path, idle, why in rows if idle and _given(options, path)
    )


def _of_service(options: Options) -> Iterator[_Row]:
    service = options.service
    for name in ("tf_image", "gpu_tf_image", "containerizer", "tensorflow_version"):
        why = ": with service.python tasks run without a container image"
        yield f"service.{name}", bool(service.python), why
    image = any(count_of(options, group) and image_of(options, group) for group in ROLE_GROUPS)
    idle = not image and not service.python
    yield "service.containerizer", idle, ": no task runs in a container image"
    for name in ("name", "plugin_labels", "addresses"):
        why = " without service.virtual_network_enabled"
        yield f"service.virtual_network_{name}", not service.virtual_network_enabled, why
    for name in ("kdc.hostname", "kdc.port", "primary", "realm", "keytab_secret", "debug"):
        idle = not service.security.kerberos.enabled
        yield f"{_KERBEROS}.{name}", idle, f" without {_KERBEROS}.enabled"
    idle = not service.use_gcs_key_secret
    yield "service.gcs_key_secret", idle, " without service.use_gcs_key_secret"
    by_name = options.cluster_spec.addressing == "dns"
    yield "cluster_spec.dns_domain", not by_name, " unless cluster_spec.addressing is dns"


def _of_roles(options: Options) -> Iterator[str]:
    for group in ROLE_GROUPS:
        role = role_options(options, group)
        if not count_of(options, group):
            if differing(role) - {"count"}:
                why = _NOT_WANTED.get(group, f"{group}.count is 0")
                yield f"{group}: has no effect: {why}."
        elif not isinstance(role, TensorBoard) and not role.persistent_volume:
            volume = f"without {group}.persistent_volume"
            if role.disk_type == "MOUNT":
                yield f"{group}.disk_type: MOUNT has no effect {volume}."
            if "volume_path" in differing(role):
                yield f"{group}.volume_path: has no effect {volume}."


def _of_environments(options: Options) -> Iterator[str]:
    """Yield the variables that the task runner replaces or takes away (docs/job-contract.md)."""
    wanted = [group for group in ROLE_GROUPS if count_of(options, group)]
    for group in ("service", *wanted):
        concerned = wanted if group == "service" else [group]
        why = dict(_REPLACED)
        if not any(gpus_of(options, role) for role in concerned):
            why["CUDA_VISIBLE_DEVICES"] = "tasks without GPUs see none"
        if options.data_worker.count:
            why[TF_DATA_SERVICE] = "data_worker.count gives the job a service of its own"
        for name in getattr(options, group).env:
            known = why.get(name) or why.get(name.lower())
            if known:
                yield f"{group}.env.{name}: has no effect: {known}."


def _of_storage(options: Options) -> Iterator[_Row]:
    spec, logs, cache = storage_spec(options), options.logs, options.data_cache
    yield ("s3", not spec.is_used, ": nothing of the job is in S3")
    for name in ("interval_seconds", "keep"):
        why = ": checkpoints are not kept in S3"
        yield f"checkpoints.{name}", not spec.checkpoints.uri, why
    shares = bool(spec.data or options.service.requirements)
    yield "data_cache.directory", not shares, " without data in S3 or service.requirements"
    yield "data_cache.max_bytes", not cache.directory, " without data_cache.directory"
    for name in ("interval_seconds", "roll_bytes"):
        yield f"logs.{name}", not logs.uri, " without logs.uri"
    for name in ("region", "endpoint_url"):
        elsewhere = not logs.uri.startswith("cloudwatch://")
        yield f"logs.{name}", elsewhere, " unless logs.uri is in CloudWatch Logs"
    given = options.s3.credentials
    why = " without s3.credentials.file or s3.credentials.secret"
    yield "s3.credentials.profile", not (given.file or given.secret), why


def _of_tracking(options: Options) -> Iterator[_Row]:
    for name in ("experiment", "token"):
        yield f"mlflow.{name}", not options.mlflow.tracking_uri, " without mlflow.tracking_uri"


def _of_workloads(options: Options) -> Iterator[_Row]:
    yield "sweep.min_steps", options.sweep.early_stopping == "none", " without sweep.early_stopping"
    yield "batch.inputs.per_shard", bool(options.batch.inputs.range), " with batch.inputs.range"


def _of_placement(options: Options) -> Iterator[_Row]:
    weighted = options.placement.fitness == "weighted"
    for name in ("cpus", "mem", "gpus"):
        yield f"placement.weights.{name}", not weighted, " unless placement.fitness is weighted"


def _given(options: Options, path: str) -> bool:
    """Say whether something other than its default stands at a path."""
    *above, name = path.split(".")
    section: Any = options
    for key in above:
        section = getattr(section, key)
    return name in differing(section)
