"""Walks and removes folders that users and their jobs have made, however deep these are.

``os.walk`` and ``shutil.rmtree`` call themselves for each level (Python 3.11), and end with
RecursionError in a tree of a thousand folders. Used wherever somebody else has made what is below a
folder; ruff refuses the others. Links are told and removed as such, never followed. The task runner
comes with it, on any Python from 3.8.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from typing import Union

__all__ = ["remove", "walk"]

AnyPath = Union[str, "os.PathLike[str]"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def walk(top: AnyPath) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder below ``top`` with the names of its folders and of all else, top first.

    A folder whose name is taken out of the first list is not entered. What cannot be read, or lies
    deeper than a path can be long, is passed over.
    """
    waiting = [os.fspath(top)]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda each: each.name)
        except OSError:
            continue
        folders = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
        known = frozenset(folders)
        yield folder, folders, [each.name for each in entries if each.name not in known]
        waiting.extend(os.path.join(folder, name) for name in reversed(folders))


def remove(top: AnyPath, *, ignore_errors: bool = False) -> None:
    """Remove a folder with all below it. Raises OSError, unless what fails is to be left.

    Folders move up before they are emptied, so that no path grows with the depth of the tree. They
    are opened as the folders that they are: a link that takes the place of one is not followed.
    """
    errors: list[OSError] = []
    try:
        opened = os.open(top, _FOLDER)
        try:
            _empty(opened, errors)
        finally:
            os.close(opened)
        os.rmdir(top)
    except OSError as error:
        errors.append(error)
    if errors and not ignore_errors:
        raise errors[0]


def _empty(top: int, errors: list[OSError]) -> None:
    """Remove all that is in an open folder; a folder in it gives its own folders to it first."""
    unique, number = uuid.uuid4().hex, 0
    waiting = _unlinked(top, errors)
    while waiting:
        name = waiting.pop()
        try:
            with contextlib.suppress(OSError):
                os.chmod(name, 0o700, dir_fd=top, follow_symlinks=False)
            opened = os.open(name, _FOLDER, dir_fd=top)
            try:
                for below in _unlinked(opened, errors):
                    number += 1
                    place = f"{unique}-{number}"
                    os.rename(below, place, src_dir_fd=opened, dst_dir_fd=top)
                    waiting.append(place)
            finally:
                os.close(opened)
            os.rmdir(name, dir_fd=top)
        except OSError as error:
            errors.append(error)


def _unlinked(folder: int, errors: list[OSError]) -> list[str]:
    """Remove all but the folders of an open folder; return the names of these."""
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            try:
                os.unlink(entry.name, dir_fd=folder)
            except OSError as error:
                errors.append(error)
    return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
