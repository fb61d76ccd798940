"""TensorFlow's ``checkpoint`` state file as it is published: with relative names.

Pure. The file is the text form of the protobuf CheckpointState
(tensorflow/python/training/checkpoint_state.proto); ``task.checkpoints`` reads it. Its names may be
absolute paths of a machine that is gone, so a restored one is written anew.
"""

from __future__ import annotations

import posixpath
from typing import Optional

from dcos_tensorflow.task import checkpoints


def newest(text: str) -> str:
    """Return the newest checkpoint's prefix in ``text``; empty when it names none."""
    return checkpoints.newest_named(text.encode("utf-8", "surrogateescape"))


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


def _quoted(byte: int) -> str:
    character = chr(byte)
    if character in '"\\':
        return "\\" + character
    return character if 32 <= byte < 127 else f"\\{byte:03o}"
