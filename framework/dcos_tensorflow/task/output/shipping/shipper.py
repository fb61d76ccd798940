"""Ships a task's output while it runs: closes parts in time and sends them, oldest first.

``main`` makes one where ``logs`` asks for it. Sending happens on a thread of its own and is tried
until it works; whatever fails, the task goes on and its output is in the sandbox all the same. In
S3 each part is an object of its own, below ``<prefix>/<service>/<task>/<attempt>/<start>/``: it is
only ever made, never replaced.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import replace
from typing import Any, Dict, Optional, Union

from dcos_tensorflow.task.job_files import open_regular
from dcos_tensorflow.task.output.shipping.cloudwatch_sink import CloudWatchSink, connect_logs
from dcos_tensorflow.task.output.shipping.spool import Spool, SpooledPart
from dcos_tensorflow.task.storage import status
from dcos_tensorflow.task.storage.s3.errors import Cancelled, ConditionFailed, storage_error
from dcos_tensorflow.task.storage.s3.location import Location, parse_uri
from dcos_tensorflow.task.storage.s3.object_store import Connection, ObjectStore
from dcos_tensorflow.task.storage_spec import LogPlace


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


FOLDER = ".task-logs"
#: Between two parts: a job that prints without end must not take the whole network.
SECONDS_BETWEEN_PARTS = 0.2
#: After a failure that waiting alone does not mend, it is tried again so often (seconds).
RETRY_SECONDS = 30.0
_TICK_SECONDS = 0.5


class Shipper:
    """Ships what ``spool`` gets to ``place``; it waits in ``folder``.

    ``source`` is service, task and attempt as a path. Raises LocationError for a URI that cannot be
    one, OSError where the spool cannot be made.
    """

    def __init__(self, place: LogPlace, source: str, connection: Connection, folder: str) -> None:
        self._place = place
        self._source = source
        self._bucket = None if place.log_group else parse_uri(place.uri)
        self._board = status.StatusBoard()
        self._connection = replace(connection, noticed=self._board.failed)
        self._gate = self._connection.gate
        self._sink: Optional[Union[S3Sink, CloudWatchSink]] = None
        self._ending = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._parts = 0
        self.spool = Spool(folder, place.roll_bytes)

    def start(self) -> None:
        """Begin to ship. Returns at once."""
        self._thread = threading.Thread(target=self._work, name="log-shipper", daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> bool:
        """Ship what is left, within ``seconds``; say whether all of it is there."""
        self.spool.close()
        self._gate.limit(seconds)
        self._ending.set()
        if self._thread is not None:
            self._gate.wait_for(self._thread)
        self._gate.close()
        return self.spool.waiting_parts() == 0

    def ship_all(self) -> bool:
        """Ship the closed parts; say whether it worked. Raises nothing: see ``status``."""
        try:
            part = self.spool.next_part()
            while part is not None:
                self._board.change(state=status.STATE_PUBLISHING)
                self._ready_sink().ship(part)
                self.spool.shipped(part)
                self._parts += 1
                self._board.change(published_at=time.time())
                if not self._ending.is_set():
                    self._gate.wait(SECONDS_BETWEEN_PARTS)
                part = self.spool.next_part()
        except Cancelled:
            return False
        except Exception as error:  # The task goes on whatever this was.
            problem = storage_error(error, "ship the task's output").problem
            before = self._board.read().problem
            if before is None or before.kind != problem.kind:
                self._connection.log(f"logs: {problem.text}")
            self._board.failed(problem)
            return False
        self._board.recovered(status.STATE_IDLE)
        return True

    def status(self) -> Dict[str, Any]:
        """Return what ``GET /v1/status`` shows."""
        read = self._board.read()
        return {
            "state": read.state,
            "shipped_parts": self._parts,
            "shipped_at": read.published_at,
            "waiting_parts": self.spool.waiting_parts(),
            "waiting_bytes": self.spool.waiting_bytes,
            "dropped_bytes": self.spool.dropped_bytes,
            "problem": read.problem.as_json() if read.problem else None,
            "problem_since": read.problem_since,
        }

    def _work(self) -> None:
        again_at = 0.0
        while not self._ending.wait(_TICK_SECONDS):
            self.spool.roll(self._place.interval_seconds)
            if time.monotonic() >= again_at and not self.ship_all():
                again_at = time.monotonic() + RETRY_SECONDS
        while not self.ship_all() and not self._gate.closed:
            try:
                self._gate.wait(self._connection.backoff.first)
            except Cancelled:
                return

    def _ready_sink(self) -> Union[S3Sink, CloudWatchSink]:
        if self._sink is None:
            place, connection = self._place, self._connection
            if self._bucket is not None:
                store = connection.store(self._bucket.bucket)
                self._sink = S3Sink(store, self._bucket, self._source)
            else:
                client = connect_logs(connection.settings, place.region, place.endpoint_url)
                self._sink = CloudWatchSink(
                    client, connection.retrier(), place.log_group, self._source, self._gate.wait
                )
        return self._sink


def folder_in(sandbox: str) -> str:
    """Return where in a sandbox the output waits."""
    return os.path.join(sandbox, FOLDER)
