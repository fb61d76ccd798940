"""A folder of things that the tasks of a machine share: each made once, kept while it is used.

``storage.data`` keeps fetched data in one, ``python_environments`` the environments of jobs. Other
users of the machine share nothing with these: ``own_folder`` makes and opens a folder that is this
user's alone, and nothing is taken out of another one.
The first task makes a copy under a lock, the others wait for it. A shared lock keeps a copy
for as long as its ``Taken`` is held, or the process lives. Above the folder's bounds go the copies
that were not used for longest. The caller decides about the content of a copy.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from typing import Callable, List, Tuple

from dcos_tensorflow.records import dataclass
from untrusted_input import trees

_PARTIAL = ".partial"
_LOCK = ".lock"
#: How often a lock that another task holds is asked for again, seconds.
LOCK_INTERVAL = 0.2
#: How long what another task makes may stay as it is, and how often it is looked at; seconds.
STILL_SECONDS = 1800.0
_LOOK_SECONDS = 10.0
#: What a lock's file says of its holder is no longer.
_MOST_HOLDER = 200


class UnsafeFolder(Exception):
    """A folder is another user's, or another user could put things into it; the text names it."""


class CopyHeld(Exception):
    """Another task holds a copy, and does nothing about it; the text says which task."""


def users_folder(directory: str, kind: str) -> str:
    """Return what is this user's of a folder in which all tasks of a machine share things."""
    return os.path.join(directory, f"{kind}-{os.geteuid()}")


def own_folder(path: str, *, shared: bool = True) -> str:
    """Return a folder that is this user's alone, by its real path; it is made if need be.

    With ``shared`` it lies where other users may come, and no other user may be able to put another
    one in its place. Raises UnsafeFolder and OSError.
    """
    above, name = os.path.split(os.path.abspath(path))
    os.makedirs(above, exist_ok=True)
    above = os.path.realpath(above)
    if shared:
        _check_above(above)
    folder = os.path.join(above, name)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise UnsafeFolder(
            f"{folder} is not a folder of user {os.geteuid()}: files of another user are not used"
        )
    if found.st_mode & 0o022:
        raise UnsafeFolder(f"other users may write into {folder}: its files are not used")
    if found.st_mode & 0o077:
        os.chmod(folder, 0o700)
    return folder


def _check_above(folder: str) -> None:
    """Raise UnsafeFolder where another user could replace what lies in ``folder``, a real path."""
    ours, place = (0, os.geteuid()), folder
    while True:
        found = os.stat(place)
        is_open = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in ours or is_open:
            whose = "every user may write to it" if is_open else f"it is user {found.st_uid}'s"
            raise UnsafeFolder(
                f"{folder} is not shared: other users could replace files in {place}, for "
                f"{whose} (it must be root's or this user's, with the sticky bit where all write)"
            )
        if place == os.path.dirname(place):
            return
        place = os.path.dirname(place)


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
    """One such folder, which is there and this user's alone (``own_folder``).

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
        return _is_ours(whole) and (not self.sign or os.path.isfile(os.path.join(whole, self.sign)))

    def take(self, name: str, make: Callable[[str], None], coming: int = 0) -> Taken:
        """Return the copy of this name, made by ``make`` at the path it is given if need be.

        ``coming`` bytes are made room for. Raises what ``make`` and ``wait`` do, CopyHeld, OSError.
        """
        whole = os.path.join(self.directory, name)
        lock = self._open_lock(name)
        kept = False
        try:
            while not self._locked(lock, name):
                _say_holder(lock)
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
            trees.remove(whole, strictly=True)
        try:
            make(whole)
        except BaseException:
            trees.remove(whole)
            raise
        with open(os.path.join(whole, self.sign), "w", encoding="utf-8"):
            # That it is there says everything.
            pass

    def _open_lock(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(os.path.join(self.directory, name + _LOCK), flags, 0o600)

    def _locked(self, lock: int, name: str) -> bool:
        """Wait for the lock of a copy; say whether the copy is there.

        A copy that is there is locked together with all who use it; one that is to be made, alone.
        """
        seen, still_since, looked = -1.0, time.monotonic(), 0.0
        while True:
            there = self.holds(name)
            if _try_lock(lock, fcntl.LOCK_SH if there else fcntl.LOCK_EX):
                if self.holds(name) == there:
                    return there
                continue
            now = time.monotonic()
            if now - looked >= _LOOK_SECONDS:
                if not looked:
                    self.log(f"waits for {name}, which {_holder(lock)} makes")
                looked, last = now, self._last_change(name)
                if last != seen:
                    seen, still_since = last, now
            if now - still_since >= STILL_SECONDS:
                raise CopyHeld(
                    f"{_holder(lock)} holds {os.path.join(self.directory, name)}, and nothing of it"
                    f" has changed for {STILL_SECONDS:.0f} seconds"
                )
            self.wait(LOCK_INTERVAL)

    def _last_change(self, name: str) -> float:
        """Return when the copy that is made was changed last."""
        path = os.path.join(self.directory, name)
        last = 0.0
        for place, _, names in trees.walk(path if self.sign else path + _PARTIAL):
            for each in (place, *(os.path.join(place, name) for name in names)):
                # What is moved or removed meanwhile has changed its folder.
                with contextlib.suppress(OSError):
                    last = max(last, os.lstat(each).st_mtime)
        return last

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
                size = sum(os.lstat(file).st_size for file in trees.files_below(path))
                found.append((os.stat(path).st_mtime, size, name))
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
            trees.remove(path)
            return True
        finally:
            os.close(lock)


def _is_ours(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _say_holder(lock: int) -> None:
    os.ftruncate(lock, 0)
    text = f"process {os.getpid()} in {os.getcwd()}"
    os.pwrite(lock, text.encode("utf-8", "surrogateescape")[:_MOST_HOLDER], 0)


def _holder(lock: int) -> str:
    """Return whom a lock's file names: the task that made the copy, or makes it."""
    said = os.pread(lock, _MOST_HOLDER, 0).decode("utf-8", "replace")
    return said if said.isprintable() and said else "another task"


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
