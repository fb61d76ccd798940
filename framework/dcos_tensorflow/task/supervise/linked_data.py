"""Input data of the task's own machine, linked into its sandbox before the first start.

``starts`` calls it. Nothing is copied: what the job writes there, it writes to the data itself.
"""

from __future__ import annotations

import os

from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.spec import Link


def make_link(link: Link, sandbox: str) -> None:
    """Let ``link.path`` below the sandbox lead to the data. Raises JobUnusable."""
    if not os.path.exists(link.source):
        raise JobUnusable(
            f"data: there is no file or folder {link.source} on this machine",
            "an absolute path is one of the machines that tasks run on, all of them; what lies on "
            "yours is named by a path beside the options file, or put into S3",
        )
    path = os.path.join(sandbox, link.path)
    if not os.path.isdir(link.source):
        path = os.path.join(path, os.path.basename(link.source))
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(path):
            # Of a start before, in the same sandbox.
            os.unlink(path)
        os.symlink(link.source, path)
    except OSError as error:
        raise JobUnusable(
            f"data: {link.source} cannot be linked to {link.path}: {error.strerror}",
            "choose another path, which the job does not bring itself",
        ) from None
