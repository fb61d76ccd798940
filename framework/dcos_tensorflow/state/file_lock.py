"""An exclusive lock on a file, which the kernel frees when its process dies, however it dies.

Used by the SQLite backend for leadership. The file's content names the holder of the lock; it is
information for people, never the lock itself.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from dcos_tensorflow.state.leadership import UNKNOWN_HOLDER, Holder


class FileLock:
    """One attempt after another to lock ``path``; ``still_ours`` may be asked by any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def try_acquire(self, holder: Holder) -> bool:
        """Lock and write down who we are; False when another process holds it.

        Raises OSError when the file cannot be made or written.
        """
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        # The owner before us may have removed the file between our open and our lock.
        if not self._is_current(descriptor):
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, holder.to_bytes(), 0)
        self._descriptor = descriptor
        return True

    def still_ours(self) -> bool:
        """False when the file was removed or replaced under us: then others can lock it, too."""
        descriptor = self._descriptor
        return descriptor is not None and self._is_current(descriptor)

    def read_holder(self) -> Holder:
        """The holder of the lock, as far as the file tells."""
        try:
            return Holder.from_bytes(self.path.read_bytes())
        except OSError:
            return UNKNOWN_HOLDER

    def release(self, *, remove: bool = False) -> None:
        """Unlock; with ``remove`` the file goes, too, while it is still locked."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if remove and self._is_current(descriptor):
            self.path.unlink()
        else:
            os.ftruncate(descriptor, 0)
        os.close(descriptor)

    def _is_current(self, descriptor: int) -> bool:
        try:
            there = self.path.stat()
            ours = os.fstat(descriptor)
        except OSError:
            # The file is gone, or another thread has just released the lock.
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
