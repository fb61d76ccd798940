"""The one door for the runner: everything that a task keeps in S3, from its settings to its end.

In order: ``fetch`` before each start of the user's process, ``begin`` when it starts, ``finish``
after its end; ``status`` and ``newest`` at any time. Only ``fetch`` raises; a task whose
checkpoints cannot be kept trains on. ``storage_work`` calls it, on a thread of its own.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage import layout, snapshot, status
from dcos_tensorflow.task.storage.checkpoint_store import OwnedPointer, read_pointer
from dcos_tensorflow.task.storage.data import FetchedData, fetch_data
from dcos_tensorflow.task.storage.follower import CheckpointFollower
from dcos_tensorflow.task.storage.initial import InitialState
from dcos_tensorflow.task.storage.log_copy import LogCopy
from dcos_tensorflow.task.storage.manifest import Published
from dcos_tensorflow.task.storage.mirror import Mirror
from dcos_tensorflow.task.storage.publisher import Publisher, PublishPlan
from dcos_tensorflow.task.storage.restorer import Restored, Restorer, local_state
from dcos_tensorflow.task.storage.s3.errors import (
    Cancelled,
    S3Problem,
    StorageError,
    WriterLost,
    problem_error,
    storage_error,
)
from dcos_tensorflow.task.storage.s3.location import Location, S3Settings, parse_uri
from dcos_tensorflow.task.storage.s3.object_store import Connection
from dcos_tensorflow.task.storage.s3.retry import Cancellation
from dcos_tensorflow.task.storage_spec import CheckpointPlace, Storage
from dcos_tensorflow.task.supervise.environment import Directories, is_url

#: What the last checkpoint may take of the time at the end, where directories are copied as well.
_CHECKPOINT_SHARE = 0.8


@dataclass(frozen=True)
class StartNeeds:
    """What a start needs.

    ``agreed``: all members of its gang restore the published checkpoint of ``step`` (None: there
    was none). ``again``: a process ran in this sandbox before, so that the state there is this
    task's own.
    """

    agreed: bool = False
    step: Optional[int] = None
    again: bool = False


class TaskStorage:
    """Everything that one task keeps in S3. Raises LocationError for a URI that cannot be one."""

    def __init__(self, kept: Storage, where: Directories, log: Callable[[str], None]) -> None:
        self._kept = kept
        self._where = where
        self._connection = Connection(S3Settings.of(kept.s3, where.sandbox), log=log)
        self._place = parse_uri(kept.checkpoints.uri) if kept.checkpoints else None
        self._checkpoints = kept.checkpoints or CheckpointPlace("")
        self._summaries = parse_uri(kept.summaries.uri) if kept.summaries else None
        self._shown = parse_uri(kept.shown.uri) if kept.shown else None
        self._output = parse_uri(kept.output.uri) if kept.output else None
        for item in kept.data:
            parse_uri(item.uri)
        self._board = status.StatusBoard()
        self._fetching = Cancellation()
        self._fetching.close()
        self._published: Tuple[Published, ...] = ()
        self._publisher: Optional[Publisher] = None
        self._mirror: Optional[Mirror] = None
        self._output_copy: Optional[Mirror] = None
        self._follower: Optional[CheckpointFollower] = None
        self._copy: Optional[LogCopy] = None
        self._restored: Optional[Restored] = None
        self._fetched: List[FetchedData] = []

    def take_over(self, former: "TaskStorage") -> None:
        """Take what the one before in this sandbox has for all: its client, and the input data."""
        self._connection.client = former._connection.client
        self._fetched = former._fetched

    def announce_fetch(self) -> Cancellation:
        """Show from now on that a start is prepared, and give up a ``fetch`` that is under way.

        Return what ends the ``fetch`` that is to follow, on whatever thread: it can be given up
        before it has begun.
        """
        self._fetching.close()
        self._fetching = Cancellation()
        self._connection.arrival.begin("", 0)
        self._board.recovered(status.STATE_FETCHING)
        return self._fetching

    def fetch(
        self, wanted: StartNeeds = StartNeeds(), gate: Optional[Cancellation] = None
    ) -> Optional[Restored]:
        """Bring data and checkpoint; return what was restored, None where nothing is kept.

        ``gate`` is what ``announce_fetch`` returned, None where nothing was announced. Raises
        StorageError: the user's process must not start then. A call that was cut goes on at the
        next one. The one task that publishes takes its place here already, so that what is newest
        cannot change any more under those who agree on it.
        """
        gate = gate or self.announce_fetch()
        self._stop_bringing()
        connection = replace(self._connection, gate=gate, noticed=self._failed)
        try:
            gate.check()
            if self._place is not None:
                self._published = self._look(connection, self._place)
            if self._kept.data and not self._fetched:
                self._fetched = fetch_data(
                    self._kept.data, self._where.sandbox, connection, self._kept.data_cache
                )
            if self._place is not None:
                self._restored = self._restore(connection, self._place, wanted)
                for warning in self._restored.warnings:
                    self._connection.log(f"checkpoints: {warning}")
                self._connection.log(f"checkpoints: {self._restored.text}")
        except Exception as error:
            failure = storage_error(error, "prepare the start")
            if not (isinstance(failure, Cancelled) or gate.closed):
                self._board.failed(failure.problem)
            raise failure from error
        else:
            if not gate.closed:
                self._board.recovered(status.STATE_IDLE)
        finally:
            self._connection.client = connection.client
            gate.close()
        return self._restored

    def begin(self) -> None:
        """Begin to publish checkpoints and to copy summaries and output, on threads of their own.

        Or to bring them, for the tasks that read what others make while they run.
        """
        kept, where = self._checkpoints, self._where
        if self._place is not None and kept.follow:
            self._follower = CheckpointFollower(
                where.checkpoint_dir, self._place, self._own_connection(), self._restored
            )
            self._follower.start()
        if self._shown is not None:
            self._copy = LogCopy(where.log_dir, self._shown, self._own_connection())
            self._copy.start()
        if self._place is not None and kept.writer is not None:
            publish = PublishPlan(
                where.checkpoint_dir,
                self._place,
                kept.writer,
                interval_seconds=kept.interval_seconds,
                keep=kept.keep,
            )
            self._publisher = Publisher(publish, self._own_connection())
            self._publisher.start()
        if self._summaries is not None:
            others = self._follower.brought if self._follower is not None else frozenset
            self._mirror = Mirror(where.log_dir, self._summaries, self._own_connection(), others)
            self._mirror.start()
        if self._output is not None and not is_url(where.output_dir):
            self._output_copy = Mirror(
                where.output_dir,
                self._output,
                self._own_connection(),
                what="OUTPUT_DIR",
                checkpoints=True,
            )
            self._output_copy.start()

    def publish_soon(self) -> None:
        """Look for a complete checkpoint at once: the process is about to end."""
        if self._publisher is not None:
            self._publisher.publish_soon()

    def finish(self, seconds: float) -> bool:
        """Publish and copy what the ended process left, within ``seconds``; then stop.

        Say whether all of it is in S3. Checkpoints go first: they are what cannot be had again.
        Then what the job made, and its summaries.
        """
        self._stop_bringing()
        complete, until = True, time.monotonic() + seconds
        if self._publisher is not None:
            share = _CHECKPOINT_SHARE if self._copies else 1.0
            complete = self._publisher.finish(seconds * share)
        for waiting, copy in zip(range(len(self._copies), 0, -1), self._copies):
            left = max(0.0, until - time.monotonic())
            complete = copy.finish(left / waiting) and complete
        return complete

    def hurry(self, seconds: float) -> None:
        """Leave a ``finish`` that another thread is in no more than ``seconds`` from now on."""
        if self._publisher is not None:
            self._publisher.limit(seconds * (_CHECKPOINT_SHARE if self._copies else 1.0))
        for copy in self._copies:
            copy.limit(seconds)

    def stop(self) -> None:
        """Stop at once; also a ``fetch`` that another thread is in."""
        self._fetching.close()
        self._stop_bringing()
        for engine in (self._publisher, *self._copies):
            if engine is not None:
                engine.stop()

    @property
    def _copies(self) -> Tuple[Mirror, ...]:
        """Return what copies directories, in the order in which they are finished."""
        return tuple(each for each in (self._output_copy, self._mirror) if each is not None)

    def _stop_bringing(self) -> None:
        for engine in (self._follower, self._copy):
            if engine is not None:
                engine.stop()

    def newest(self) -> "Optional[Tuple[int, str]]":
        """Return step and id of the newest checkpoint that is known to be published.

        A checkpoint without a step counts as step 0.
        """
        for engine in (self._publisher, self._follower):
            if engine is not None and engine.status().published_id:
                said = engine.status()
                return said.published_step or 0, said.published_id
        for line in self._published[:1]:
            return line.step or 0, line.id
        return None

    def arriving(self) -> str:
        """Return how much has come of what is brought; '' where nothing has."""
        return self._connection.arrival.told()

    def leaving(self) -> str:
        """Return how much of the checkpoint that is published is there; '' where nothing is."""
        return self._publisher.leaving() if self._publisher is not None else ""

    def superseded(self) -> Optional[S3Problem]:
        """Return what tells that a newer attempt of this task publishes in its place."""
        problem = self._publisher.status().problem if self._publisher is not None else None
        return problem if problem is not None and problem.kind == "newer_attempt" else None

    def status(self) -> Dict[str, Any]:
        """Return what ``GET /v1/status`` shows under ``storage``."""
        restored, fetching = self._restored, self._board.read()
        return {
            "state": fetching.state,
            "problem": fetching.problem.as_json() if fetching.problem else None,
            "checkpoints": self._publisher.status().as_json() if self._publisher else None,
            "summaries": self._mirror.status().as_json() if self._mirror else None,
            "output": self._output_copy.status().as_json() if self._output_copy else None,
            "followed": self._follower.status().as_json() if self._follower else None,
            "shown": self._copy.status().as_json() if self._copy else None,
            "restored": restored.as_json() if restored else None,
            "data": [
                {"uri": one.item.uri, "path": one.item.path, "files": one.files, "size": one.size}
                for one in self._fetched
            ],
        }

    def _look(self, connection: Connection, place: Location) -> Tuple[Published, ...]:
        """Return what is published, newest first; a publishing task takes the place for itself."""
        store = connection.store(place.bucket)
        if self._checkpoints.writer is not None:
            try:
                return OwnedPointer(store, place, self._checkpoints.writer).claim().published
            except (WriterLost, Cancelled):
                raise
            except StorageError as error:
                if error.problem.retryable:
                    raise
                # Reading may work where writing does not; the publisher tells what is wrong.
                self._connection.log(f"checkpoints: {error.problem.text}")
        pointer, _ = read_pointer(store, place)
        return pointer.published if pointer else ()

    def _restore(self, connection: Connection, place: Location, wanted: StartNeeds) -> Restored:
        kept, directory = self._checkpoints, self._where.checkpoint_dir
        initial = InitialState(kept.initial_uri) if kept.initial_uri else None
        restorer = Restorer(place, connection, initial)
        if wanted.agreed:
            pinned = self._agreed(place, wanted.step)
            return restorer.restore(directory, pinned)
        own = wanted.again and kept.writer is not None
        return restorer.restore(directory, prefer_local=own)

    def _agreed(self, place: Location, step: Optional[int]) -> str:
        """Return the id of the checkpoint that all members restore; '' when there is none."""
        if step is None:
            if not self._published:
                return ""
            raise problem_error(
                "not_agreed",
                f"the gang was to start without a checkpoint, but {place.uri} has one",
                "it is started again with that one",
            )
        for line in self._published:
            if (line.step or 0) == step:
                return line.id
        raise problem_error(
            "not_published",
            f"the gang was to start from step {step}, which is not published in {place.uri}",
            "it is started again with one that is",
        )

    def keep_local(self, error: StorageError, wanted: StartNeeds) -> Optional[Restored]:
        """Return the state in the sandbox where a start may go on with it though ``fetch`` failed.

        That is so for the task that publishes, is alone with its state, and wrote it here itself:
        no other task can have published anything newer.
        """
        alone = wanted.again and not wanted.agreed and self._checkpoints.writer is not None
        if not alone or self._place is None or isinstance(error, WriterLost):
            return None
        listing = snapshot.look(self._where.checkpoint_dir)
        choice = layout.choose(listing, layout.Patience(ended=True))
        if not choice.ready:
            return None
        warning = f"S3 is not asked: {error.problem.summary}"
        self._restored = local_state(choice, (warning,))
        self._connection.log(
            f"checkpoints: {error.problem.text}; going on with the state in the sandbox"
        )
        return self._restored

    def _failed(self, problem: S3Problem) -> None:
        before = self._board.read().problem
        self._board.failed(problem)
        if before is None or before.kind != problem.kind:
            self._connection.log(f"storage: {problem.text}")

    def _own_connection(self) -> Connection:
        """Return the connection with a gate of its own: each engine ends for itself."""
        return replace(self._connection, gate=Cancellation())
