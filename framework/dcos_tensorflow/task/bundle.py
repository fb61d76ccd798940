"""boto3 and its dependencies, which the task runner brings along (packed by ``pack_libraries``).

The runner calls ``activate`` before it imports anything of ``storage.object_store``. botocore reads
its descriptions of services from real files, so all of it is unpacked into the sandbox at the first
start. It goes on the runner's own ``sys.path`` and nowhere else: a job that imports boto3 gets that
of its own environment.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import zipfile
from typing import Any, Dict, Optional, Tuple

from dcos_tensorflow.job_code.modules import JobUnusable
from untrusted_input import trees

#: In the archive: where the libraries are, and what is said of them.
FOLDER = "libraries"
INDEX = "libraries.json"
#: In the sandbox.
_UNPACKED = ".task-runner"


class BundleError(JobUnusable):
    """boto3 cannot be packed or used here."""


def activate(sandbox: str) -> str:
    """Make boto3 importable in this process and return which one, in words. Raises BundleError.

    Outside of a zipapp, in one without the bundle, and where the bundle needs a newer Python, it is
    that of this Python, if there is any.
    """
    archive = _archive()
    index = _index(archive) if archive else None
    own = importlib.util.find_spec("boto3") is not None
    if archive and index and (_runs_here(index) or not own):
        folder = _unpacked(archive, index, sandbox)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return f"boto3 {index['versions']['boto3']}, which the task runner brings along"
    if not own:
        raise BundleError(
            "this Python has no boto3, and this task runner brings none along",
            "install boto3 (1.36 or newer) beside TensorFlow in the task's image or environment",
        )
    return f"boto3 of {sys.executable}"


def _archive() -> Optional[str]:
    archive = getattr(globals().get("__loader__"), "archive", None)
    return os.path.abspath(archive) if archive else None


def _index(archive: str) -> Optional[Dict[str, Any]]:
    with zipfile.ZipFile(archive) as packed:
        try:
            index: Dict[str, Any] = json.loads(packed.read(INDEX))
        except KeyError:
            return None
    return index


def _needed(index: Dict[str, Any]) -> Tuple[int, ...]:
    return tuple(index["requires_python"])


def _runs_here(index: Dict[str, Any]) -> bool:
    return sys.version_info[:2] >= _needed(index)


def _unpacked(archive: str, index: Dict[str, Any], sandbox: str) -> str:
    """Return the folder with the libraries, unpacked if it was not there. Never half of it."""
    if not _runs_here(index):
        has, wants = (".".join(map(str, v)) for v in (sys.version_info[:2], _needed(index)))
        raise BundleError(
            f"S3 needs Python {wants} or newer in the task, and {sys.executable} is Python {has}",
            "use an image or environment of a newer Python, or one with a boto3 of its own",
        )
    top = os.path.join(sandbox, _UNPACKED)
    folder = os.path.join(top, f"libraries-{index['digest']}")
    if os.path.isdir(folder):
        return folder
    partial = f"{folder}.{os.getpid()}"
    try:
        os.makedirs(top, exist_ok=True)
        with zipfile.ZipFile(archive) as packed:
            names = [n for n in packed.namelist() if n.startswith(f"{FOLDER}/")]
            packed.extractall(partial, names)
        os.rename(os.path.join(partial, FOLDER), folder)
    except OSError as error:
        # Another start may have been first.
        if os.path.isdir(folder):
            return folder
        raise BundleError(
            f"boto3 cannot be unpacked into {top}: {error.strerror or error}",
            "give the task more disk, or a sandbox that it may write to",
        ) from error
    finally:
        trees.remove(partial)
    return folder
