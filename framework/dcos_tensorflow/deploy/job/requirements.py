"""What a job's requirements come to, before the start. Used by ``seen_code`` and ``preparation``.

The task runner installs them; what it would refuse is better refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.job_code.found import Found
from dcos_tensorflow.task.python.python_environments import is_ready, users_directory
from dcos_tensorflow.task.python.python_packages import (
    Base,
    pinned_tensorflow,
    requirements_wanted,
    tensorflow_wanted,
    this_python,
)


def named_tensorflow(spec: ServiceSpec, found: Found, root: str) -> str:
    """Return the version of TensorFlow that requirements name exactly; empty for none.

    The code that is started as ``found`` lies below ``root``. Raises JobUnusable for requirements
    that no task could install.
    """
    lines = next((r.packages.requirements for r in spec.roles if r.packages.requirements), ())
    if not lines:
        return ""
    wanted = requirements_wanted(lines, Base("", ()), found.python_path, root)
    return pinned_tensorflow(wanted.content)


def environments_are_there(directory: Path, version: str, gpus: Sequence[int]) -> bool:
    """Say whether tasks of this machine, with so many GPUs each, find TensorFlow of ``version``.

    It was made for others of this user then, in ``directory``.
    """
    place, base = users_directory(str(directory)), this_python()
    return all(is_ready(place, base, tensorflow_wanted(version, n, "")) for n in set(gpus))
