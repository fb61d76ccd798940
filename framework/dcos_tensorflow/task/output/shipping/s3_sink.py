"""Ships parts of a task's output as objects: one per part, never the same twice.

The key tells whose output it is: ``<prefix>/<service>/<task>/<attempt>/<start>/``, below it the
stream and the part's number. An object is only ever made, never replaced.
"""

from __future__ import annotations

import hashlib

from dcos_tensorflow.task.job_files import open_regular
from dcos_tensorflow.task.output.shipping.spool import SpooledPart
from dcos_tensorflow.task.storage.s3.errors import ConditionFailed
from dcos_tensorflow.task.storage.s3.location import Location
from dcos_tensorflow.task.storage.s3.object_store import ObjectStore


class S3Sink:
    """The objects below ``place``; ``source`` is service, task and attempt as a path."""

    def __init__(self, store: ObjectStore, place: Location, source: str) -> None:
        self._store = store
        self._place = place
        self._source = source

    def ship(self, part: SpooledPart) -> None:
        """Put ``part``. Raises StorageError."""
        with open_regular(part.path) as file:
            content = file.read()
        name = f"{part.stream}-{part.number:08d}"
        folder = f"{self._source}/{part.start}"
        try:
            self._put(f"{folder}/{name}.log.gz", content)
        except ConditionFailed:
            # Another service of this name had such an attempt too.
            digest = hashlib.sha256(content).hexdigest()[:8]
            self._put(f"{folder}/{name}-{digest}.log.gz", content)

    def _put(self, name: str, content: bytes) -> None:
        key = self._place.key(name)
        try:
            self._store.put(key, content, if_absent=True)
        except ConditionFailed:
            # Our own put may have worked, and only its answer was lost.
            if self._store.get(key)[0] != content:
                raise
