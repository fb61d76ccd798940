"""The one door for the runner: everything that a task keeps in S3, from its settings to its end.

In order: ``prepare`` before each start of the user's process, ``begin`` when it starts, ``status``
at any time, ``finish`` after its end. Only ``prepare`` raises; a task whose checkpoints cannot be
kept trains on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Tuple

from dcos_tensorflow.task.storage.connection import Connection
from dcos_tensorflow.task.storage.data import DataCache, DataItem, FetchedData, fetch_data
from dcos_tensorflow.task.storage.initial import InitialState
from dcos_tensorflow.task.storage.location import S3Settings, parse_uri
from dcos_tensorflow.task.storage.manifest import Writer
from dcos_tensorflow.task.storage.mirror import Mirror, MirrorPlan
from dcos_tensorflow.task.storage.publisher import Publisher, PublishPlan
from dcos_tensorflow.task.storage.restorer import Restored, Restorer
from dcos_tensorflow.task.storage.retry import Gate


@dataclass(frozen=True)
class StoragePlan:
    """What one task keeps where. Seconds; an empty URI means that there is no such thing.

    ``writer`` is set for the one task that publishes (the chief, else member 0); None only reads.
    """

    sandbox: str
    checkpoint_dir: str = ""
    log_dir: str = ""
    s3: S3Settings = S3Settings()
    checkpoints_uri: str = ""
    initial_uri: str = ""
    logs_uri: str = ""
    interval_seconds: float = 60.0
    keep: int = 5
    writer: Optional[Writer] = None
    data: Tuple[DataItem, ...] = ()
    cache: Optional[DataCache] = None


class TaskStorage:
    """Everything that one task keeps in S3. Raises LocationError for a URI that cannot be one."""

    def __init__(self, plan: StoragePlan, log: Callable[[str], None]) -> None:
        self._plan = plan
        self._connection = Connection(plan.s3, log=log)
        self._checkpoints = parse_uri(plan.checkpoints_uri) if plan.checkpoints_uri else None
        self._logs = parse_uri(plan.logs_uri) if plan.logs_uri else None
        for item in plan.data:
            parse_uri(item.uri)
        self._publisher: Optional[Publisher] = None
        self._mirror: Optional[Mirror] = None
        self._restored: Optional[Restored] = None
        self._fetched: List[FetchedData] = []

    def prepare(self, pinned: str = "", prefer_local: bool = False) -> Optional[Restored]:
        """Bring data and checkpoint; return what was restored, None where nothing is kept.

        ``pinned`` and ``prefer_local`` are those of ``Restorer.restore``. Raises StorageError: the
        user's process must not start then. A call that was cut goes on at the next one.
        """
        plan = self._plan
        if plan.data:
            self._fetched = fetch_data(plan.data, plan.sandbox, self._connection, plan.cache)
        if self._checkpoints is not None:
            initial = InitialState(plan.initial_uri) if plan.initial_uri else None
            restorer = Restorer(self._checkpoints, self._connection, initial)
            self._restored = restorer.restore(plan.checkpoint_dir, pinned, prefer_local)
            self._connection.log(f"checkpoints: {self._restored.text}")
        return self._restored

    def begin(self) -> None:
        """Begin to publish checkpoints and to copy logs, on threads of their own."""
        plan = self._plan
        if self._checkpoints is not None and plan.writer is not None:
            publish = PublishPlan(
                plan.checkpoint_dir,
                self._checkpoints,
                plan.writer,
                interval_seconds=plan.interval_seconds,
                keep=plan.keep,
            )
            self._publisher = Publisher(publish, self._own_connection())
            self._publisher.start()
        if self._logs is not None:
            self._mirror = Mirror(MirrorPlan(plan.log_dir, self._logs), self._own_connection())
            self._mirror.start()

    def finish(self, seconds: float) -> bool:
        """Publish and copy what the ended process left, within ``seconds``; then stop.

        Say whether all of it is in S3. Checkpoints go first: they are what cannot be had again.
        """
        complete = True
        if self._publisher is not None:
            complete = self._publisher.finish(seconds * (0.8 if self._mirror else 1.0))
        if self._mirror is not None:
            complete = self._mirror.finish(seconds * (0.2 if self._publisher else 1.0)) and complete
        self._publisher, self._mirror = None, None
        return complete

    def stop(self) -> None:
        """Stop at once; also a ``prepare`` that another thread is in."""
        self._connection.gate.close()
        for engine in (self._publisher, self._mirror):
            if engine is not None:
                engine.stop()

    def status(self) -> Dict[str, Any]:
        """Return what ``GET /v1/status`` shows under ``storage``."""
        restored = self._restored
        return {
            "checkpoints": self._publisher.status().as_json() if self._publisher else None,
            "logs": self._mirror.status().as_json() if self._mirror else None,
            "restored": dict(vars(restored)) if restored else None,
            "data": [
                {"uri": one.item.uri, "path": one.item.path, "files": one.files, "size": one.size}
                for one in self._fetched
            ],
        }

    def _own_connection(self) -> Connection:
        """Return the connection with a gate of its own: each engine ends for itself."""
        return replace(self._connection, gate=Gate())
