"""The files that tasks fetch: the task runner's zipapp, a packed local job, and data.

Used by ``scheduler.Scheduler`` before anything is launched. Names carry the content's hash, so a
fetcher cache or a running task never sees a file change under its name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from dcos_tensorflow.core.model.spec import Uri
from dcos_tensorflow.task.pack import build_zipapp


def _publish(source: Path, directory: Path, stem: str) -> Path:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = directory / f"{stem}-{digest}{''.join(source.suffixes[-2:])}"
    if not target.exists():
        handle, partial = tempfile.mkstemp(dir=directory)
        os.close(handle)
        shutil.copyfile(source, partial)
        os.chmod(partial, 0o644)
        os.replace(partial, target)
    return target


def publish_runner(directory: Path, *, storage: bool = False) -> Path:
    """Pack the task runner into ``directory``; returns the file.

    With ``storage`` it is the one that brings boto3 along. Raises OSError, BundleError.
    """
    stem = "task-runner-storage" if storage else "task-runner"
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        packed = build_zipapp(Path(scratch) / f"{stem}.pyz", storage=storage)
        return _publish(packed, directory, stem)


def publish_archive(archive: Path, directory: Path, stem: str) -> Path:
    """Copy a packed local job, or its data, into ``directory``; returns the file. Raises OSError.

    ``stem`` is what the name begins with.
    """
    directory.mkdir(parents=True, exist_ok=True)
    return _publish(archive, directory, stem)


def uri_of(file: Path, base_url: str | None, *, extract: bool) -> Uri:
    """Return where the fetcher finds ``file``: below ``base_url``, or on the disk when None."""
    value = f"{base_url}/v1/artifacts/{file.name}" if base_url else str(file.resolve())
    return Uri(value, extract=extract)
