"""TensorFlow's ``checkpoint`` state file: read, and written with relative names.

Pure. The file is the text form of the protobuf CheckpointState
(tensorflow/python/training/checkpoint_state.proto); its names may be absolute paths of a machine
that is gone, so a restored one is written anew.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Optional, Tuple

STATE_FILE = "checkpoint"

_FIELD = re.compile(r'^\s*(model_checkpoint_path|all_model_checkpoint_paths)\s*:\s*"(.*)"\s*$')
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_STEP = re.compile(r"-(\d+)\Z")


@dataclass(frozen=True)
class CheckpointState:
    """What the file says: the newest checkpoint's prefix, and all that are kept."""

    newest: str
    kept: Tuple[str, ...] = ()


def parse(text: str) -> Optional[CheckpointState]:
    """Return what ``text`` says, or None when it names no checkpoint."""
    newest, kept = "", []
    for line in text.splitlines():
        field = _FIELD.match(line)
        if field and field.group(1) == "model_checkpoint_path":
            newest = _unescape(field.group(2))
        elif field:
            kept.append(_unescape(field.group(2)))
    return CheckpointState(newest, tuple(kept)) if newest else None


def render(name: str) -> str:
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


def step_of(prefix: str) -> Optional[int]:
    """Return the step in a name such as ``model.ckpt-1200``, or None."""
    found = _STEP.search(prefix)
    return int(found.group(1)) if found else None


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    raw = bytearray()
    position = 0
    for escape in _ESCAPE.finditer(text):
        raw += text[position : escape.start()].encode("utf-8", "surrogateescape")
        raw += _meaning(escape.group(1))
        position = escape.end()
    raw += text[position:].encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")


def _meaning(escape: str) -> bytes:
    if escape[0] in "01234567":
        return bytes([int(escape, 8) & 0xFF])
    if escape[0] == "x" and len(escape) > 1:
        return bytes([int(escape[1:], 16)])
    return _SIMPLE.get(escape, escape).encode()


def _quoted(byte: int) -> str:
    character = chr(byte)
    if character in '"\\':
        return "\\" + character
    return character if 32 <= byte < 127 else f"\\{byte:03o}"
