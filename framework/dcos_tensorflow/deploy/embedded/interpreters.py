"""Which Python on this machine has TensorFlow: for tasks of the embedded cluster.

Called by ``deploy.job.preparation``. TensorFlow is looked for, never imported: that takes seconds.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_DISTRIBUTION = re.compile(r"(?:tensorflow|tensorflow_\w+)-\d")


def this_interpreter() -> Path:
    """Return the Python that runs this program, inside its virtual environment."""
    return Path(sys.executable)


def find_tensorflow(places: Iterable[Path], version: str = "") -> Path | None:
    """Return a Python with TensorFlow: this one, or a virtual environment near ``places``.

    ``version`` is the only one wanted, empty is any. Near is what ``folders_near`` gives: in each
    folder ``.venvs/tensorflow-*``, the highest version first, and ``.venv``.
    """
    if importlib.util.find_spec("tensorflow") is not None:
        own = this_interpreter()
        if not version or has_tensorflow(own.parent.parent, version):
            return own
    for folder in folders_near(places):
        for environment in _environments(folder):
            if has_tensorflow(environment, version):
                return environment
    return None


def found_here(python: str) -> str:
    """Return what to say of a Python with TensorFlow that was found for the tasks."""
    return f"The tasks run with the TensorFlow of {python}."


def folders_near(places: Iterable[Path]) -> Iterator[Path]:
    """Give each place and the folders above it, nearest first, each folder once.

    The last one is where this program's own environment lies: ``make`` puts those of TensorFlow
    beside it, and a job may be anywhere.
    """
    seen: set[Path] = set()
    for place in places:
        for folder in (place.absolute(), *place.absolute().parents):
            if folder not in seen:
                seen.add(folder)
                yield folder
    own = this_interpreter().parent.parent.parent
    if own not in seen:
        yield own


def has_tensorflow(environment: Path, version: str = "") -> bool:
    """Say whether a virtual environment holds TensorFlow, of ``version`` when one is named."""
    if not (environment / "bin" / "python").exists():
        return False
    for packages in environment.glob("lib/python3*/site-packages"):
        if (packages / "tensorflow" / "__init__.py").exists():
            # tensorflow-2.21.0.dist-info, tensorflow_cpu-2.21.0.dist-info
            named = packages.glob(f"tensorflow*-{version}.dist-info")
            return not version or any(_DISTRIBUTION.match(found.name) for found in named)
    return False


def tensorflow_version(python: str) -> str:
    """Return the version of TensorFlow in a virtual environment, or in that of an interpreter.

    Empty where it cannot be told: a Python of the system has its libraries anywhere.
    """
    place = Path(python)
    environment = place if place.is_dir() else place.parent.parent
    for packages in environment.glob("lib/python3*/site-packages"):
        for found in sorted(packages.glob("tensorflow*-*.dist-info")):
            if re.fullmatch(r"tensorflow(_cpu|_gpu)?-.*", found.name):
                return found.name.removesuffix(".dist-info").partition("-")[2]
    return ""


def _environments(folder: Path) -> list[Path]:
    try:
        numbered = sorted(folder.glob(".venvs/tensorflow-*"), key=_version, reverse=True)
    except OSError:
        return []
    return [*numbered, folder / ".venv"]


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.name))
