"""What every engine works with: a client, a bucket, the back-off, the gate that stops it all."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from dcos_tensorflow.task.storage.errors import Problem
from dcos_tensorflow.task.storage.location import S3Settings
from dcos_tensorflow.task.storage.object_store import ObjectStore, connect
from dcos_tensorflow.task.storage.retry import Backoff, Gate, Retrier


def _say_nothing(text: str) -> None:
    """Take a line of the log to nowhere."""


def _notice_nothing(problem: Problem) -> None:
    """Take a failed try to nowhere."""


@dataclass
class Connection:
    """How an engine reaches S3. ``log`` takes one sentence a line; ``draw`` is the jitter's.

    ``noticed`` is told of each failed try that is followed by another.

    The client is made at the first use, so that nothing here fails before the engine can tell it.
    """

    settings: S3Settings
    gate: Gate = field(default_factory=Gate)
    backoff: Backoff = field(default_factory=Backoff)
    log: Callable[[str], None] = _say_nothing
    noticed: Callable[[Problem], None] = _notice_nothing
    draw: Callable[[], float] = random.random
    client: Any = None

    def store(
        self, bucket: str, noticed: Optional[Callable[[Problem], None]] = None
    ) -> ObjectStore:
        """Return the objects of ``bucket``. Raises StorageError when no client can be made.

        ``noticed`` takes the place of the connection's own.
        """
        if self.client is None:
            self.client = connect(self.settings)
        retrier = Retrier(self.gate, self.backoff, noticed or self.noticed, self.draw)
        return ObjectStore(self.client, bucket, retrier, self.gate)
