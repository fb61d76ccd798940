"""The files of secrets that a task finds in its sandbox, outside of it on the machine.

Mesos gives such a file a place in memory that only the container sees. Here it lies beside the
agent's work directory, where its file API does not reach, readable for the task's user alone; the
sandbox holds a link to it. ``containers`` names the files, ``host`` writes them, and the end of
the task removes it: ``host``, and ``executor`` when it is left alone. Standard library only.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from untrusted_input import trees

Json = dict[str, Any]


def wanted(work_dir: str, container_id: str, task: Mapping[str, Any]) -> Json | None:
    """Return what the executor's spec says of a task's secret files; None when it has none."""
    volumes = task.get("container", {}).get("volumes", [])
    files = [
        {
            "path": volume["container_path"],
            "data": volume["source"]["secret"]["value"]["data"],
        }
        for volume in volumes
        if volume.get("source", {}).get("type") == "SECRET"
    ]
    return {"directory": f"{place(work_dir)}/{container_id}", "files": files} if files else None


def place(work_dir: str) -> str:
    """Return where an agent keeps the secrets of its tasks."""
    return f"{work_dir}-secrets"


def write(secrets: Mapping[str, Any], sandbox: str) -> None:
    """Write the files and link to them from the sandbox. Raises OSError."""
    directory = Path(secrets["directory"])
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700)
    for number, file in enumerate(secrets["files"]):
        written = directory / str(number)
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(base64.b64decode(file["data"]))
        link = Path(sandbox, file["path"])
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(written)


def remove(secrets: Mapping[str, Any] | None) -> None:
    """Remove the files, if there are any and they are still there."""
    if secrets is not None:
        trees.remove(secrets["directory"])
