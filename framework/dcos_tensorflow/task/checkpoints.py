"""Which checkpoint a start would restore: TensorFlow's ``checkpoint`` state file, read and judged.

``runner`` asks before each start and for the status, ``storage`` for the content of a state file.
Only names and directory entries are read, never a tensor. The rules are those of
``tf.train.get_checkpoint_state`` and of the files that a save writes: a prefix counts once its
index and all its data shards are there. The names in a state file that was published may be paths
of a machine that is gone, so a restored one is written anew, with relative names
(tensorflow/python/training/checkpoint_state.proto).
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import asdict, field
from typing import Any, Dict, List, Optional, Set, Tuple

from dcos_tensorflow.records import dataclass

STATE_FILE = "checkpoint"
#: The state file names a few checkpoints; what is longer is something else.
MAX_STATE_BYTES = 1 << 20

_ENTRY = re.compile(
    rb"(?:^|[\s;,{])(model_checkpoint_path|all_model_checkpoint_paths)\s*:\s*"
    rb"(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_CHARACTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f"}
_STEP = re.compile(r"-(\d{1,18})\Z")
_SHARD = re.compile(r"\.data-(\d{5})-of-(\d{5})$")


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint. ``step`` is the number in its name, 0 where that has none.

    ``path`` is its prefix as the state file gives it. Of its files ``bytes`` is the size of all,
    and ``saved_at`` (unix seconds) when the last was written; None before a look. Two are
    the same checkpoint whatever they say of these.
    """

    step: int
    path: str
    bytes: Optional[int] = field(default=None, compare=False)
    saved_at: Optional[float] = field(default=None, compare=False)

    def as_json(self) -> Dict[str, Any]:
        """Return what ``GET /v1/status`` shows under ``checkpoint``."""
        return asdict(self)


def restorable(directory: str) -> Optional[Checkpoint]:
    """Return the checkpoint that a start would restore from ``directory``; None when none would.

    That is the one that the state file names; where it is not complete, the newest complete one of
    those that it names beside it. A directory that cannot be read holds none.
    """
    for path in named(_state(directory)):
        prefix = os.path.join(directory, path)
        if is_complete(prefix):
            return Checkpoint(step_of(path) or 0, path, *_measured(prefix))
    return None


def _measured(prefix: str) -> Tuple[Optional[int], Optional[float]]:
    """Return the size of a checkpoint's files, and when the last was written; None: all gone."""
    folder, name = os.path.split(prefix)
    try:
        with os.scandir(folder or ".") as entries:
            parts = (f"{name}.index", f"{name}.data-")
            found = [entry.stat() for entry in entries if entry.name.startswith(parts)]
    except OSError:
        return None, None
    if not found:
        return None, None
    return sum(one.st_size for one in found), max(one.st_mtime for one in found)


def named(state: bytes) -> List[str]:
    """Return the prefixes that a state file names, the best first.

    ``model_checkpoint_path`` is the newest; ``all_model_checkpoint_paths`` are oldest first.
    """
    latest, others = _entries(state)
    found = latest[-1:] + others[::-1]
    return [path for path in dict.fromkeys(found) if path and "\0" not in path]


def newest_named(state: bytes) -> str:
    """Return the prefix that a state file names as the newest; empty when it names none."""
    latest, _ = _entries(state)
    return latest[-1] if latest else ""


def step_of(prefix: str) -> Optional[int]:
    """Return the step in a name such as ``model.ckpt-1200``, or None."""
    found = _STEP.search(prefix)
    return int(found.group(1)) if found else None


def _entries(state: bytes) -> Tuple[List[str], List[str]]:
    latest: List[str] = []
    others: List[str] = []
    for line in state.splitlines():
        if line.lstrip().startswith(b"#"):
            continue
        for key, text in _ENTRY.findall(line):
            (latest if key == b"model_checkpoint_path" else others).append(_unquoted(text))
    return latest, others


def is_complete(prefix: str) -> bool:
    """Say whether the index and all data shards of ``prefix`` are there."""
    folder, name = os.path.split(prefix)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return False
    if f"{name}.index" not in names:
        return False
    shards: Dict[int, Set[int]] = {}
    for entry in names:
        found = _SHARD.search(entry) if entry.startswith(f"{name}.data-") else None
        if found and entry == f"{name}{found.group(0)}":
            shards.setdefault(int(found.group(2)), set()).add(int(found.group(1)))
    return any(there >= set(range(count)) for count, there in shards.items() if count)


def _state(directory: str) -> bytes:
    try:
        # Not blocking: the job may have put a named pipe there.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(os.path.join(directory, STATE_FILE), flags)
    except OSError:
        return b""
    try:
        return os.read(descriptor, MAX_STATE_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _unquoted(text: bytes) -> str:
    def character(match: "re.Match[bytes]") -> bytes:
        octal, hexadecimal, other = match.groups()
        if octal or hexadecimal:
            return bytes([int(octal or hexadecimal, 8 if octal else 16) & 0xFF])
        return _CHARACTERS.get(other, other)

    return _ESCAPE.sub(character, text[1:-1]).decode("utf-8", "surrogateescape")


def newest_in(text: str) -> str:
    """Return the newest checkpoint's prefix in ``text``; empty when it names none."""
    return newest_named(text.encode("utf-8", "surrogateescape"))


def state_file_naming(name: str) -> str:
    """Return the state file that names ``name`` alone."""
    quoted = "".join(_quoted(byte) for byte in name.encode("utf-8", "surrogateescape"))
    return f'model_checkpoint_path: "{quoted}"\nall_model_checkpoint_paths: "{quoted}"\n'


def relative_name(named: str, directory: str) -> Optional[str]:
    """Return the prefix ``named`` relative to ``directory`` (absolute, where the file lies).

    An absolute name of another place stands for a directory that was copied: what lies beside the
    state file is meant. None when the name leaves the directory.
    """
    if posixpath.isabs(named):
        inside = posixpath.relpath(posixpath.normpath(named), posixpath.normpath(directory))
        name = posixpath.basename(named) if inside.startswith("..") else inside
    else:
        name = posixpath.normpath(named)
    return None if name in ("", ".") or name.startswith("..") else name


def _quoted(byte: int) -> str:
    character = chr(byte)
    if character in '"\\':
        return "\\" + character
    return character if 32 <= byte < 127 else f"\\{byte:03o}"
