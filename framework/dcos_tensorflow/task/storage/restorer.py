"""Makes a directory equal to a published checkpoint, before the user's process starts.

The runner of the chief, of every member of a MultiWorkerMirrored gang and of the evaluator calls
``restore``; all with the same ``pinned`` id, so that all start from the same state. Own state goes
before given weights, and those before nothing. Every byte is verified before a file gets its name.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from dataclasses import field, replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.checkpoints import STATE_FILE
from dcos_tensorflow.task.storage import layout, snapshot
from dcos_tensorflow.task.storage.checkpoint_store import read_manifest, read_pointer
from dcos_tensorflow.task.storage.initial import InitialState
from dcos_tensorflow.task.storage.manifest import Manifest, Published
from dcos_tensorflow.task.storage.s3 import download
from dcos_tensorflow.task.storage.s3.disk import write_text
from dcos_tensorflow.task.storage.s3.download import Download
from dcos_tensorflow.task.storage.s3.errors import DamagedCheckpoint, S3Problem, storage_error
from dcos_tensorflow.task.storage.s3.location import Location
from dcos_tensorflow.task.storage.s3.object_store import Connection
from untrusted_input import trees

RESTORE_PREFIX = f"{layout.STAGING_PREFIX}restore-"

#: What names or opens the other files of a checkpoint comes after them.
_LAST = {"saved_model.pb": 1, STATE_FILE: 2}

SOURCE_PUBLISHED = "published"
SOURCE_LOCAL = "local"
SOURCE_INITIAL = "initial"
SOURCE_SCRATCH = "scratch"


@dataclass(frozen=True)
class Restored:
    """What the directory holds now, and where it is from.

    ``id`` is that of a published checkpoint, else ''. ``bytes_fetched`` came over the network now.
    ``paths`` are the files of a published or given checkpoint.
    """

    source: str
    id: str = ""
    step: Optional[int] = None
    files: int = 0
    size: int = 0
    bytes_fetched: int = 0
    warnings: Tuple[str, ...] = ()
    paths: Tuple[str, ...] = field(default=(), repr=False)

    def as_json(self) -> Dict[str, Any]:
        """Return what the status shows: of ``paths`` only how many."""
        return {name: value for name, value in vars(self).items() if name != "paths"}

    @property
    def text(self) -> str:
        """Return one sentence for the log."""
        if self.source == SOURCE_SCRATCH:
            return "nothing is published and no weights were given: training starts from scratch"
        step = "" if self.step is None else f" of step {self.step}"
        what = {
            SOURCE_PUBLISHED: f"restored {self.id}{step}",
            SOURCE_LOCAL: f"kept the local state{step}, which is newer than the published one",
            SOURCE_INITIAL: f"starting from the given weights{step}",
        }[self.source]
        return f"{what}: {self.files} files, {self.size / 1e6:.1f} MB"


def local_state(choice: layout.Choice, warnings: Tuple[str, ...] = ()) -> Restored:
    """Return that the directory is left as it is, with the complete checkpoint in it."""
    size = sum(fact.size for fact in choice.files)
    return Restored(SOURCE_LOCAL, "", choice.step, len(choice.files), size, 0, warnings)


class Restorer:
    """Reads the place ``place``; ``initial`` are the weights to begin with, if any."""

    def __init__(
        self, place: Location, connection: Connection, initial: Optional[InitialState] = None
    ) -> None:
        self._place = place
        self._connection = connection
        self._initial = initial

    def published(self) -> Tuple[Published, ...]:
        """Return the published checkpoints, newest first. Raises StorageError."""
        pointer, _ = read_pointer(self._connection.store(self._place.bucket), self._place)
        return pointer.published if pointer else ()

    def add(
        self, directory: str, line: Published, coming: Callable[[Tuple[str, ...]], None]
    ) -> Restored:
        """Bring a checkpoint beside what ``directory`` holds; its state file comes last.

        A process may read there all the while. ``coming`` is told which files there will be, before
        they are. Raises StorageError.
        """
        try:
            return self._restore_one(directory, line, coming)
        except OSError as error:
            raise storage_error(error, "bring a checkpoint") from error

    def restore(self, directory: str, pinned: str = "", prefer_local: bool = False) -> Restored:
        """Make ``directory`` equal to a checkpoint, and return which one it was.

        With ``pinned`` it is that one or a DamagedCheckpoint: no member of a gang may choose
        another. Without, it is the newest that is not damaged. ``prefer_local`` keeps a complete
        local checkpoint of a later step (for a task that is alone with its state). Files of the
        directory that belong to no checkpoint of it are removed; event files stay. A transfer that
        was cut goes on at the next call. Raises StorageError when S3 or the disk does not let it.
        """
        try:
            os.makedirs(directory, exist_ok=True)
            lines = self.published()
            if pinned:
                return self._restore_one(directory, _pinned(lines, pinned, self._place))
            local = self._local(directory, lines) if prefer_local else None
            return local or self._restore_newest(directory, lines)
        except OSError as error:
            raise storage_error(error, "restore a checkpoint") from error

    def _restore_newest(self, directory: str, lines: Sequence[Published]) -> Restored:
        warnings: List[str] = []
        for line in lines:
            try:
                return replace(self._restore_one(directory, line), warnings=tuple(warnings))
            except DamagedCheckpoint as damaged:
                step = "" if line.step is None else f" of step {line.step}"
                warnings.append(f"checkpoint {line.id}{step} is damaged: {damaged.problem.summary}")
                self._connection.log(f"checkpoints: {warnings[-1]}; the one before is used")
        if lines:
            raise DamagedCheckpoint(
                S3Problem(
                    "damaged",
                    False,
                    f"all {len(lines)} checkpoints in {self._place.uri} are damaged",
                    "give another checkpoints.uri to begin anew, or repair the bucket",
                )
            )
        if self._initial is not None:
            return self._from_initial(directory, self._initial)
        _remove_others(directory)
        return Restored(SOURCE_SCRATCH)

    def _restore_one(
        self,
        directory: str,
        line: Published,
        coming: Optional[Callable[[Tuple[str, ...]], None]] = None,
    ) -> Restored:
        store = self._connection.store(self._place.bucket)
        made = read_manifest(store, line)
        staging = self._staging(directory, line.id)
        _take_over(directory, staging, made)
        fetch = Download(store, self._connection)
        try:
            fetch.run(made.files, staging)
        except DamagedCheckpoint:
            trees.remove(staging)
            raise
        paths = tuple(entry.path for entry in made.files)
        if coming is not None:
            coming(paths)
        else:
            _remove_others(directory)
        _install(directory, staging, paths)
        return Restored(
            SOURCE_PUBLISHED,
            line.id,
            made.step,
            len(made.files),
            made.size,
            fetch.bytes_fetched,
            paths=paths,
        )

    def _from_initial(self, directory: str, initial: InitialState) -> Restored:
        staging = self._staging(directory, "initial")
        fetched = initial.fetch(staging, self._connection)
        _remove_others(directory)
        _install(directory, staging, fetched.paths)
        return Restored(
            SOURCE_INITIAL,
            step=fetched.step,
            files=len(fetched.paths),
            size=fetched.size,
            bytes_fetched=fetched.size,
            warnings=fetched.warnings,
            paths=tuple(fetched.paths),
        )

    def _local(self, directory: str, lines: Sequence[Published]) -> Optional[Restored]:
        """Return what is here when it is complete and of a later step than what is published."""
        choice = layout.choose(snapshot.look(directory), layout.Patience(ended=True))
        if not choice.ready or choice.step is None:
            return None
        if lines and (lines[0].step is None or lines[0].step >= choice.step):
            return None
        _name_relatively(directory, choice)
        return local_state(choice)

    def _staging(self, directory: str, name: str) -> str:
        """Return the folder for ``name``; what is left of other restores is removed."""
        staging = os.path.join(directory, RESTORE_PREFIX + name)
        for other in os.listdir(directory):
            if other.startswith(RESTORE_PREFIX) and other != os.path.basename(staging):
                trees.remove(os.path.join(directory, other))
        os.makedirs(staging, exist_ok=True)
        return staging


def _pinned(lines: Sequence[Published], pinned: str, place: Location) -> Published:
    for line in lines:
        if line.id == pinned:
            return line
    raise DamagedCheckpoint(
        S3Problem(
            "not_published",
            False,
            f"checkpoint {pinned} is not published in {place.uri} (any more)",
            "start the gang with one of those that are",
        )
    )


def _take_over(directory: str, staging: str, made: Manifest) -> None:
    """Link into ``staging`` what the directory holds already of ``made``, verified."""
    for entry in made.files:
        source, target = os.path.join(directory, entry.path), os.path.join(staging, entry.path)
        if not os.path.exists(target) and download.matches(source, entry):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _link_private(source, target)


def _link_private(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _install(directory: str, staging: str, paths: Sequence[str]) -> None:
    """Move the files of ``staging`` into ``directory``; those that make others visible last.

    A crash in between leaves a directory without state file, which the next restore makes whole.
    """
    for path in sorted(paths, key=lambda path: _LAST.get(posixpath.basename(path), 0)):
        target = os.path.join(directory, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(os.path.join(staging, path), target)
    trees.remove(staging)


def _remove_others(directory: str) -> None:
    """Remove the files of other checkpoints, state files first; keep event files."""
    found: List[Tuple[bool, str]] = []
    places: List[str] = []
    for folder, folders, names in trees.walk(directory):
        places.append(folder)
        folders[:] = [name for name in folders if not name.startswith(layout.STAGING_PREFIX)]
        for name in names:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, directory)
            if not layout.is_event_file(relative):
                found.append((name != STATE_FILE, path))
    for _, path in sorted(found):
        os.unlink(path)
    for folder in reversed(places[1:]):
        # Folders with event files in them stay.
        if not os.listdir(folder):
            os.rmdir(folder)


def _name_relatively(directory: str, choice: layout.Choice) -> None:
    for path, text in choice.texts.items():
        target = os.path.join(directory, path)
        write_text(f"{target}.tmp", text)
        os.replace(f"{target}.tmp", target)
