"""Weights to begin with (``checkpoints.initial_uri``): found, judged and fetched.

``restorer`` uses it when nothing is published yet. The URI may name a place that another service
published to, a directory with a checkpoint in S3 or on this machine, the prefix of a checkpoint
(``.../model.ckpt-1200``), or one file (``.../model.keras``).
"""

from __future__ import annotations

import os
import posixpath
import shutil
from typing import Dict, List, Mapping, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task import checkpoints
from dcos_tensorflow.task.checkpoints import STATE_FILE
from dcos_tensorflow.task.storage import layout, snapshot
from dcos_tensorflow.task.storage.checkpoint_store import read_manifest, read_pointer
from dcos_tensorflow.task.storage.layout import Choice, FileFacts, Listing, Patience
from dcos_tensorflow.task.storage.s3.disk import write_text
from dcos_tensorflow.task.storage.s3.download import Download
from dcos_tensorflow.task.storage.s3.errors import DamagedCheckpoint, StorageError, problem_error
from dcos_tensorflow.task.storage.s3.location import Location, parse_uri
from dcos_tensorflow.task.storage.s3.object_store import Connection, Listed, ObjectStore
from dcos_tensorflow.task.storage.s3.objects import ObjectFetch, WantedObject
from untrusted_input import trees

_MAX_STATE = 1 << 20
#: Where the files were written is not known: no absolute name in a state file lies below this.
_ROOT = "/unknown-root"


@dataclass(frozen=True)
class FetchedState:
    """What was fetched: relative paths, the step where its name tells one, bytes."""

    paths: Tuple[str, ...]
    step: Optional[int]
    size: int
    warnings: Tuple[str, ...] = ()


@dataclass(frozen=True)
class InitialState:
    """The weights at ``uri``: ``s3://...``, ``file://...`` or a path."""

    uri: str

    def fetch(self, folder: str, connection: Connection) -> FetchedState:
        """Bring the weights below ``folder``. Raises StorageError when there are none."""
        if "://" in self.uri and not self.uri.startswith("file://"):
            return self._fetch_s3(folder, connection)
        return self._copy(folder, self.uri[len("file://") :] if "://" in self.uri else self.uri)

    def _copy(self, folder: str, path: str) -> FetchedState:
        root = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
        listing = snapshot.look(root)
        if root == path:
            choice = layout.choose(listing, Patience(ended=True))
        else:
            choice = _choose_named(listing.files, os.path.basename(path))
        self._check(choice)
        for fact in choice.files:
            target = _made_path(folder, fact.path)
            if fact.path not in choice.texts:
                shutil.copyfile(os.path.join(root, fact.path), target)
        return _finished(folder, choice, ())

    def _fetch_s3(self, folder: str, connection: Connection) -> FetchedState:
        place = parse_uri(self.uri)
        store = connection.store(place.bucket)
        if read_pointer(store, place)[0] is not None:
            return self._fetch_published(folder, connection, store, place)
        base = place.key("") if not place.prefix else f"{place.prefix}/"
        listed = {one.key[len(base) :]: one for one in store.list(base)}
        files = _facts(listed)
        if files:
            states = {
                fact.path: store.get(base + fact.path)[0].decode("utf-8", "surrogateescape")
                for fact in files
                if posixpath.basename(fact.path) == STATE_FILE and fact.size <= _MAX_STATE
            }
            # The root is not known any more: an absolute name means what lies beside its file.
            listing = Listing(_ROOT, files, states)
            choice = layout.choose(listing, Patience(ended=True))
        else:
            parent, name = posixpath.split(place.prefix)
            base = f"{parent}/" if parent else ""
            listed = {one.key[len(base) :]: one for one in store.list(place.prefix)}
            choice = _choose_named(_facts(listed), name)
        self._check(choice)
        wanted = [
            WantedObject(listed[fact.path].key, fact.size, listed[fact.path].etag, fact.path)
            for fact in choice.files
            if fact.path not in choice.texts
        ]
        fetch = ObjectFetch(store, connection)
        fetch.run(wanted, folder)
        return _finished(folder, choice, tuple(fetch.warnings))

    def _fetch_published(
        self, folder: str, connection: Connection, store: ObjectStore, place: Location
    ) -> FetchedState:
        pointer, _ = read_pointer(store, place)
        warnings: List[str] = []
        for line in pointer.published if pointer else ():
            try:
                made = read_manifest(store, line)
                Download(store, connection).run(made.files, folder)
            except DamagedCheckpoint as damaged:
                warnings.append(f"{line.id} is damaged: {damaged.problem.summary}")
                trees.remove(folder)
                os.makedirs(folder)
                continue
            paths = tuple(entry.path for entry in made.files)
            return FetchedState(paths, made.step, made.size, tuple(warnings))
        raise self._nothing("; ".join(warnings) or "nothing is published there")

    def _check(self, choice: Choice) -> None:
        if not choice.ready:
            raise self._nothing(choice.why)

    def _nothing(self, why: str) -> StorageError:
        return problem_error(
            "no_initial_state",
            f"checkpoints.initial_uri {self.uri} holds no complete checkpoint: {why}",
            "correct it, or leave it out to start from scratch",
        )


def _facts(listed: Mapping[str, Listed]) -> Tuple[FileFacts, ...]:
    """Return the listed objects as files; "folders" (empty objects with a slash) are none."""
    return tuple(
        FileFacts(path, one.size, 0, 0)
        for path, one in sorted(listed.items())
        if path and not path.endswith("/") and ".." not in path.split("/")
    )


def _choose_named(files: Tuple[FileFacts, ...], name: str) -> Choice:
    alone = tuple(fact for fact in files if fact.path == name)
    if alone:
        return layout.choose(Listing(_ROOT, alone), Patience(ended=True))
    parts = tuple(fact for fact in files if layout.prefix_of(fact.path) == name)
    if not parts:
        return Choice("nothing has that name")
    state = FileFacts(STATE_FILE, 0, 0, 0)
    states: Dict[str, str] = {STATE_FILE: checkpoints.state_file_naming(name)}
    return layout.choose(Listing(_ROOT, (*parts, state), states), Patience(ended=True))


def _made_path(folder: str, path: str) -> str:
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    return target


def _finished(folder: str, choice: Choice, warnings: Tuple[str, ...]) -> FetchedState:
    for path, text in choice.texts.items():
        write_text(_made_path(folder, path), text)
    size = sum(fact.size for fact in choice.files)
    return FetchedState(tuple(fact.path for fact in choice.files), choice.step, size, warnings)
