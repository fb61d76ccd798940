"""What every engine works with: a client, a bucket, the back-off, the gate that stops it all."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Callable

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage.s3.errors import Problem
from dcos_tensorflow.task.storage.s3.location import S3Settings
from dcos_tensorflow.task.storage.s3.object_store import ObjectStore, connect
from dcos_tensorflow.task.storage.s3.retry import JITTER, Backoff, Gate, Retrier
from dcos_tensorflow.task.storage.status import Transfer


@dataclass
class Connection:
    """How an engine reaches S3. ``log`` takes one sentence a line; ``draw`` is the jitter's.

    ``noticed`` is told of each failed try that is followed by another, ``arrival`` of what comes.

    The client is made at the first use, so that nothing here fails before the engine can tell it.
    """

    settings: S3Settings
    gate: Gate = field(default_factory=Gate)
    backoff: Backoff = field(default_factory=Backoff)
    log: Callable[[str], None] = lambda text: None
    noticed: Callable[[Problem], None] = lambda problem: None
    arrival: Transfer = field(default_factory=Transfer)
    draw: Callable[[], float] = JITTER
    client: Any = None

    def store(self, bucket: str) -> ObjectStore:
        """Return the objects of ``bucket``. Raises StorageError when no client can be made."""
        if self.client is None:
            self.client = connect(self.settings)
        return ObjectStore(self.client, bucket, self.retrier(), self.gate)

    def retrier(self) -> Retrier:
        """Return what tries requests again."""
        return Retrier(self.gate, self.backoff, self.noticed, self.draw)
