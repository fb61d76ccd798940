"""File work that the engines share: look for room, write all of something.

``download``, ``objects`` and those that write a state file call it. Nothing here knows S3.
"""

from __future__ import annotations

import os
import shutil
from typing import Iterable, Tuple, Union

from dcos_tensorflow.task.storage.s3.errors import problem_error


def check_room(coming: Iterable[Tuple[str, int]], folder: str) -> None:
    """Raise StorageError where ``folder`` has no room for files of these paths and sizes.

    What is there of them already needs no more room.
    """
    needed = 0
    for path, size in coming:
        needed += size
        if os.path.exists(path):
            needed -= os.stat(path).st_blocks * 512
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise problem_error(
            "disk_full",
            f"{-(-needed // 1_000_000)} MB are to be fetched, the disk has {free // 1_000_000} MB",
            "give the task more disk",
        )


def write_all(target: int, content: Union[bytes, memoryview], position: int) -> None:
    """Write ``content`` at ``position`` of an open file: the system may take less at a time."""
    view = memoryview(content)
    while view:
        count = os.pwrite(target, view, position)
        view = view[count:]
        position += count


def write_text(path: str, text: str) -> None:
    """Write a state file; names in it may be of bytes that are no UTF-8."""
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
