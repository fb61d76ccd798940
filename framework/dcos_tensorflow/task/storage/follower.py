"""Brings each newly published checkpoint into a directory while a process reads it there.

The evaluator's runner makes one when the process starts. Like TensorFlow itself it adds the files
of a checkpoint first, then replaces the ``checkpoint`` state file that names it, and removes older
ones last; a reader that was just about to open one still finds it. It leaves the process's own
files alone.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import FrozenSet, List, Optional, Tuple

from dcos_tensorflow.task.storage import status
from dcos_tensorflow.task.storage.manifest import Published
from dcos_tensorflow.task.storage.restorer import Restored, Restorer
from dcos_tensorflow.task.storage.rounds import Rounds
from dcos_tensorflow.task.storage.s3.errors import Cancelled, DamagedCheckpoint
from dcos_tensorflow.task.storage.s3.location import Location
from dcos_tensorflow.task.storage.s3.object_store import Connection

#: So many checkpoints stay: a reader may be at one for as long as it takes to publish two more.
KEPT = 3


class CheckpointFollower(Rounds):
    """Follows one place. ``start`` and ``stop``, or ``follow_once`` without the thread.

    ``restored`` is what the directory holds at the beginning.
    """

    def __init__(
        self,
        directory: str,
        place: Location,
        connection: Connection,
        restored: Optional[Restored] = None,
        *,
        interval_seconds: float = 5.0,
    ) -> None:
        super().__init__("follower", interval_seconds, connection)
        self._directory = directory
        self._restorer = Restorer(place, self._connection)
        self._here: List[FrozenSet[str]] = []
        self._brought: FrozenSet[str] = frozenset()
        self._seen = restored.id if restored else ""
        if restored is not None and restored.paths:
            self._brought = frozenset(restored.paths)
            self._here.append(self._brought)
            self._board.change(published_id=restored.id, published_step=restored.step)

    def brought(self) -> FrozenSet[str]:
        """Return the files that are others' and not this task's own; from any thread."""
        return self._brought

    def follow_once(self) -> bool:
        """Bring the newest checkpoint if it is not here; say whether it came. Raises nothing."""
        try:
            newest = self._newest()
            if newest is None or newest.id == self._seen:
                self._board.unpublished(None)
                self._board.recovered(status.STATE_IDLE)
                return False
            self._board.unpublished(time.monotonic())
            self._board.change(state=status.STATE_FETCHING)
            came = self._bring(newest)
            self._board.recovered(status.STATE_IDLE)
            return came
        except Cancelled:
            return False
        except Exception as error:  # The process must go on whatever this was.
            consequence = "the task goes on without it"
            self._went_wrong(error, "follow the checkpoints", "checkpoints", consequence)
            return False

    _round = follow_once

    def _newest(self) -> Optional[Published]:
        return next(iter(self._restorer.published()), None)

    def _bring(self, line: Published) -> bool:
        try:
            brought = self._restorer.add(self._directory, line, self._expect)
        except DamagedCheckpoint as damaged:
            if line.id not in [known.id for known in self._restorer.published()]:
                # It was removed while it came: there is a newer one.
                return False
            self._seen = line.id
            warning = f"checkpoint {line.id} is damaged: {damaged.problem.summary}"
            self._board.change(warning=warning)
            self._connection.log(f"checkpoints: {warning}; the next one is waited for")
            return False
        self._seen = line.id
        self._board.add_bytes(brought.bytes_fetched)
        self._board.change(
            published_id=line.id, published_step=line.step, published_at=time.time(), warning=""
        )
        self._board.unpublished(None)
        self._here.insert(0, frozenset(brought.paths))
        self._connection.log(f"checkpoints: {brought.text}")
        self._remove_old()
        return True

    def _expect(self, paths: Tuple[str, ...]) -> None:
        self._brought |= frozenset(paths)

    def _remove_old(self) -> None:
        kept: FrozenSet[str] = frozenset().union(*self._here[:KEPT])
        old: FrozenSet[str] = frozenset().union(*self._here[KEPT:])
        del self._here[KEPT:]
        for path in old - kept:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._directory, path))
        self._brought = kept
