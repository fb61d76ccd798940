"""Secrets that come to a task as files: from its environment to where only its user reads them.

``main`` places them before anything else and removes them at the end; the guard removes them when
the runner was killed. Where both were, as an agent kills a container, the next task of this user on
the machine does. They lie in memory where there is a place for that, and the sandbox, which others
may read through Mesos, only links to them. Where there is none they lie in the sandbox, and the
task's stderr says so.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import sys
import tempfile
import time
from typing import Iterator, Mapping, MutableMapping

from dcos_tensorflow.core import contract
from untrusted_input import trees

_MEMORY = "/dev/shm"
_PREFIX = ".dcos-tensorflow-"
#: A folder this young may not be locked yet by the task that has made it.
_YOUNG_SECONDS = 60.0


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
    if contract.RUNNER_SECRETS_DIRECTORY_VARIABLE not in variables:
        place = _MEMORY
        if not os.access(_MEMORY, os.W_OK | os.X_OK):
            place = sandbox
            sys.stderr.write(
                f"task-runner: {_MEMORY} cannot be written to: the task's secrets lie in its "
                "sandbox on the disk while it runs, and stay there when it is killed\n"
            )
        remove_left_behind(place)
        made = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
        # Held until this process ends, however it does: by that others see that it is in use.
        _lock(made)
        variables[contract.RUNNER_SECRETS_DIRECTORY_VARIABLE] = made
    return variables[contract.RUNNER_SECRETS_DIRECTORY_VARIABLE]


def remove_left_behind(place: str) -> None:
    """Remove this user's folders in ``place`` whose runner is gone."""
    with os.scandir(place) as entries:
        folders = [entry for entry in entries if entry.name.startswith(_PREFIX)]
    for folder in folders:
        with contextlib.suppress(OSError):
            made = folder.stat(follow_symlinks=False)
            old = time.time() - made.st_ctime > _YOUNG_SECONDS
            if old and made.st_uid == os.geteuid():
                os.close(_lock(folder.path))
                trees.remove(folder.path, strictly=True)


def _lock(folder: str) -> int:
    """Return the descriptor that holds the lock. Raises OSError where another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove(variables: Mapping[str, str]) -> None:
    """Remove the folder, if there is one."""
    if contract.RUNNER_SECRETS_DIRECTORY_VARIABLE in variables:
        trees.remove(variables[contract.RUNNER_SECRETS_DIRECTORY_VARIABLE])
