"""The options about S3 to the StorageSpec that the core works with, and what to say of them.

Called by ``options.service``. Pure.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from dcos_tensorflow.core.spec.service_spec import LinkedData
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    DataCacheSpec,
    DataSpec,
    LogShippingSpec,
    S3Spec,
    StorageSpec,
)
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.storage_checks import checkpoints_uri
from dcos_tensorflow.options.storage_values import is_s3

_PATH_STYLE = {"auto": None, "path": True, "virtual": False}


def storage_spec(options: Options) -> StorageSpec:
    """Return what is kept in S3; all of it empty where nothing is."""
    checkpoints, logs, s3 = options.checkpoints, options.logs, options.s3
    given = s3.credentials
    return StorageSpec(
        checkpoints=CheckpointSpec(
            uri=checkpoints_uri(options),
            initial_uri=checkpoints.initial_uri,
            interval_seconds=checkpoints.interval_seconds,
            keep=checkpoints.keep,
        ),
        summaries_uri=_summaries_uri(options),
        shards_uri=options.batch.output if is_s3(options.batch.output) else "",
        data=tuple(DataSpec(one.uri, one.path) for one in options.data if is_s3(one.uri)),
        data_cache=DataCacheSpec(options.data_cache.directory, options.data_cache.max_bytes),
        logs=LogShippingSpec(
            logs.uri, logs.interval_seconds, logs.roll_bytes, logs.region, logs.endpoint_url
        ),
        s3=S3Spec(
            endpoint_url=s3.endpoint_url,
            region=s3.region,
            path_style=_PATH_STYLE[s3.addressing_style],
            ca_file=s3.ca_file,
            credentials=CredentialsReference(given.env, given.file, given.profile, given.secret)
            if given.env or given.file or given.secret
            else None,
        ),
    )


def linked_data(options: Options) -> tuple[LinkedData, ...]:
    """Return the input data that is a file or folder of a machine, by its path there."""
    return tuple(
        LinkedData(unquote(urlsplit(one.uri).path) if "://" in one.uri else one.uri, one.path)
        for one in options.data
        if not is_s3(one.uri)
    )


def shared_directory(options: Options) -> str:
    """Return the directory that all machines share for checkpoints; empty when there is none."""
    return _directory(options.checkpoints.uri)


def shared_directories(options: Options) -> tuple[str, ...]:
    """Return the directories of all machines in which tasks keep checkpoints and summaries."""
    places = (shared_directory(options), _directory(options.service.shared_filesystem))
    return tuple(dict.fromkeys(place.rstrip("/") for place in places if place.strip("/")))


def _directory(uri: str) -> str:
    """Return the absolute path that a place is; empty for one that is reached in another way."""
    if "://" in uri:
        parts = urlsplit(uri)
        return unquote(parts.path) if parts.scheme == "file" else ""
    return uri if uri.startswith("/") else ""


def storage_notes(options: Options) -> list[str]:
    """Return a sentence for each option about S3 that has an unexpected effect."""
    found = []
    spec = storage_spec(options)
    several = options.chief.count + options.worker.count + options.gpu_worker.count > 1
    if spec.checkpoints.uri and several and options.service.strategy == "independent":
        found.append(
            "checkpoints.uri: with service.strategy independent only the checkpoints of the first "
            "task that trains are kept there."
        )
    if spec.is_used and spec.s3.credentials is None:
        found.append(
            "s3.credentials: none are given: tasks use those of their machine, such as the role "
            "of its instance."
        )
    if spec.s3.credentials is not None and options.service.containerizer == "docker":
        found.append(
            "s3.credentials: the docker containerizer has no secrets: every user of Mesos that may "
            "see the tasks can read these credentials."
        )
    return found


def _summaries_uri(options: Options) -> str:
    """Return where the log directory is copied: a job's summaries must outlive its machines too."""
    shared = options.service.shared_filesystem
    if shared:
        return shared.rstrip("/") if is_s3(shared) else ""
    return f"{options.checkpoints.uri}/logs" if is_s3(options.checkpoints.uri) else ""
