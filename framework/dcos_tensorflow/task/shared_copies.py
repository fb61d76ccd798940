"""A folder of things that the tasks of a machine share: each made once, kept while it is used.

``storage.data`` keeps fetched data in one, ``python_environments`` the environments of jobs.
Whoever comes first makes a copy under a lock, the others wait for it. A shared lock keeps a copy
for as long as its ``Taken`` is held, or the process lives. Above the folder's bounds go the copies
that were not used for longest. What a copy is made of, and why, is the caller's business.
"""

from __future__ import annotations

import fcntl
import os
from typing import Callable, List, Tuple

from dcos_tensorflow import trees
from dcos_tensorflow.records import dataclass

_PARTIAL = ".partial"
_LOCK = ".lock"
#: How often a lock that another task holds is asked for again, seconds.
LOCK_INTERVAL = 0.2


@dataclass(frozen=True)
class Taken:
    """A copy that is whole. It stays as long as ``lock``, a descriptor, is open."""

    path: str
    lock: int

    def let_go(self) -> None:
        """Say that the copy is not needed any more.

        The lock's file stays, or two tasks might lock two of one name.
        """
        os.close(self.lock)


@dataclass(frozen=True)
class Copies:
    """One such folder, which exists.

    ``wait`` waits some seconds, and raises where the task ends meanwhile. ``log`` gets a line for
    each copy that was removed. A bound of 0 is none.

    A copy is made beside its place and moved there when it is whole. With ``sign``, for what knows
    its own place, it is made where it stays, and is whole once it holds a file of that name; what
    was begun by a process that is gone is removed then, and made anew.
    """

    directory: str
    wait: Callable[[float], None]
    log: Callable[[str], None]
    max_bytes: int = 0
    max_number: int = 0
    sign: str = ""

    def holds(self, name: str) -> bool:
        """Say whether there is a whole copy of this name."""
        whole = os.path.join(self.directory, name)
        return os.path.isfile(os.path.join(whole, self.sign)) if self.sign else os.path.isdir(whole)

    def take(self, name: str, make: Callable[[str], None], coming: int = 0) -> Taken:
        """Return the copy of this name, made by ``make`` at the path it is given if need be.

        ``coming`` bytes are made room for. Raises what ``make`` and ``wait`` do, and OSError.
        """
        whole = os.path.join(self.directory, name)
        lock = self._open_lock(name)
        kept = False
        try:
            while not self._locked(lock, name):
                self._evict(coming)
                self._make(whole, make)
                # Others may lock it, too, from now on. The lock is let go for a moment, in which
                # the copy may be removed (flock(2)): hence the next look.
            os.utime(whole)
            kept = True
            return Taken(whole, lock)
        finally:
            if not kept:
                os.close(lock)

    def _make(self, whole: str, make: Callable[[str], None]) -> None:
        if not self.sign:
            make(whole + _PARTIAL)
            os.replace(whole + _PARTIAL, whole)
            return
        if os.path.isdir(whole):
            trees.remove(whole)
        try:
            make(whole)
        except BaseException:
            trees.remove(whole, ignore_errors=True)
            raise
        with open(os.path.join(whole, self.sign), "w", encoding="utf-8"):
            # That it is there says everything.
            pass

    def _open_lock(self, name: str) -> int:
        return os.open(os.path.join(self.directory, name + _LOCK), os.O_RDWR | os.O_CREAT, 0o666)

    def _locked(self, lock: int, name: str) -> bool:
        """Wait for the lock of a copy; say whether the copy is there.

        A copy that is there is locked together with all who use it; one that is to be made, alone.
        """
        while True:
            there = self.holds(name)
            if not _try_lock(lock, fcntl.LOCK_SH if there else fcntl.LOCK_EX):
                self.wait(LOCK_INTERVAL)
            elif self.holds(name) == there:
                return there

    def _evict(self, coming: int) -> None:
        """Remove the copies that were not used for longest until there is room for another one.

        One that another task is just making, or uses, is locked and stays.
        """
        if self.max_bytes <= 0 and self.max_number <= 0:
            return
        copies = self._by_age()
        total, number = sum(size for _, size, _ in copies) + coming, len(copies) + 1
        for _, size, name in copies:
            fits = self.max_bytes <= 0 or total <= self.max_bytes
            if fits and (self.max_number <= 0 or number <= self.max_number):
                return
            if self._remove(name):
                total, number = total - size, number - 1
                self.log(f"{size / 1e6:.1f} MB of {self.directory} were removed")

    def _by_age(self) -> List[Tuple[float, int, str]]:
        found = []
        for name in os.listdir(self.directory):
            path = os.path.join(self.directory, name)
            if os.path.isdir(path):
                found.append((os.stat(path).st_mtime, _size_of(path), name))
        return sorted(found)

    def _remove(self, name: str) -> bool:
        lock = self._open_lock(name[: -len(_PARTIAL)] if name.endswith(_PARTIAL) else name)
        path = os.path.join(self.directory, name)
        try:
            if not _try_lock(lock, fcntl.LOCK_EX):
                return False
            if self.sign and os.path.exists(os.path.join(path, self.sign)):
                # First: what is cut in the middle of its removal must not pass for whole.
                os.unlink(os.path.join(path, self.sign))
            trees.remove(path, ignore_errors=True)
            return True
        finally:
            os.close(lock)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def _size_of(folder: str) -> int:
    return sum(
        os.lstat(os.path.join(where, name)).st_size
        for where, _, names in trees.walk(folder)
        for name in names
    )
