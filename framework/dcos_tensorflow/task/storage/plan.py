"""What one task keeps where, as the engines take it: made of the runner's spec, checked.

``task_storage`` works by it. Pure: no request, no file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Optional, Tuple

from dcos_tensorflow.task.storage.data import DataCache, DataItem
from dcos_tensorflow.task.storage.location import S3Settings
from dcos_tensorflow.task.storage.manifest import Writer
from dcos_tensorflow.task.storage_spec import S3Access, Storage


@dataclass(frozen=True)
class StoragePlan:
    """What one task keeps where. Seconds; an empty URI means that there is no such thing.

    ``writer`` is set for the one task that publishes (the chief, else member 0); None only reads.
    ``follow`` is the evaluator: newer checkpoints come while it runs. ``shown_uri`` is what
    TensorBoard shows.
    """

    sandbox: str
    checkpoint_dir: str = ""
    log_dir: str = ""
    s3: S3Settings = S3Settings()
    checkpoints_uri: str = ""
    initial_uri: str = ""
    summaries_uri: str = ""
    shown_uri: str = ""
    interval_seconds: float = 60.0
    keep: int = 5
    writer: Optional[Writer] = None
    follow: bool = False
    data: Tuple[DataItem, ...] = ()
    cache: Optional[DataCache] = None


def plan_of(storage: Storage, sandbox: str, checkpoint_dir: str, log_dir: str) -> StoragePlan:
    """Return the plan of a task whose directories are these. Raises LocationError."""
    plan = StoragePlan(
        sandbox=sandbox,
        checkpoint_dir=checkpoint_dir,
        log_dir=log_dir,
        s3=settings_of(storage.s3, sandbox),
        summaries_uri=storage.summaries_uri,
        shown_uri=storage.shown_uri,
        data=tuple(DataItem(item.uri, item.path) for item in storage.data),
    )
    cache, place = storage.data_cache, storage.checkpoints
    fields = dict(vars(plan))
    if cache is not None:
        fields["cache"] = DataCache(cache.directory, cache.max_bytes)
    if place is not None:
        writer = place.writer
        fields.update(
            checkpoints_uri=place.uri,
            initial_uri=place.initial_uri,
            interval_seconds=place.interval_seconds,
            keep=place.keep,
            follow=place.follow,
            writer=Writer(writer.lineage, writer.generation, writer.owner) if writer else None,
        )
    return StoragePlan(**fields)


def settings_of(access: S3Access, sandbox: str) -> S3Settings:
    """Return how S3 is reached. Raises LocationError."""
    return S3Settings(
        endpoint_url=access.endpoint_url,
        region=access.region,
        path_style=access.path_style,
        ca_bundle=os.path.join(sandbox, access.ca_file) if access.ca_file else "",
    )
