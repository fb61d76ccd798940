"""Puts ``dcos_tensorflow.report`` in reach of the job's code, whichever Python runs that.

``starts`` writes it into the sandbox before the first start, and ``environment`` names the folder
last on PYTHONPATH: a module of the job with the same name goes first.
"""

from __future__ import annotations

import os

from dcos_tensorflow.task.output import reporting

#: Below the sandbox, beside what else is the runner's there.
_FOLDER = os.path.join(".task-runner", "in-reach")


def folder(sandbox: str) -> str:
    """Return the directory that is put on PYTHONPATH."""
    return os.path.join(sandbox, _FOLDER)


def put(sandbox: str) -> None:
    """Write the package that holds ``report`` and nothing else. Raises OSError."""
    package = os.path.join(folder(sandbox), "dcos_tensorflow")
    os.makedirs(package, exist_ok=True)
    with open(os.path.join(package, "__init__.py"), "w", encoding="utf-8") as file:
        file.write(_source())


def _source() -> str:
    loader = reporting.__loader__
    # A module of an archive has its source there, too.
    return str(loader.get_source(reporting.__name__))  # type: ignore[union-attr]
