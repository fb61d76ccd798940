"""Opens and writes files where the job's code may have put something else meanwhile.

For code that reads or writes below directories of the job while that runs: a named pipe would hold
the runner for ever, a device has no end, and a link may lead to files that the runner may read and
the job may not. Nothing else is decided here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import IO


def open_regular(path: str) -> IO[bytes]:
    """Open a file to read it. Raises OSError, also for what is no file or is the kernel's."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        # A link to /proc/self would show the runner, and its token, not who made the link.
        if not stat.S_ISREG(found.st_mode) or _is_of_the_kernel(found):
            raise OSError(errno.EINVAL, "is no file of its own", path)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _is_of_the_kernel(found: os.stat_result) -> bool:
    try:
        return found.st_dev == os.stat("/proc").st_dev
    except OSError:
        # There is no such place here.
        return False


def create(path: str) -> IO[bytes]:
    """Open a new file to write it, in the place of whatever is there. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return open(os.open(path, flags, 0o644), "wb")


def replace_text(path: str, text: str) -> None:
    """Let ``path`` be a file with this text, never half of it. Raises OSError."""
    # ``storage`` takes no such file for a part of a checkpoint.
    beside = f"{path}.tmp"
    with create(beside) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    os.replace(beside, path)
