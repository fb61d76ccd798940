"""Walks through trees of folders that jobs and users make, and removes them: however deep they are.

Used wherever such a tree is looked through or removed. The functions of the standard library call
themselves once for each level, and ends with RecursionError at a thousand (ruff refuses it). No
link is followed. Nothing is decided here, and nothing is opened but folders.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Iterator, List, Optional, Tuple, Union

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_EMPTY = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def walk(
    top: Union[str, "os.PathLike[str]"], *, strictly: bool = False
) -> Iterator[Tuple[str, List[str], List[str]]]:
    """Give each folder of a tree, with the names of its folders and of all else, from the top.

    The folders that the caller leaves in the list are gone through. One that has gone, or whose
    path is too long for the kernel, is empty, and so is one that cannot be read: ``strictly``
    raises OSError for that.
    """
    waiting = [os.fspath(top)]
    while waiting:
        place = waiting.pop()
        folders: List[str] = []
        others: List[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else others).append(entry.name)
        except OSError as error:
            # What was seen of it counts.
            if strictly and error.errno not in _EMPTY:
                raise
        yield place, folders, others
        waiting.extend(os.path.join(place, name) for name in reversed(folders))


def files_below(top: Union[str, "os.PathLike[str]"]) -> Iterator[str]:
    """Give the path of everything below a folder that is no folder."""
    for place, _, names in walk(top):
        for name in names:
            yield os.path.join(place, name)


def remove(top: Union[str, "os.PathLike[str]"], *, strictly: bool = False) -> None:
    """Remove a folder with all that is in it, as far as that can be done.

    ``strictly`` raises OSError where something is left, or nothing was there. Whatever its paths'
    lengths, two descriptors do: what lies deeper is moved up first.
    """
    problem = _removed(os.fspath(top))
    if problem is not None and strictly:
        raise problem


def _removed(top: str) -> Optional[OSError]:
    """Remove a tree; return what stands against it, if anything does."""
    problem: Optional[OSError] = None
    try:
        root = os.open(top, _FOLDER)
    except OSError as error:
        return error
    try:
        moved = 0
        waiting = os.listdir(root)
        while waiting:
            name = waiting.pop()
            try:
                if not _is_folder_in(root, name):
                    os.unlink(name, dir_fd=root)
                    continue
                inside = os.open(name, _FOLDER, dir_fd=root)
                try:
                    moved, failed = _lifted(inside, root, moved, waiting)
                finally:
                    os.close(inside)
                problem = problem or failed
                os.rmdir(name, dir_fd=root)
            except FileNotFoundError:
                # Another process was first.
                continue
            except OSError as error:
                problem = problem or error
    except OSError as error:
        problem = problem or error
    finally:
        os.close(root)
    try:
        os.rmdir(top)
    except OSError as error:
        problem = problem or error
    return problem


def _lifted(
    inside: int, root: int, moved: int, waiting: List[str]
) -> Tuple[int, Optional[OSError]]:
    """Empty a folder: its folders go to the root of the tree and wait there, all else goes."""
    problem: Optional[OSError] = None
    for name in os.listdir(inside):
        try:
            if not _is_folder_in(inside, name):
                os.unlink(name, dir_fd=inside)
                continue
            try:
                os.rmdir(name, dir_fd=inside)
            except OSError:
                moved, above = _free_name(root, moved)
                os.rename(name, above, src_dir_fd=inside, dst_dir_fd=root)
                waiting.append(above)
        except FileNotFoundError:
            continue
        except OSError as error:
            problem = problem or error
    return moved, problem


def _free_name(root: int, number: int) -> Tuple[int, str]:
    """Return a name that nothing in the root has, and the number to go on with."""
    while True:
        name = f".removed-{number}"
        number += 1
        try:
            os.stat(name, dir_fd=root, follow_symlinks=False)
        except FileNotFoundError:
            return number, name


def _is_folder_in(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
