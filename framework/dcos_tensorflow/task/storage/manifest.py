"""The published checkpoints and their one writer: the documents in the bucket and their rules.

Pure. Under the prefix of a checkpoint store lie

    latest.json              the pointer: the writer, and the published checkpoints, newest first
    manifests/<id>.json      one checkpoint: its files, their keys, sizes and digests
    data/<id>/<path>         the files that were new in that checkpoint

A checkpoint exists when the pointer lists it; the pointer is only ever replaced by a conditional
put. docs/checkpoints.md tells the protocol and why it holds.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import Any, Dict, FrozenSet, Iterable, Mapping, Optional, Sequence, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage.s3.location import MEBIBYTE
from dcos_tensorflow.task.storage_spec import Writer

VERSION = 1
POINTER = "latest.json"
MANIFESTS = "manifests"
DATA = "data"

#: Digests are made of parts this large; a part of a multipart upload is one of them (S3: 5 MiB at
#: least, 10,000 parts at most).
PART_SIZE = 8 * MEBIBYTE
MAX_PARTS = 9_000
#: Earlier services that wrote here are remembered so far back.
MAX_SUPERSEDED = 20

_ID = re.compile(r"(?P<lineage>[0-9a-f]{8})-(?P<generation>\d{8})-\d{6}-(?P<token>[0-9a-f]{8})\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class DocumentError(ValueError):
    """A document in the bucket is not what this version writes or reads."""


@dataclass(frozen=True)
class FileEntry:
    """One file of a checkpoint: where it goes, where it lies, and the SHA-256 of each part."""

    path: str
    key: str
    size: int
    part_size: int
    parts: Tuple[str, ...]

    def part_range(self, number: int) -> Tuple[int, int]:
        """Return start and length of part ``number`` (from 0)."""
        start = number * self.part_size
        return start, min(self.part_size, self.size - start)


@dataclass(frozen=True)
class Manifest:
    """One complete checkpoint. ``created_at`` is unix seconds."""

    id: str
    step: Optional[int]
    kind: str
    created_at: float
    files: Tuple[FileEntry, ...]

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(entry.size for entry in self.files)

    @property
    def keys(self) -> FrozenSet[str]:
        """Return the keys of all files."""
        return frozenset(entry.key for entry in self.files)


@dataclass(frozen=True)
class Published:
    """A line of the pointer: a checkpoint that exists, and the digest of its manifest."""

    id: str
    key: str
    sha256: str
    step: Optional[int]
    size: int
    at: float


@dataclass(frozen=True)
class Pointer:
    """The writer, and the checkpoints that exist, newest first."""

    writer: Writer
    published: Tuple[Published, ...] = ()
    superseded: Tuple[str, ...] = ()


def part_size_for(size: int) -> int:
    """Return the part size for a file of ``size`` bytes."""
    if size <= PART_SIZE * MAX_PARTS:
        return PART_SIZE
    return -(-size // (MAX_PARTS * MEBIBYTE)) * MEBIBYTE


def part_count(size: int, part_size: int) -> int:
    """Return the number of parts; an empty file has one, which is empty."""
    return max(1, -(-size // part_size))


def checkpoint_id(writer: Writer, sequence: int, token: str) -> str:
    """Return the id of a writer's ``sequence``-th checkpoint. ``token`` is new for each writer."""
    return f"{_short(writer.lineage)}-{writer.generation:08d}-{sequence:06d}-{token}"


def unusable_reason(pointer: Optional[Pointer], writer: Writer) -> str:
    """Return why ``writer`` must not claim the place that ``pointer`` describes; '' when it may.

    Within a service the newer attempt wins. Another service takes over, for good: its predecessor
    is remembered, so that a late attempt of it cannot take the place back.
    """
    if pointer is None:
        return ""
    other = pointer.writer
    if writer.lineage in pointer.superseded:
        return "another service has taken this place over"
    if other.lineage != writer.lineage:
        return ""
    if other.generation > writer.generation:
        return f"attempt {other.generation} publishes here; this is attempt {writer.generation}"
    if other.generation == writer.generation and other.owner != writer.owner:
        return f"{other.owner} publishes here as attempt {writer.generation} too"
    return ""


def claimed(pointer: Optional[Pointer], writer: Writer) -> Pointer:
    """Return the pointer after ``writer`` took the place: what is published stays."""
    if pointer is None:
        return Pointer(writer)
    superseded = pointer.superseded
    if pointer.writer.lineage != writer.lineage:
        superseded = (*superseded, pointer.writer.lineage)[-MAX_SUPERSEDED:]
    return Pointer(writer, pointer.published, superseded)


def with_newest(pointer: Pointer, published: Published, keep: int) -> Pointer:
    """Return the pointer that lists ``published`` first and keeps ``keep`` checkpoints in all."""
    others = tuple(line for line in pointer.published if line.id != published.id)
    return replace(pointer, published=(published, *others)[: max(1, keep)])


def garbage(kept: Iterable[Manifest], dropped: Iterable[Manifest]) -> FrozenSet[str]:
    """Return the keys of files that only ``dropped`` checkpoints use."""
    used: FrozenSet[str] = frozenset().union(*(manifest.keys for manifest in kept))
    return frozenset().union(*(manifest.keys for manifest in dropped)) - used


def same_content(one: Manifest, other: Manifest) -> bool:
    """Say whether two checkpoints have the same files with the same content."""

    def content(made: Manifest) -> Dict[str, Tuple[int, Tuple[str, ...]]]:
        return {entry.path: (entry.size, entry.parts) for entry in made.files}

    return content(one) == content(other)


def is_left_behind(
    key: str, prefix_keys: Sequence[str], pointer: Pointer, writer: Writer, token: str
) -> bool:
    """Say whether the object or upload ``key`` is of a writer that can never publish again.

    ``prefix_keys`` are the full keys of ``data`` and ``manifests``. Only ids of this service's
    attempts up to this one, and of services that this one superseded, count: whatever a newer
    writer has begun is not ours to judge, nor is a name that we do not give.
    """
    for folder in prefix_keys:
        if key.startswith(f"{folder}/"):
            name = key[len(folder) + 1 :].partition("/")[0]
            break
    else:
        return False
    found = _ID.match(name[: -len(".json")] if name.endswith(".json") else name)
    if not found or found.group("token") == token:
        return False
    if found.group("lineage") == _short(writer.lineage):
        return int(found.group("generation")) <= writer.generation
    return found.group("lineage") in {_short(lineage) for lineage in pointer.superseded}


def _short(lineage: str) -> str:
    return hashlib.sha256(lineage.encode()).hexdigest()[:8]


def encode_pointer(pointer: Pointer) -> bytes:
    """Return the pointer as the content of ``latest.json``."""
    return _encode(
        {
            "version": VERSION,
            "writer": vars(pointer.writer),
            "published": [vars(line) for line in pointer.published],
            "superseded": list(pointer.superseded),
        }
    )


def decode_pointer(content: bytes) -> Pointer:
    """Return the pointer in ``content``. Raises DocumentError."""
    document = _decode(content, POINTER)
    try:
        writer = document["writer"]
        return Pointer(
            Writer(str(writer["lineage"]), _count(writer["generation"]), str(writer["owner"])),
            tuple(_published(line) for line in document["published"]),
            tuple(str(lineage) for lineage in document["superseded"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DocumentError(f"{POINTER} is not a pointer: {error!r}") from None


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as the content of its object."""
    files = [{**vars(entry), "parts": list(entry.parts)} for entry in manifest.files]
    return _encode({"version": VERSION, **vars(manifest), "files": files})


def decode_manifest(content: bytes) -> Manifest:
    """Return the manifest in ``content``. Raises DocumentError."""
    document = _decode(content, "the manifest")
    try:
        return Manifest(
            id=str(document["id"]),
            step=_optional_count(document["step"]),
            kind=str(document["kind"]),
            created_at=float(document["created_at"]),
            files=tuple(_entry(entry) for entry in document["files"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DocumentError(f"the manifest is not one: {error!r}") from None


def safe_path(path: str) -> bool:
    """Say whether ``path`` stays below the directory it is written to."""
    parts = path.split("/")
    return bool(path) and "\0" not in path and not any(part in ("", ".", "..") for part in parts)


def _published(line: Mapping[str, Any]) -> Published:
    return Published(
        id=str(line["id"]),
        key=str(line["key"]),
        sha256=_digest(line["sha256"]),
        step=_optional_count(line["step"]),
        size=_count(line["size"]),
        at=float(line["at"]),
    )


def _entry(entry: Mapping[str, Any]) -> FileEntry:
    path, size, part_size = str(entry["path"]), _count(entry["size"]), _count(entry["part_size"])
    if not safe_path(path):
        raise ValueError(f"path {path!r} leaves the directory")
    parts = tuple(_digest(part) for part in entry["parts"])
    if part_size < 1 or len(parts) != part_count(size, part_size):
        raise ValueError(f"{path!r} has {len(parts)} parts for {size} bytes")
    return FileEntry(path, str(entry["key"]), size, part_size, parts)


def _digest(value: object) -> str:
    if not isinstance(value, str) or not _DIGEST.match(value):
        raise ValueError(f"{value!r} is no SHA-256")
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _optional_count(value: object) -> Optional[int]:
    return None if value is None else _count(value)


def _encode(document: Dict[str, Any]) -> bytes:
    return (json.dumps(document, separators=(",", ":")) + "\n").encode()


def _decode(content: bytes, what: str) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{what} is not JSON: {error}") from None
    if not isinstance(document, dict) or "version" not in document:
        raise DocumentError(f"{what} is not a document of this store")
    if document["version"] != VERSION:
        raise DocumentError(
            f"{what} is of version {document['version']!r}, this release reads {VERSION}"
        )
    return document
