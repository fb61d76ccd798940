"""What a batch finds at its inputs and at its output: listings of S3 and of folders, manifests.

Called by ``scheduler.unit_producer`` on its thread: all of it may block. What follows from it the
producer decides (``workloads.batch``). Credentials are those that tasks get; they are in no
message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.gate import Gate, GateError
from dcos_tensorflow.workloads.producer import WorkloadError

if TYPE_CHECKING:
    from dcos_tensorflow.task.storage.s3.object_store import ObjectStore

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


def look(spec: ServiceSpec, credentials: Mapping[str, str], gate: Gate) -> Inputs:
    """Return what a service's batch finds; nothing for another service.

    ``credentials`` are variables as boto3 reads them, none where the options name none. Raises
    WorkloadError and InputsAway.
    """
    work = spec.workload
    if not isinstance(work, BatchSpec):
        return NO_INPUTS

    def store(place: str) -> ObjectStore:
        found: ObjectStore = _asked(lambda: gate.objects(spec.storage.s3, credentials, place))
        return found

    listed = _listed(work.listing, store, gate) if work.listing else ()
    if work.listing and not listed:
        raise WorkloadError(f"there is nothing to work on: nothing is listed at {work.listing}")
    return Inputs(listed, _existing(work, store, gate))


def _listed(listing: str, store: Callable[[str], ObjectStore], gate: Gate) -> Sequence[str]:
    if listing.startswith(_S3) and listing.endswith("/"):
        # What ends in a slash stands for a folder in some tools, and holds nothing.
        return [uri for uri in _below(listing, store) if not uri.endswith("/")]
    text = _manifest(listing, store, gate)
    return [line for line in map(str.strip, text.splitlines()) if line]


def _manifest(path: str, store: Callable[[str], ObjectStore], gate: Gate) -> str:
    try:
        if path.startswith(_S3):
            _, key = _split(path)
            data = _asked(lambda: store(path).get(key, _MOST_MANIFEST_BYTES)[0])
            return bytes(data).decode()
        return gate.manifest(Path(path), _MOST_MANIFEST_BYTES).decode()
    except GateError as error:
        # A job that runs waits until the operator allows it.
        raise InputsAway(f"batch.inputs.manifest: {error}") from None
    except UnicodeDecodeError:
        raise WorkloadError(f"batch.inputs.manifest: {path} is not UTF-8 text") from None
    except OSError as error:
        raise WorkloadError(f"batch.inputs.manifest: {path}: {error.strerror}") from None


def _existing(work: BatchSpec, store: Callable[[str], ObjectStore], gate: Gate) -> Collection[str]:
    """Return what is there that the outputs may be, by the names that they would have."""
    if work.output.startswith(_S3):
        return set(_below(work.output.partition("{")[0], store))
    return gate.outputs(work.output)


def _below(uri: str, store: Callable[[str], ObjectStore]) -> list[str]:
    """Return the objects whose names begin so, sorted."""
    bucket, prefix = _split(uri)
    listed = _asked(lambda: [each.key for each in store(uri).list(prefix)])
    return sorted(f"{_S3}{bucket}/{key}" for key in listed)


def _split(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix(_S3).partition("/")
    return bucket, key


def _asked(ask: Callable[[], Any]) -> Any:
    """Return what S3 answers. Raises WorkloadError and InputsAway."""
    from dcos_tensorflow.task.storage.s3.errors import StorageError

    try:
        return ask()
    except StorageError as error:
        raise (InputsAway if error.problem.retryable else WorkloadError)(str(error)) from None
