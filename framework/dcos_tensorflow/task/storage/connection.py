"""What every engine works with: a client, a bucket, the back-off, the gate that stops it all."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Callable

from dcos_tensorflow.task.storage.errors import Problem
from dcos_tensorflow.task.storage.location import S3Settings
from dcos_tensorflow.task.storage.object_store import ObjectStore, connect
from dcos_tensorflow.task.storage.retry import Backoff, Gate, Retrier


def _say_nothing(text: str) -> None:
    """Take a line of the log to nowhere."""


@dataclass
class Connection:
    """How an engine reaches S3. ``log`` takes one sentence a line; ``draw`` is the jitter's.

    The client is made at the first use, so that nothing here fails before the engine can tell it.
    """

    settings: S3Settings
    gate: Gate = field(default_factory=Gate)
    backoff: Backoff = field(default_factory=Backoff)
    log: Callable[[str], None] = _say_nothing
    draw: Callable[[], float] = random.random
    client: Any = None

    def store(
        self, bucket: str, noticed: Callable[[Problem], None] = lambda problem: None
    ) -> ObjectStore:
        """Return the objects of ``bucket``. Raises StorageError when no client can be made."""
        if self.client is None:
            self.client = connect(self.settings)
        retrier = Retrier(self.gate, self.backoff, noticed, self.draw)
        return ObjectStore(self.client, bucket, retrier, self.gate)
