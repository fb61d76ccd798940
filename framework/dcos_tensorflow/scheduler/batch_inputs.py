"""What a batch finds at its inputs and at its output: listings of S3 and of folders, manifests.

Called by ``scheduler.units`` on its thread: all of it may block. What follows from it the producer
decides (``workloads.batch``). Credentials are those that tasks get; they are in no message.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core.model.spec import ServiceSpec
from dcos_tensorflow.core.model.workload_spec import OUTPUT_INDEX, BatchSpec
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler import object_stores
from dcos_tensorflow.scheduler.secret_sources import NOTHING_ALLOWED, AllowedSources
from dcos_tensorflow.workloads.producer import WorkloadError

if TYPE_CHECKING:
    from dcos_tensorflow.task.storage.object_store import ObjectStore

_S3 = "s3://"
_MOST_MANIFEST_BYTES = 256 * 1024 * 1024


class InputsAway(Exception):
    """What is asked for cannot be reached now; waiting may help. The text says why."""


@dataclass(frozen=True)
class Inputs:
    """What was found: ``listed`` at ``BatchSpec.listing``, in order; ``existing`` outputs."""

    listed: Sequence[str] = ()
    existing: Collection[str] = ()


NO_INPUTS = Inputs()


def look(
    spec: ServiceSpec,
    credentials: Mapping[str, str],
    allowed: AllowedSources = NOTHING_ALLOWED,
) -> Inputs:
    """Return what a service's batch finds; nothing for another service.

    ``credentials`` are variables as boto3 reads them; ``allowed`` says whether, with none, boto3
    may find the scheduler's own. Raises WorkloadError and InputsAway.
    """
    work = spec.workload
    if not isinstance(work, BatchSpec):
        return NO_INPUTS
    connected: dict[str, ObjectStore] = {}

    def store(bucket: str) -> ObjectStore:
        if bucket not in connected:
            connected[bucket] = _asked(
                lambda: object_stores.connected(spec, credentials, bucket, allowed)
            )
        return connected[bucket]

    listed = _listed(work.listing, store) if work.listing else ()
    if work.listing and not listed:
        raise WorkloadError(f"there is nothing to work on: nothing is listed at {work.listing}")
    return Inputs(listed, _existing(work, store))


def _listed(listing: str, store: Callable[[str], ObjectStore]) -> Sequence[str]:
    if listing.startswith(_S3) and listing.endswith("/"):
        # What ends in a slash stands for a folder in some tools, and holds nothing.
        return [uri for uri in _below(listing, store) if not uri.endswith("/")]
    text = _manifest(listing, store)
    return [line for line in map(str.strip, text.splitlines()) if line]


def _manifest(path: str, store: Callable[[str], ObjectStore]) -> str:
    try:
        if path.startswith(_S3):
            bucket, key = _split(path)
            data = _asked(lambda: store(bucket).get(key, _MOST_MANIFEST_BYTES)[0])
            return bytes(data).decode()
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise WorkloadError(f"batch.inputs.manifest: {path} is not UTF-8 text") from None
    except OSError as error:
        raise WorkloadError(f"batch.inputs.manifest: {path}: {error.strerror}") from None


def _existing(work: BatchSpec, store: Callable[[str], ObjectStore]) -> Collection[str]:
    """Return what is there that the outputs may be, by the names that they would have."""
    if work.output.startswith(_S3):
        return set(_below(work.output.partition("{")[0], store))
    parts: list[str] = []
    end = 0
    for found in OUTPUT_INDEX.finditer(work.output):
        parts += (glob.escape(work.output[end : found.start()]), "*")
        end = found.end()
    pattern = "".join((*parts, glob.escape(work.output[end:])))
    return {path for path in glob.iglob(pattern, include_hidden=True) if os.path.lexists(path)}


def _below(uri: str, store: Callable[[str], ObjectStore]) -> list[str]:
    """Return the objects whose names begin so, sorted."""
    bucket, prefix = _split(uri)
    listed = _asked(lambda: [each.key for each in store(bucket).list(prefix)])
    return sorted(f"{_S3}{bucket}/{key}" for key in listed)


def _split(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix(_S3).partition("/")
    return bucket, key


def _asked(ask: Callable[[], Any]) -> Any:
    """Return what S3 answers. Raises WorkloadError and InputsAway."""
    from dcos_tensorflow.task.storage.errors import StorageError

    try:
        return ask()
    except StorageError as error:
        raise (InputsAway if error.problem.retryable else WorkloadError)(str(error)) from None
