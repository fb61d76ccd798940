"""Keeps the present run while it goes on: its curves, its options, how it ends.

Started by the process that serves a job (``deploy.served_job``), beside its scheduler. It
works on a thread of its own, and whatever fails (a full disk, S3 is away), the job goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.history import folder
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.points import Points, line_of, lines_of
from dcos_tensorflow.history.record import Notes, Record, joined, record_of, run_id, with_points
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.history.bucket import RunBucket

log = logging.getLogger(__name__)

#: New points are written this often: so much of a curve a scheduler that is killed loses; seconds.
SECONDS = 1.0
#: What is known beside them is replaced this often, and at once where the job has got further.
_RECORD_SECONDS = 10.0
#: The copy in S3 is replaced this often, and at the end.
COPY_SECONDS = 60.0
#: How long the end of the process waits for the last words, the copy included; seconds.
_LAST_SECONDS = 5.0
#: How long a request for curves waits for those of before; seconds. A disk takes a part of it.
_EARLIER_SECONDS = 5.0
#: What of a record changes all the time.
_MOVING = ("step", "metrics", "summary")


@dataclass(frozen=True)
class Sources:
    """Where a keeper takes what it keeps. None is called in the event loop's thread."""

    #: Returns the newest state; None while there is none.
    state: Callable[[], ServiceState | None]
    #: Returns the options in force, secrets hidden.
    options: Callable[[], Mapping[str, Any]]
    #: Takes secrets out of what is kept of this state.
    clean: Callable[[ServiceState, Any], Any]
    #: Returns where in S3 this service's runs are copied; None for nowhere. May raise StorageError.
    bucket: Callable[[ServiceState], RunBucket | None]


class Keeper:
    """See the module. ``path`` is the folder of the service's runs."""

    def __init__(self, path: Path, curves: Curves, sources: Sources) -> None:
        self._path = path
        self._curves = curves
        self._sources = sources
        self._ending = threading.Event()
        self._woken = threading.Event()
        self._earlier = threading.Event()
        self._keeping = threading.Lock()
        self._thread: threading.Thread | None = None
        self._run: RunFolder | None = None
        #: What is known of the run; what of it is in its file, and since when.
        self._record: Record = {}
        self._kept: Record = {}
        self._kept_at = 0.0
        #: What the process that serves the job has told of its end.
        self._told: Mapping[str, Any] = {}
        #: What was looked at last, and until when nothing else is there if it is the same.
        self._seen: tuple[object, ...] = (None, None, None)
        self._look_again_at = 0.0
        #: The file of the points is to be made anew.
        self._anew = True
        self._bucket: RunBucket | None = None
        #: What schedulers of other machines have kept is here.
        self._brought = False
        self._to_copy = False
        self._copied_at: float | None = None
        self._leads = True
        self._failure = ""

    def start(self) -> None:
        """Begin to keep what there is. Returns at once."""
        self._thread = threading.Thread(target=self._work, name="history", daemon=True)
        self._thread.start()

    def observe(self, state: ServiceState) -> None:
        """Have kept what is new in this state, soon. After each step; it costs nothing."""
        if self._curves.has_new or not _same(_what_counts(state), self._seen):
            self._woken.set()

    def tell(self, told: Mapping[str, Any]) -> None:
        """Keep this of the run, too, with all that was told by now; from any thread."""
        self._told = dict(told)
        self._try(self._keep, at_once=True)

    def finish(self, *, leads: bool) -> None:
        """Keep what was told last, and end; ``leads``: no other process keeps the run by now."""
        if self._thread is None:
            return
        self._leads = leads
        self._ending.set()
        self._woken.set()
        # The disk waits for no copy that is under way.
        self._try(self._keep, at_once=True)
        self._thread.join(_LAST_SECONDS)

    def wait_for_earlier(self) -> None:
        """Wait until the curves have what a scheduler of before has kept: a moment after start."""
        if self._thread is not None:
            self._earlier.wait(_EARLIER_SECONDS)

    def records(self) -> list[Record]:
        """Return what is known of each run, the newest first. From any thread."""
        return [record for run in folder.runs_in(self._path) if (record := run.record())]

    def note(self, run: str, notes: Notes) -> bool:
        """Keep what a person says of a run, by its number or id; False where there is none.

        The copy in S3 has the notes of the present run, and of others those of their last copy.
        From any thread. Raises OSError.
        """
        found = folder.run_called(self._path, run)
        if found is None:
            return False
        found.keep_notes(notes)
        self._to_copy = True
        return True

    def points_of(self, run: str) -> Points | None:
        """Return the points of a run by its number or id; None where there is none."""
        found = folder.run_called(self._path, run)
        return None if found is None else found.points()

    def _work(self) -> None:
        while not self._ending.is_set():
            self._woken.clear()
            self._try(self._keep)
            self._try(self._copy)
            if self._run is not None:
                self._earlier.set()
            # What comes thick and fast is written together; what is in no state is looked for.
            self._ending.wait(SECONDS)
            self._woken.wait(SECONDS if self._run is None else _RECORD_SECONDS)
        if self._leads:
            self._try(self._copy, at_once=True)

    def _try(self, work: Callable[..., None], **how: bool) -> None:
        try:
            work(**how)
        except Exception as error:
            from dcos_tensorflow.task.storage.s3.errors import StorageError

            # The job goes on whatever this was, and the same is told once.
            self._anew = True
            if str(error) != self._failure:
                self._failure = str(error)
                unknown = None if isinstance(error, OSError | StorageError) else error
                log.warning("the history of the run is not kept: %s", error, exc_info=unknown)

    def _keep(self, *, at_once: bool = False) -> None:
        state = self._sources.state()
        if state is not None:
            with self._keeping:
                self._keep_run(state, at_once=at_once)

    def _keep_run(self, state: ServiceState, *, at_once: bool) -> None:
        run = self._run or self._begun(state)
        new, everything = self._curves.take(anew=self._anew)
        seen = _what_counts(state)
        same = _same(seen, self._seen)
        # Secrets that became known meanwhile are looked for again, though not each second.
        if (
            same
            and not (new or everything is not None or at_once)
            and time.monotonic() < self._look_again_at
        ):
            return
        self._seen, self._look_again_at = seen, time.monotonic() + _RECORD_SECONDS
        record = record_of(state, self._sources.options(), self._record)
        self._record = {**with_points(record, [point for _, point in new]), **self._told}
        self._to_copy = self._to_copy or bool(new)
        if everything is not None:
            run.replace_points(lines_of(everything, self._cleaner(state)))
            self._anew = False
        elif new:
            run.append([line_of(*each, self._cleaner(state)) for each in new])
        self._keep_record(run, self._sources.clean(state, self._record), at_once=at_once)

    def _begun(self, state: ServiceState) -> RunFolder:
        """Take up what schedulers of before have kept of this run."""
        run = RunFolder(self._path / run_id(state))
        folder.make(self._path)
        record, points = run.record(), run.points()
        if not record:
            folder.remove_oldest(self._path, folder.MOST_RUNS - 1)
        # The file of what is known is older than that of the points.
        self._record = with_points(record, chain.from_iterable(points.values()))
        self._curves.begin_with(points)
        self._run = run
        return run

    def _keep_record(self, run: RunFolder, record: Record, *, at_once: bool) -> None:
        if record == self._kept:
            return
        names = {*record, *self._kept} - {*_MOVING}
        moved = any(record.get(name) != self._kept.get(name) for name in names)
        if at_once or moved or time.monotonic() - self._kept_at >= _RECORD_SECONDS:
            run.keep_record(record)
            self._kept, self._kept_at, self._to_copy = record, time.monotonic(), True

    def _copy(self, *, at_once: bool = False) -> None:
        """Bring the copy in S3 up to date; before its first one, bring here what is there."""
        state, run, since = self._sources.state(), self._run, self._copied_at
        due = since is None or time.monotonic() - since >= COPY_SECONDS
        if state is None or run is None or not self._to_copy or not (due or at_once):
            return
        # What is told meanwhile is for the next copy.
        self._copied_at, self._to_copy = time.monotonic(), False
        try:
            self._copy_run(state, run)
        except Exception:
            # With keys that are read anew: those may have run out.
            self._bucket, self._to_copy = None, True
            raise

    def _copy_run(self, state: ServiceState, run: RunFolder) -> None:
        bucket = self._bucket = self._bucket or self._sources.bucket(state)
        if bucket is None:
            return
        if not self._brought:
            self._bring(run.path.name, bucket)
            self._brought = True
        bucket.put(run.path.name, {**self._kept, **_noted(run)}, self._lines(state))

    def _bring(self, present: str, bucket: RunBucket) -> None:
        """Take what schedulers of other machines have kept, and remove there what is too old."""
        record, points = bucket.get(present)
        RunFolder(self._path / present).begin_with_notes(record)
        with self._keeping:
            self._record = joined(self._record, record)
            self._curves.begin_with(points)
        there = [name for name in bucket.runs() if name != present]
        there.sort(key=lambda name: folder.number_of(name) or 0, reverse=True)
        bucket.remove(there[folder.MOST_RUNS - 1 :])
        for name in there[: folder.MOST_RUNS - 1]:
            run = RunFolder(self._path / name)
            if not run.record():
                record, points = bucket.get(name)
                run.replace_points(lines_of(points, lambda told: told))
                run.keep_record(record)
        folder.remove_oldest(self._path)

    def _lines(self, state: ServiceState) -> list[str]:
        return lines_of(self._curves.points(), self._cleaner(state))

    def _cleaner(self, state: ServiceState) -> Callable[[Any], Any]:
        return lambda told: self._sources.clean(state, told)


def _what_counts(state: ServiceState) -> tuple[object, ...]:
    """Return the parts of a state that a record is made of."""
    return state.gangs, state.spec, state.uninstall


def _same(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))


def _noted(run: RunFolder) -> Record:
    record = run.record()
    return {name: record[name] for name in ("tags", "note") if name in record}
