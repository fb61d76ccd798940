"""The output of the user's process: passed on, kept within bounds, and cut into lines.

``process`` feeds it what the user's process writes; ``runner`` writes its own lines through it, so
that one stream has one writer. The bytes go to the runner's own stdout and stderr, which Mesos has
opened as the sandbox's ``stdout`` and ``stderr``: whoever reads logs by Mesos finds them there.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections import deque
from typing import Callable, Deque, List, Optional

from dcos_tensorflow.patterns import pattern
from dcos_tensorflow.task.job_files import create, open_regular

COPY_BYTES = 1 << 20
#: How far behind a progress file is read; of what is older only the newest counts anyway.
BEHIND_BYTES = 8 * COPY_BYTES
#: A longer line is cut into pieces for the scan; the bytes passed on stay whole.
MAX_LINE_BYTES = 64 * 1024
_LINE_END = pattern(rb"\r\n|[\r\n]")
#: A state of a progress bar, as Keras and tqdm draw them: of how much.
_BAR = pattern(r"^[\s\x08]*(?:\x1b\[[0-9;]*m)*\s*(?:\d+/(\d+|Unknown)\b|.{0,80}\d%\|)")


class BoundedOutput:
    """Writes to an open file descriptor and keeps the file behind it within ``max_bytes``.

    A regular file that is full is copied to ``<file>.1`` (the older copies move to ``.2`` and so
    on, ``keep`` of them) and cut to nothing: it cannot be renamed, because Mesos and its executor
    hold it open. A pipe or a terminal is only written to; its reader bounds it. Output that can no
    longer be written (disk full, reader gone) is dropped and counted, because training must not
    stop for it. ``max_bytes`` 0 means no bound. ``copy_to`` gets the same bytes, all of them.
    """

    def __init__(self, descriptor: int, max_bytes: int, keep: int) -> None:
        self.dropped_bytes = 0
        self.copy_to: Optional[Callable[[bytes], None]] = None
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._keep = keep
        self._lock = threading.Lock()
        self._path = _regular_file(descriptor)
        self._size = os.fstat(descriptor).st_size if self._path else 0

    def write(self, data: bytes) -> None:
        """Pass ``data`` on."""
        if self.copy_to is not None:
            self.copy_to(data)
        with self._lock:
            while data:
                size = self._next_piece(data)
                if size == 0 and self._path:
                    self._rotate(self._path)
                    continue
                self._write_piece(data[:size])
                data = data[size:]

    def _next_piece(self, data: bytes) -> int:
        """Return how much of ``data`` fits before the file is full, in whole lines if it can be."""
        if not self._path or self._max_bytes <= 0:
            return len(data)
        room = max(0, self._max_bytes - self._size)
        if len(data) <= room:
            return len(data)
        whole_lines = data.rfind(b"\n", 0, room) + 1
        return whole_lines or (0 if self._size else room)

    def _write_piece(self, data: bytes) -> None:
        while data:
            try:
                written = os.write(self._descriptor, data)
            except OSError:
                self.dropped_bytes += len(data)
                return
            self._size += written
            data = data[written:]

    def _rotate(self, path: str) -> None:
        try:
            for number in range(self._keep - 1, 0, -1):
                if os.path.exists(f"{path}.{number}"):
                    os.replace(f"{path}.{number}", f"{path}.{number + 1}")
            if self._keep > 0:
                self._copy(path)
        except OSError:
            # Without room for a copy the bound matters more than the old lines.
            self.dropped_bytes += self._size
        try:
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            self._size = 0
        except OSError:
            self._path = None

    def _copy(self, path: str) -> None:
        """Copy what was written. Raises OSError, also where the job has put another file there."""
        import shutil

        with open_regular(path) as ours:
            if not os.path.samestat(os.fstat(ours.fileno()), os.fstat(self._descriptor)):
                raise OSError(errno.ESTALE, "is another file by now", path)
            with create(f"{path}.1") as copy:
                shutil.copyfileobj(ours, copy, COPY_BYTES)


def _regular_file(descriptor: int) -> Optional[str]:
    """Return the path of the regular file behind ``descriptor``, or None for anything else."""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        return path if os.path.samestat(status, os.stat(path)) else None
    except OSError:
        return None


class LineScanner:
    """Cuts a stream of bytes into lines. A carriage return ends a line too (progress bars)."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> List[str]:
        """Return the lines that ``data`` completes."""
        *lines, self._rest = _LINE_END.split(self._rest + data)
        while len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest[:MAX_LINE_BYTES])
            self._rest = self._rest[MAX_LINE_BYTES:]
        return [line.decode("utf-8", "replace") for line in lines if line]

    def close(self) -> List[str]:
        """Return the line that was begun and never ended, if any."""
        rest, self._rest = self._rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []


class RecentLines:
    """The last lines of both streams together, in the order in which they came.

    A state of a progress bar takes the place of the one before, which it was written over.
    """

    def __init__(self, count: int, max_line: int = 2000) -> None:
        self._lines: Deque[str] = deque(maxlen=count)
        self._max_line = max_line
        self._lock = threading.Lock()

    def add(self, line: str) -> None:
        """Remember ``line``."""
        bar = _BAR.match(line)
        with self._lock:
            if bar and self._lines:
                before = _BAR.match(self._lines[-1])
                if before and before.group(1) == bar.group(1):
                    self._lines.pop()
            self._lines.append(line[: self._max_line])

    def lines(self) -> List[str]:
        """Return what is remembered, oldest first."""
        with self._lock:
            return list(self._lines)

    def clear(self) -> None:
        """Forget everything: another start of the process begins."""
        with self._lock:
            self._lines.clear()


class ProgressFile:
    """Reads what a job appends to its progress file, line by line.

    The file may be absent, appear late, or be cut and written anew. Where a job writes it faster
    than it is read, older lines are left out.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0
        self._scanner = LineScanner()

    def new_lines(self) -> List[str]:
        """Return the complete lines that came since the last call."""
        try:
            # Not blocking: the job may have put a named pipe in its place.
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            return self._scanner.feed(self._new_bytes(descriptor))
        except OSError:
            return []
        finally:
            os.close(descriptor)

    def _new_bytes(self, descriptor: int) -> bytes:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if status.st_size < self._offset:
            self._offset, self._scanner = 0, LineScanner()
        if status.st_size - self._offset > BEHIND_BYTES:
            self._offset, self._scanner = status.st_size - COPY_BYTES, LineScanner()
        data = os.pread(descriptor, COPY_BYTES, self._offset)
        self._offset += len(data)
        return data

    def close(self) -> List[str]:
        """Return everything that is left, a last line without line end included."""
        lines: List[str] = []
        while True:
            before = self._offset
            lines += self.new_lines()
            if self._offset == before:
                return lines + self._scanner.close()
