"""The inputs and outputs that a batch finds: listings of S3 and of folders, manifests.

Called by ``scheduler.unit_producer`` on its thread: all of it may block. The producer
decides what follows (``workloads.batch``). Credentials are those that tasks get; they are in no
message.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec, index_of
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.gate import Gate, GateError
from dcos_tensorflow.task.supervise.shard_record import METADATA, path_of
from dcos_tensorflow.workloads.batch.batch import STAMP_LENGTH, UNKNOWN_STAMP, Record
from dcos_tensorflow.workloads.producer import WorkloadError
from untrusted_input.json_text import read_json

if TYPE_CHECKING:
    from dcos_tensorflow.task.storage.s3.object_store import ObjectStore

_S3 = "s3://"
_MOST_MANIFEST_BYTES = 256 * 1024 * 1024
#: A record is shorter: a payload is.
_MOST_RECORD_BYTES = 65_536
#: So many records are asked for at the same time.
_AT_A_TIME = 16
#: So many objects beside those of a manifest are listed to find these, and ten for each of them.
_MOST_PASSED_OVER = 10_000


class InputsAway(Exception):
    """What is asked for cannot be reached now; waiting may help. The text says why."""


@dataclass(frozen=True)
class Inputs:
    """What was found: ``listed`` at ``BatchSpec.listing``, in order; ``existing`` outputs.

    ``stamps`` has for each that is listed what changes when it does; ``records`` by the name of an
    output what it was made of, where a batch goes on.
    """

    listed: Sequence[str] = ()
    existing: Collection[str] = ()
    stamps: Sequence[str] = ()
    records: Mapping[str, Record] = field(default_factory=dict)


NO_INPUTS = Inputs()


def list_inputs(spec: ServiceSpec, credentials: Mapping[str, str], gate: Gate) -> Inputs:
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

    listed, stamps = _listed(work.listing, store, gate) if work.listing else ((), ())
    if work.listing and not listed:
        raise WorkloadError(f"there is nothing to work on: nothing is listed at {work.listing}")
    existing = _existing(work, store, gate)
    records = _records(work, existing, store, gate) if work.resume else {}
    return Inputs(listed, existing, stamps, records)


def _listed(
    listing: str, store: Callable[[str], ObjectStore], gate: Gate
) -> tuple[Sequence[str], Sequence[str]]:
    if listing.startswith(_S3) and listing.endswith("/"):
        # What ends in a slash stands for a folder in some tools, and holds nothing.
        found = [each for each in sorted(_objects(listing, store)) if not each[0].endswith("/")]
        return [uri for uri, _ in found], [stamp for _, stamp in found]
    text = _manifest(listing, store, gate)
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    of_objects = _stamps_in_s3([line for line in lines if line.startswith(_S3)], store)
    return lines, [
        of_objects.get(line, UNKNOWN_STAMP) if line.startswith(_S3) else _file_stamp(line, gate)
        for line in lines
    ]


def _stamps_in_s3(lines: Sequence[str], store: Callable[[str], ObjectStore]) -> dict[str, str]:
    """Return the stamps of a manifest's objects as far as they are found.

    The scheduler may not see them, or they lie among too many others: then none is known.
    """
    found: dict[str, str] = {}
    buckets: dict[str, list[str]] = {}
    for line in lines:
        buckets.setdefault(_split(line)[0], []).append(line)
    for named in map(set, buckets.values()):
        most = _MOST_PASSED_OVER + 10 * len(named)
        with contextlib.suppress(WorkloadError, InputsAway):
            prefix = os.path.commonprefix([*named])  # noqa: RUF071 - S3 lists by any prefix
            for uri, stamp in islice(_objects(prefix, store), most):
                if uri in named:
                    found[uri] = stamp
    return found


def _file_stamp(line: str, gate: Gate) -> str:
    size_and_time = gate.input_file(Path(line)) if line.startswith("/") else None
    return UNKNOWN_STAMP if size_and_time is None else _stamp(*size_and_time)


def _stamp(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:STAMP_LENGTH]


def _records(
    work: BatchSpec, existing: Collection[str], store: Callable[[str], ObjectStore], gate: Gate
) -> Mapping[str, Record]:
    """Return of each output what it was made of, as far as that is kept."""
    index = index_of(work)
    outputs = [name for name in existing if index(name) is not None]
    if not work.output.startswith(_S3):
        contents = {name: gate.shard_record(Path(path_of(name))) for name in outputs}
        return _read(contents)
    # One connection, asked before there are threads.
    bucket = store(work.output)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        ask = partial(_record_in_s3, bucket)
        return _read(dict(zip(outputs, pool.map(ask, outputs), strict=True)))


def _record_in_s3(bucket: ObjectStore, uri: str) -> bytes | None:
    _, key = _split(uri)
    try:
        packed = _asked(lambda: bucket.head(key), missing=_Missing)["Metadata"].get(METADATA)
        if packed is None:
            get = partial(bucket.get, path_of(key), _MOST_RECORD_BYTES)
            return bytes(_asked(get, missing=_Missing)[0])
        return zlib.decompressobj().decompress(base64.b64decode(packed), _MOST_RECORD_BYTES)
    except (_Missing, ValueError, zlib.error):
        return None


def _read(contents: Mapping[str, bytes | None]) -> Mapping[str, Record]:
    found = {}
    for name, content in contents.items():
        with contextlib.suppress(ValueError):
            told = read_json(content or b"")
            if isinstance(told, dict):
                found[name] = told
    return found


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
        return {uri for uri, _ in _objects(work.output.partition("{")[0], store)}
    return gate.outputs(work.output)


def _objects(uri: str, store: Callable[[str], ObjectStore]) -> Iterator[tuple[str, str]]:
    bucket, prefix = _split(uri)
    listed = iter(_asked(lambda: store(uri)).list(prefix))
    while (each := _asked(lambda: next(listed, None))) is not None:
        yield f"{_S3}{bucket}/{each.key}", _stamp(each.size, each.etag)


def _split(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix(_S3).partition("/")
    return bucket, key


class _Missing(Exception):
    """There is no such object."""


def _asked(ask: Callable[[], Any], *, missing: type[Exception] = WorkloadError) -> Any:
    """Return what S3 answers. Raises WorkloadError and InputsAway, ``missing`` for no object."""
    from dcos_tensorflow.task.storage.s3.errors import ObjectMissing, StorageError

    try:
        return ask()
    except ObjectMissing as error:
        raise missing(str(error)) from None
    except StorageError as error:
        raise (InputsAway if error.problem.retryable else WorkloadError)(str(error)) from None
