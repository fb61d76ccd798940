"""Which files of a checkpoint directory form a complete checkpoint, decided from a listing.

Pure. ``snapshot`` lists the directory and reads its state files, ``publisher`` asks ``choose``. The
rules follow TensorFlow's own order of writing: the data, the index, then the state file
``checkpoint`` by a rename; older checkpoints are deleted after that. So the checkpoint that the
state file names is complete, and no other ``.index`` or ``.data`` beside it counts. Everything else
(Keras files, SavedModels, a job's own files) has no such mark and must have been quiet for a while.
The values of a trial of a sweep go along with a checkpoint, and are none by themselves.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import field
from typing import Dict, FrozenSet, List, Mapping, Optional, Tuple, Union

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task import checkpoints
from dcos_tensorflow.task.checkpoints import STATE_FILE, step_of
from dcos_tensorflow.task.output.measured import FILE_NAME as MEASURED

#: Names of our own working folders inside the directory; no job's file begins like this.
STAGING_PREFIX = ".dcos-tensorflow-"
#: A state file this young may still get its ``.meta`` (compat.v1 writes it last).
META_SECONDS = 2.0

#: Why nothing is chosen where nothing is there.
NOTHING_YET = "there is no checkpoint yet"

KIND_TENSORFLOW = "tensorflow"
KIND_KERAS = "keras"
KIND_SAVED_MODEL = "saved_model"
KIND_FILES = "files"

_SHARD = re.compile(r"(?P<prefix>.+)\.data-(?P<index>\d{5})-of-(?P<count>\d{5})\Z")
_EVENTS = re.compile(r"events\.out\.tfevents\.")
_TEMPORARY = re.compile(r"(\.tempstate\d+|\.tmp[0-9a-zA-Z_]*|~|\.swp)\Z")
_KERAS_STEP = re.compile(r"(\d+)(?=\D*\Z)")
_KERAS_ENDS = (".weights.h5", ".keras", ".h5", ".hdf5")


@dataclass(frozen=True)
class FileFacts:
    """One file. ``path`` is relative, with slashes; two equal facts mean an untouched file."""

    path: str
    size: int
    modified_ns: int
    inode: int


@dataclass(frozen=True)
class Listing:
    """A directory at one moment. ``root`` is absolute; ``now_ns`` is on the files' own clock.

    ``states`` holds the text of each state file by its path, ``unreadable`` the Keras files whose
    own structure says that they are not whole.
    """

    root: str
    files: Tuple[FileFacts, ...]
    states: Mapping[str, str] = field(default_factory=dict)
    unreadable: FrozenSet[str] = frozenset()
    now_ns: int = 0


@dataclass(frozen=True)
class Choice:
    """The answer: what to publish, or why not now.

    ``texts`` are state files to be written as given (relative names) instead of being copied.
    ``left_out`` are files passed over because they kept changing. ``torn``: a part is missing,
    perhaps only because the directory changed while it was listed.
    """

    why: str
    files: Tuple[FileFacts, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    kind: str = KIND_FILES
    step: Optional[int] = None
    left_out: Tuple[str, ...] = ()
    torn: bool = False

    @property
    def ready(self) -> bool:
        """Say whether there is something to publish."""
        return bool(self.files)


@dataclass(frozen=True)
class Patience:
    """How long a file must have been quiet, seconds; whether to stop waiting for restless ones.

    ``ended``: the user's process has ended, so nothing changes any more.
    """

    quiet_seconds: float = 2.0
    given_up: bool = False
    ended: bool = False


def choose(listing: Listing, patience: Patience = Patience()) -> Choice:
    """Return which files of ``listing`` form its newest complete checkpoint."""
    candidates = {fact.path: fact for fact in listing.files if not is_passing(fact.path)}
    taken: Dict[str, FileFacts] = {}
    texts: Dict[str, str] = {}
    step: Optional[int] = None
    for path in sorted(listing.states, key=lambda path: (path.count("/"), path)):
        group = _named_group(listing, path, candidates, patience)
        if isinstance(group, str):
            return Choice(group, torn=True)
        taken.update((fact.path, fact) for fact in group.files)
        texts[path] = checkpoints.state_file_naming(group.name)
        step = step if step is not None else step_of(group.name)
    others = _others(candidates, taken, texts)
    missing = _missing_parts(others)
    if missing and not (patience.given_up or patience.ended):
        return Choice(missing, torn=True)
    others = _whole_only(others) if missing else others
    restless = _restless(listing, others, patience)
    if restless and not (patience.given_up or patience.ended):
        return Choice(f"{restless[0]} is still being written")
    taken.update((path, fact) for path, fact in others.items() if path not in restless)
    if not taken.keys() - {MEASURED}:
        return Choice(f"{restless[0]} is still being written" if restless else NOTHING_YET)
    taken.update((path, candidates[path]) for path in texts)
    kind = _kind(taken, texts)
    return Choice(
        why="complete",
        files=tuple(taken[path] for path in sorted(taken)),
        texts=texts,
        kind=kind,
        step=step if texts else _keras_step(taken, kind),
        left_out=tuple(restless),
    )


def is_passing(path: str) -> bool:
    """Say whether a file is no part of any checkpoint: temporary, our own, or an event file."""
    *folders, name = path.split("/")
    if any(folder.endswith("_temp") or folder.startswith(STAGING_PREFIX) for folder in folders):
        return True
    if name.startswith((STAGING_PREFIX, f"{STATE_FILE}.tmp")):
        return True
    return is_event_file(path) or bool(_TEMPORARY.search(name))


def is_event_file(path: str) -> bool:
    """Say whether a file is one that TensorBoard reads."""
    return bool(_EVENTS.match(posixpath.basename(path)))


def is_checkpoint_part(path: str) -> bool:
    """Say whether a file belongs to a checkpoint in TensorFlow's own format, by its name."""
    name = posixpath.basename(path)
    return name == STATE_FILE or prefix_of(path) is not None


@dataclass(frozen=True)
class _Group:
    name: str
    files: Tuple[FileFacts, ...]


def _named_group(
    listing: Listing, path: str, candidates: Mapping[str, FileFacts], patience: Patience
) -> Union[_Group, str]:
    """Return the files that the state file at ``path`` names, or why they are not all there."""
    folder = posixpath.dirname(path)
    newest = checkpoints.newest_in(listing.states[path])
    if path not in candidates or not newest:
        return f"{path} names no checkpoint"
    name = checkpoints.relative_name(newest, posixpath.join(listing.root, folder))
    if name is None:
        return f"{path} names {newest}, which is outside of the directory"
    prefix = posixpath.normpath(posixpath.join(folder, name))
    if prefix in candidates:
        return _Group(name, (candidates[prefix],))
    files = [fact for other, fact in candidates.items() if prefix_of(other) == prefix]
    problem = _incomplete(prefix, [fact.path for fact in files])
    if problem:
        return f"{path} names {name}, but {problem}"
    if _awaits_meta(listing, candidates[path], prefix, candidates) and not patience.ended:
        return f"{prefix}.meta is still to be written"
    return _Group(name, tuple(files))


def _awaits_meta(
    listing: Listing, state: FileFacts, prefix: str, candidates: Mapping[str, FileFacts]
) -> bool:
    folder = posixpath.dirname(prefix)
    writes_meta = any(
        path.endswith(".meta") and posixpath.dirname(path) == folder for path in candidates
    )
    young = listing.now_ns - state.modified_ns < META_SECONDS * 1e9
    return writes_meta and young and f"{prefix}.meta" not in candidates


def _others(
    candidates: Mapping[str, FileFacts], taken: Mapping[str, FileFacts], texts: Mapping[str, str]
) -> Dict[str, FileFacts]:
    """Return the files beside the named ones, without older or unfinished checkpoints."""
    governed = {posixpath.dirname(path) for path in taken} | {
        posixpath.dirname(path) for path in texts
    }
    models = {
        posixpath.dirname(path)
        for path in candidates
        if posixpath.basename(path) == "saved_model.pb"
    }
    variables = {posixpath.join(model, "variables") for model in models}
    return {
        path: fact
        for path, fact in candidates.items()
        if path not in taken
        and path not in texts
        and not (
            prefix_of(path) is not None
            and posixpath.dirname(path) in governed
            and posixpath.dirname(path) not in variables
        )
    }


def _missing_parts(others: Mapping[str, FileFacts]) -> str:
    """Return what a SavedModel or a checkpoint without a state file still lacks, or ''."""
    for prefix, paths in sorted(_groups(others).items()):
        problem = _incomplete(prefix, paths)
        if problem:
            return problem
    for path in sorted(others):
        folder, name = posixpath.split(path)
        variables = posixpath.join(folder, "variables")
        inside = any(posixpath.dirname(other) == variables for other in others)
        index = posixpath.join(variables, "variables.index")
        if name == "saved_model.pb" and inside and index not in others:
            return f"{index} is missing"
    return ""


def _whole_only(others: Mapping[str, FileFacts]) -> Dict[str, FileFacts]:
    """Return ``others`` without checkpoints and SavedModels that lack a part."""
    groups = _groups(others)
    broken = {prefix for prefix, paths in groups.items() if _incomplete(prefix, paths)}
    models = {
        posixpath.dirname(prefix.rpartition("/")[0])
        for prefix in broken
        if posixpath.basename(posixpath.dirname(prefix)) == "variables"
    }
    return {
        path: fact
        for path, fact in others.items()
        if prefix_of(path) not in broken
        and not any(posixpath.dirname(path) == model for model in models)
    }


def _groups(files: Mapping[str, FileFacts]) -> Dict[str, List[str]]:
    groups: Dict[str, List[str]] = {}
    for path in files:
        prefix = prefix_of(path)
        if prefix is not None:
            groups.setdefault(prefix, []).append(path)
    return groups


def prefix_of(path: str) -> Optional[str]:
    """Return the checkpoint prefix that a file belongs to by its name, or None."""
    shard = _SHARD.match(path)
    if shard:
        return shard.group("prefix")
    for ending in (".index", ".meta"):
        if path.endswith(ending):
            return path[: -len(ending)]
    return None


def _incomplete(prefix: str, paths: List[str]) -> str:
    shards = [found for found in map(_SHARD.match, paths) if found]
    if not shards and f"{prefix}.index" not in paths:
        # A lone .meta or a job's own file with such an ending is no checkpoint.
        return "" if paths else f"{prefix}.index is missing"
    if f"{prefix}.index" not in paths:
        return f"{prefix}.index is missing"
    if not shards:
        return f"{prefix}.data-* is missing"
    counts = {int(shard.group("count")) for shard in shards}
    for count in sorted(counts):
        there = {int(shard["index"]) for shard in shards if int(shard["count"]) == count}
        if there == set(range(count)):
            return ""
    return f"{prefix} has {len(shards)} of {max(counts)} parts"


def _restless(
    listing: Listing, others: Mapping[str, FileFacts], patience: Patience
) -> Tuple[str, ...]:
    if patience.ended:
        return tuple(path for path in sorted(others) if path in listing.unreadable)
    limit = listing.now_ns - int(patience.quiet_seconds * 1e9)
    return tuple(
        path
        for path, fact in sorted(others.items())
        # What was measured is whole at any time, and seldom rests.
        if (fact.modified_ns > limit and path != MEASURED) or path in listing.unreadable
    )


def _kind(taken: Mapping[str, FileFacts], texts: Mapping[str, str]) -> str:
    if texts:
        return KIND_TENSORFLOW
    if any(posixpath.basename(path) == "saved_model.pb" for path in taken):
        return KIND_SAVED_MODEL
    if any(path.endswith(_KERAS_ENDS) for path in taken):
        return KIND_KERAS
    return KIND_FILES


def _keras_step(taken: Mapping[str, FileFacts], kind: str) -> Optional[int]:
    """Return the largest number at the end of a Keras file's name, or None."""
    if kind != KIND_KERAS:
        return None
    steps = []
    for path in taken:
        name = posixpath.basename(path)
        for ending in _KERAS_ENDS:
            if name.endswith(ending):
                found = _KERAS_STEP.search(name[: -len(ending)])
                steps += [int(found.group(1))] if found else []
                break
    return max(steps) if steps else None
