"""Secrets that come to a task as files: from its environment to where only its user reads them.

``main`` places them before anything else and removes them at the end; the guard removes them when
the runner was killed. They lie in memory where there is a place for that, and the sandbox, which
others may read through Mesos, only links to them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import tempfile
from typing import Iterator, Mapping, MutableMapping

from dcos_tensorflow.core import contract

#: Names the folder of the files, for the guard.
DIRECTORY_VARIABLE = "TASK_RUNNER_SECRETS_DIR"
_MEMORY = "/dev/shm"


@contextlib.contextmanager
def placed(variables: MutableMapping[str, str], sandbox: str) -> Iterator[None]:
    """Write the files that ``variables`` hold and take them out of it; remove them at the end.

    Raises OSError, and ValueError for what the scheduler cannot have written.
    """
    try:
        text = variables.pop(contract.RUNNER_SECRETS_VARIABLE, "")
        for path, data in (json.loads(text) if text else {}).items():
            content = base64.b64decode(data)
            link = os.path.join(sandbox, path)
            os.makedirs(os.path.dirname(link), exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(link)
            os.symlink(write(variables, sandbox, content), link)
        yield
    finally:
        remove(variables)


def write(variables: MutableMapping[str, str], sandbox: str, content: bytes) -> str:
    """Write a file that only this user reads and return its path. Raises OSError."""
    descriptor, path = tempfile.mkstemp(dir=directory(variables, sandbox))
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return path


def directory(variables: MutableMapping[str, str], sandbox: str) -> str:
    """Return the folder of such files, made at the first time. Raises OSError."""
    if DIRECTORY_VARIABLE not in variables:
        place = _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else sandbox
        variables[DIRECTORY_VARIABLE] = tempfile.mkdtemp(prefix=".dcos-tensorflow-", dir=place)
    return variables[DIRECTORY_VARIABLE]


def remove(variables: Mapping[str, str]) -> None:
    """Remove the folder, if there is one."""
    if DIRECTORY_VARIABLE in variables:
        shutil.rmtree(variables[DIRECTORY_VARIABLE], ignore_errors=True)
