"""What a job's requirements come to, where its code lies on this machine. Used by ``preparation``.

The task runner installs them; what it would refuse is better refused before the start.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dcos_tensorflow.cli.errors import UsageError
from dcos_tensorflow.cli.serving.job_archive import is_archive, unpack
from dcos_tensorflow.cli.wording import sentence
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.python_environments import is_ready, users_directory
from dcos_tensorflow.task.python_packages import (
    Base,
    pinned_tensorflow,
    requirements_wanted,
    tensorflow_wanted,
    this_python,
)


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """Give the folder that the code in ``source`` becomes: an archive is unpacked for a while."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="dcos-tensorflow-") as scratch:
        if is_archive(source):
            unpack(source, Path(scratch))
        else:
            shutil.copy(source, scratch)
        yield Path(scratch)


def named_tensorflow(lines: Sequence[str], roots: Sequence[str]) -> str:
    """Return the version of TensorFlow that requirements name exactly; empty for none.

    ``roots`` are the folders of the code, the sandbox last. Raises UsageError for requirements
    that no task could install.
    """
    if not lines:
        return ""
    try:
        wanted = requirements_wanted(lines, Base("", ()), roots, roots[-1])
    except JobUnusable as error:
        text = f"{error}; {error.hint}" if error.hint else str(error)
        raise UsageError(sentence(text)) from error
    return pinned_tensorflow(wanted.content)


def environments_are_there(directory: Path, version: str, gpus: Sequence[int]) -> bool:
    """Say whether tasks of this machine, with so many GPUs each, find TensorFlow of ``version``.

    It was made for others of this user then, in ``directory``.
    """
    place, base = users_directory(str(directory)), this_python()
    return all(is_ready(place, base, tensorflow_wanted(version, n, "")) for n in set(gpus))
