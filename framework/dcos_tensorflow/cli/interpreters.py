"""Which Python on this machine has TensorFlow: for tasks of the embedded cluster.

Called by ``preparation``. TensorFlow is looked for, never imported: that takes seconds.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterable
from pathlib import Path


def this_interpreter() -> Path:
    """Return the Python that runs this program, inside its virtual environment."""
    return Path(sys.executable)


def find_tensorflow(places: Iterable[Path]) -> Path | None:
    """Return a Python with TensorFlow: this one, or a virtual environment near ``places``.

    Near are ``.venvs/tensorflow-*`` (the highest version first) and ``.venv`` in each place and in
    the folders above it, nearest first.
    """
    if importlib.util.find_spec("tensorflow") is not None:
        return this_interpreter()
    seen: set[Path] = set()
    for place in places:
        for folder in (place.absolute(), *place.absolute().parents):
            if folder in seen:
                continue
            seen.add(folder)
            for environment in _environments(folder):
                if has_tensorflow(environment):
                    return environment
    return None


def has_tensorflow(environment: Path) -> bool:
    """Say whether a virtual environment holds TensorFlow."""
    return (environment / "bin" / "python").exists() and any(
        environment.glob("lib/python3*/site-packages/tensorflow/__init__.py")
    )


def _environments(folder: Path) -> list[Path]:
    try:
        numbered = sorted(folder.glob(".venvs/tensorflow-*"), key=_version, reverse=True)
    except OSError:
        return []
    return [*numbered, folder / ".venv"]


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.name))
