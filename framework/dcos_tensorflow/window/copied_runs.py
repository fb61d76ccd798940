"""The runs of a service that is on no disk of this machine, by their copies in S3.

Used by ``window.of_state``. Schedulers copy the runs of a service that keeps its checkpoints or
logs in S3 (``history.bucket``). They are read with this process's own keys, and only at places that
its operator has named: a state store may be written by others. It keeps the records of
runs whose copies have not changed since. May block. Safe to use from several threads.
"""

from __future__ import annotations

import threading

from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.history.bucket import RunBucket, place_of
from dcos_tensorflow.history.points import Point
from dcos_tensorflow.history.record import Record
from dcos_tensorflow.scheduler.gate import Gate
from dcos_tensorflow.task.storage.s3.errors import StorageError
from dcos_tensorflow.window.services import NotKept

#: What is known of so many runs is remembered.
_MOST_RECORDS = 200


class CopiedRuns:
    """``gate`` says which places may be read. The methods raise NotKept with the reason."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._lock = threading.Lock()
        self._records: dict[tuple[str, str], Record] = {}

    def records(self, spec: ServiceSpec) -> list[Record]:
        """Return what is known of each run, the newest first; none where nothing goes to S3."""
        try:
            bucket = self._bucket(spec)
            if bucket is None:
                return []
            found = [self._record(bucket, *copy) for copy in bucket.runs().items()]
        except StorageError as error:
            raise NotKept(str(error)) from error
        return sorted(
            filter(None, found), key=lambda one: one.get("started_at") or 0.0, reverse=True
        )

    def points(self, spec: ServiceSpec, run: str) -> dict[str, list[Point]]:
        """Return the points of a run by its id; of the newest one for none."""
        records = self.records(spec)
        wanted = run or (str(records[0]["id"]) if records else "")
        bucket = self._bucket(spec) if wanted else None
        if bucket is None:
            return {}
        try:
            return bucket.get(wanted)[1]
        except StorageError as error:
            raise NotKept(str(error)) from error

    def _bucket(self, spec: ServiceSpec) -> RunBucket | None:
        place = place_of(spec)
        if place is None:
            return None
        return RunBucket(self._gate.objects(spec.storage.s3, {}, place.uri), place)

    def _record(self, bucket: RunBucket, run: str, etag: str) -> Record:
        key = (bucket.place.key(run), etag)
        with self._lock:
            known = self._records.get(key)
        if known is None:
            known, _ = bucket.get(run)
            with self._lock:
                self._records[key] = known
                while len(self._records) > _MOST_RECORDS:
                    del self._records[next(iter(self._records))]
        return known
