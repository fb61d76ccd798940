"""The files that tasks fetch: the task runner's zipapp, a packed local job, and data.

Used by ``scheduler.scheduler`` before anything is launched. Names have a hash of the
file, so a fetcher cache or a running task never sees a file change under its name; and a runner
that is there already is not packed again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from dcos_tensorflow.core.spec.service_spec import Uri
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task import pack


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


@dataclass(frozen=True)
class Runners:
    """The task runner in a folder, and the one that brings boto3 along, packed or not."""

    plain: Path
    storage: Path

    @classmethod
    def of(cls, directory: Path) -> Runners:
        """Return them by the names that they have once they are packed.

        Raises OSError, BundleError.
        """
        plain, storage = pack.identity(), pack.identity(storage=True)
        return cls(
            directory / f"task-runner-{plain}.pyz", directory / f"task-runner-storage-{storage}.pyz"
        )

    def publish(self, *, storage: bool) -> None:
        """Pack what is not there yet, the one with boto3 for jobs with ``storage`` only.

        Raises OSError, BundleError.
        """
        wanted = ((self.plain, False), (self.storage, True)) if storage else ((self.plain, False),)
        for target, with_storage in wanted:
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                pack.publish(target, with_storage)
                target.chmod(0o644)


def publish_archive(archive: Path, directory: Path, stem: str) -> Path:
    """Copy a packed local job, or its data, into ``directory``; returns the file. Raises OSError.

    ``stem`` is what the name begins with.
    """
    directory.mkdir(parents=True, exist_ok=True)
    return _publish(archive, directory, stem)


def uri_of(file: Path, base_url: str | None, *, extract: bool) -> Uri:
    """Return where the fetcher finds ``file``: below ``base_url``, or on the disk when None.

    What comes over the network is kept in the agent's fetcher cache: several tasks of one agent
    fetch it once, and so do those that come later. On a disk there is nothing to be gained.
    """
    value = f"{base_url}/v1/artifacts/{file.name}" if base_url else str(file.resolve())
    return Uri(value, extract=extract, cache=base_url is not None)
