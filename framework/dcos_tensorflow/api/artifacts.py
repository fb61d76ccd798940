"""The files that tasks fetch from the API: found by name in one directory, and nowhere else.

``artifact_in`` is for implementations of ``StateSource.artifact``. Mesos' fetcher can send no
token, so these files are served without one. There is no listing, and the names that
``scheduler.artifacts`` gives carry a hash of the content: who was not told a name can not guess it.
"""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def is_artifact_name(name: str) -> bool:
    """Say whether ``name`` is a plain file name: no separator, no leading dot."""
    return _NAME.fullmatch(name) is not None


def artifact_in(directory: Path, name: str) -> Path | None:
    """Return the file ``name`` of ``directory``; None when there is none or it lies elsewhere."""
    if not is_artifact_name(name):
        return None
    root = directory.resolve()
    path = (root / name).resolve()
    return path if path.parent == root and path.is_file() else None
