"""The code of submitted jobs, each archive under its SHA-256 and its ending.

It lies in the queue's folder, and small archives also in the state store, so that a queue which
starts on another machine has it. Received by ``app``, kept and dropped by ``jobs``: code goes
when no job that has not ended needs it.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO

from dcos_tensorflow.core.model.actions import Write
from untrusted_input.archives import SUFFIXES

_NAME = re.compile(rf"([0-9a-f]{{64}})({'|'.join(map(re.escape, SUFFIXES))})")
_FOLDER = "Code"
#: What is larger is in the folder alone: a value of ZooKeeper holds no more.
MOST_STORED = 900_000
#: As a job's archive may be (``deploy.job.job_archive``).
_MOST_BYTES = 1_000_000_000


class CodeRefused(ValueError):
    """This is not kept; the text says why."""


class CodeStore:
    """All archives of a queue, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def restore(self, values: Mapping[str, bytes], needed: Collection[str]) -> None:
        """Write what the state store has and the folder has not; remove what no job needs."""
        for path, content in values.items():
            folder, _, name = path.partition("/")
            if folder == _FOLDER and name in needed and not self.place(name).is_file():
                partial = self.place(name).with_suffix(".part")
                partial.write_bytes(content)
                partial.replace(self.place(name))
        for file in self.folder.iterdir():
            if file.name not in needed:
                file.unlink(missing_ok=True)

    def place(self, name: str) -> Path:
        """Return where an archive lies, or would. Raises CodeRefused for what is no name."""
        if not _NAME.fullmatch(name):
            raise CodeRefused("code is named by its SHA-256 and its ending")
        return self.folder / name

    def writes(self, name: str) -> Iterator[Write]:
        """Yield the write that keeps an archive in the state store, where it is small."""
        place = self.place(name)
        if place.stat().st_size <= MOST_STORED:
            yield Write(f"{_FOLDER}/{name}", place.read_bytes())

    def drop(self, name: str) -> Iterator[Write]:
        """Remove an archive; yield the write that removes it from the state store."""
        self.place(name).unlink(missing_ok=True)
        yield Write(f"{_FOLDER}/{name}", None)

    def receiving(self, name: str) -> Receiving:
        """Return what takes an archive in pieces. Raises CodeRefused."""
        return Receiving(self.place(name))


class Receiving:
    """An archive that comes in pieces; it is there once it is ``whole``. Close it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        handle, self._partial = tempfile.mkstemp(dir=place.parent)
        self._file: IO[bytes] = os.fdopen(handle, "wb")
        self._digest = hashlib.sha256()
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Take a piece. Raises CodeRefused when it is too much, OSError."""
        self._size += len(piece)
        if self._size > _MOST_BYTES:
            raise CodeRefused(f"code of more than {_MOST_BYTES} bytes is not kept")
        self._digest.update(piece)
        self._file.write(piece)

    def whole(self) -> None:
        """Keep it. Raises CodeRefused for what is not what its name says."""
        self._file.close()
        if not self._place.name.startswith(self._digest.hexdigest()):
            raise CodeRefused("the archive does not match its SHA-256")
        os.replace(self._partial, self._place)

    def close(self) -> None:
        """Remove what is left of one that did not come whole."""
        self._file.close()
        Path(self._partial).unlink(missing_ok=True)
