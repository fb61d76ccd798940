"""A copy of each run in S3, where a service keeps its checkpoints or its logs there.

Used by ``keeper``: a scheduler on another machine finds the runs of before; and by the window of a
state store, which has none of them on its disk. An object is one run,
replaced as a whole, so that it is never half of one. Tasks may write there, too: content is
read as input of strangers. All methods may raise StorageError.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from dcos_tensorflow.core.kept.paths import service_folder
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.history.folder import number_of
from dcos_tensorflow.history.points import Point, points_in
from dcos_tensorflow.history.record import Record, known
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage.s3.errors import ObjectMissing
from dcos_tensorflow.task.storage.s3.location import Location, parse_uri
from untrusted_input.json_text import read_json

if TYPE_CHECKING:
    from dcos_tensorflow.task.storage.s3.object_store import ObjectStore


_ENDING = ".jsonl.gz"
#: Unpacked, no run of ours is larger, nor is what is known of it beside its points; bytes.
_MOST_BYTES, _MOST_RECORD = 16 << 20, 4 << 20


def place_of(spec: ServiceSpec) -> Location | None:
    """Return where the runs of a service are copied; None where nothing of it goes to S3."""
    storage = spec.storage
    bases = (storage.checkpoints.uri, storage.logs.uri)
    base = next((uri for uri in bases if uri.startswith("s3")), "")
    if not base:
        return None
    return parse_uri(base).below("history", service_folder(spec.name))


@dataclass(frozen=True)
class RunBucket:
    """The runs of one service at one place."""

    store: ObjectStore
    place: Location

    def runs(self) -> dict[str, str]:
        """Return the ids of the runs that are there, each with the ETag of its object."""
        there = self.store.list(self.place.key("") + "/")
        named = {one.key.rpartition("/")[2].removesuffix(_ENDING): one.etag for one in there}
        return {name: etag for name, etag in named.items() if number_of(name) is not None}

    def get(self, run: str) -> tuple[Record, dict[str, list[Point]]]:
        """Return what is known of a run and its points; both are empty where it is not there."""
        try:
            packed, _ = self.store.get(self._key(run))
        except ObjectMissing:
            return {}, {}
        try:
            with gzip.open(io.BytesIO(packed)) as file:
                record = known(read_json(file.readline(_MOST_RECORD)))
                lines = file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
        except (OSError, EOFError, ValueError, zlib.error):
            return {}, {}
        return record, points_in(lines)

    def put(self, run: str, record: Record, lines: Collection[str]) -> None:
        """Replace a run; ``lines`` are its points."""
        text = json.dumps(record) + "\n" + "".join(lines)
        self.store.put(self._key(run), gzip.compress(text.encode(), mtime=0))

    def remove(self, runs: Collection[str]) -> None:
        """Remove runs."""
        if runs:
            self.store.delete([self._key(run) for run in runs])

    def _key(self, run: str) -> str:
        return self.place.key(run + _ENDING)
