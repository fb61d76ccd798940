"""Copying a file or folder out of a task's sandbox, wherever that lies by now.

Used by ``cp``. A running scheduler is asked for it, which reads it from the agent and leaves out
secrets; of a local job that has ended the sandbox lies on this machine. A folder that is there
already is never written into: a copy is made beside it and put in its place whole.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

from dcos_tensorflow.client.api_client import SchedulerAway, SchedulerClient
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.following.task_output import FolderOutput, Lost
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.records import dataclass
from untrusted_input import trees
from untrusted_input.archives import ArchiveRefused, unpack


@dataclass(frozen=True)
class Copied:
    """What was copied, and to where. Sizes are in bytes."""

    path: Path
    files: int
    size: int


def copy(service: KnownService, task: str, path: str, target: Path) -> Copied:
    """Copy ``path`` of a task's sandbox into the folder ``target``, or as that.

    Raises CliError.
    """
    path = path.strip("/").removeprefix("./")
    path = "" if path == "." else path
    place = target / (path.rpartition("/")[2] or task) if target.is_dir() else target
    if not place.parent.is_dir():
        raise UsageError(f"There is no folder {place.parent} to copy to.")
    if place.is_dir():
        raise UsageError(f"{place} is a folder already: remove it, or name another place.")
    folder = Path(tempfile.mkdtemp(prefix=".copy-", dir=place.parent))
    try:
        found = _fetched(service, task, path, folder)
        if found.is_dir() and place.exists():
            raise UsageError(f"{place} is a file: a folder does not take its place.")
        counted = _counted(found)
        os.replace(found, place)
    finally:
        trees.remove(folder)
    return Copied(place, *counted)


def _fetched(service: KnownService, task: str, path: str, folder: Path) -> Path:
    """Return where the copy lies, below ``folder``."""
    try:
        client = service.connect()
        return _of_the_scheduler(client, task, path, folder)
    except SchedulerAway as away:
        if service.directory is None or service.last_end() is None:
            raise
        return _of_this_machine(FolderOutput(service.directory), task, path, folder, away)


def _of_the_scheduler(client: SchedulerClient, task: str, path: str, folder: Path) -> Path:
    archive = folder / "copy.tar"
    asked = f"/v1/pod/{quote(task, safe='')}/copy"
    with archive.open("w+b") as file:
        client.download(asked, json.dumps({"path": path or "."}), file, f"task {task}")
        file.seek(0)
        inside = folder / "unpacked"
        try:
            unpack(file, archive.name, str(inside))
        except ArchiveRefused as refused:
            raise CliError(f"The archive that the scheduler sent {refused}.") from refused
    return inside / (path.rpartition("/")[2] or task)


def _of_this_machine(
    output: FolderOutput, task: str, path: str, folder: Path, away: SchedulerAway
) -> Path:
    attempt = output.attempt(task)
    if attempt is None:
        there = ", ".join(output.tasks())
        raise CliError(f"{away} {f'There are {there} here.' if there else 'No sandbox is left.'}")
    try:
        sandbox = output.sandbox(attempt)
    except Lost as lost:
        raise CliError(f"{task}: {lost}.") from lost
    found = (sandbox / path).resolve()
    if not found.is_relative_to(sandbox) or not found.exists():
        raise CliError(f"There is no {path} in the kept files of {task} on this machine.")
    copied = folder / "unpacked"
    if found.is_dir():
        # A link may lead to any file of this machine: it stays one.
        shutil.copytree(found, copied, symlinks=True, ignore=_no_files)
    else:
        shutil.copy2(found, copied)
    return copied


def _no_files(folder: str, names: list[str]) -> list[str]:
    """Return what is no file, folder or link: a pipe has no content to copy."""
    paths = {name: Path(folder, name) for name in names}
    return [n for n, p in paths.items() if not (p.is_symlink() or p.is_dir() or p.is_file())]


def _counted(path: Path) -> tuple[int, int]:
    if not path.is_dir():
        return 1, path.stat().st_size
    sizes = [os.lstat(file).st_size for file in trees.files_below(path)]
    return len(sizes), sum(sizes)
