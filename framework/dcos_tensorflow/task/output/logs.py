"""The output of the user's process: passed on, kept within bounds, and cut into lines.

``process`` feeds it the output of the user's process; ``runner`` writes its own lines through it,
so that one stream has one writer. The bytes go to the runner's own stdout and stderr, which Mesos
has opened as the sandbox's ``stdout`` and ``stderr``: readers of logs by Mesos find them there. The
output for a unit of work is in a file of the unit's own, too, within bounds.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import stat
import threading
from collections import OrderedDict, deque
from typing import Callable, Deque, List, Optional, Sequence

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.job_files import create, open_regular

COPY_BYTES = 1 << 20
#: How far behind a progress file is read; of what is older only the newest counts anyway.
BEHIND_BYTES = 8 * COPY_BYTES
#: A longer line is cut into pieces for the scan; the bytes passed on stay whole.
MAX_LINE_BYTES = 64 * 1024
#: So much of a job's output waits to be cut into its last lines.
GATHERED_BYTES = 256 * 1024
#: A state of a progress bar, as Keras and tqdm draw them: of how much.
_BAR = re.compile(r"^[\s\x08]*(?:\x1b\[[0-9;]*m)*\s*(?:\d+/(\d+|Unknown)\b|.{0,80}\d%\|)")
#: Of each unit the last so many bytes are kept, and at most as many before them.
_MOST_BYTES = 256 * 1024
#: The files of so many units.
_KEPT = 100


class BoundedOutput:
    """Writes to an open file descriptor and keeps the file behind it within ``max_bytes``.

    A regular file that is full is copied to ``<file>.1`` (the older copies move to ``.2`` and so
    on, ``keep`` of them) and cut to nothing: it cannot be renamed, because Mesos and its executor
    hold it open. A pipe or a terminal is only written to; its reader bounds it. Output that can no
    longer be written (disk full, reader gone) is dropped and counted, because training must not
    stop for it. ``max_bytes`` 0 means no bound. Each of ``copies`` gets all of the same bytes.
    """

    def __init__(self, descriptor: int, max_bytes: int, keep: int) -> None:
        self.dropped_bytes = 0
        self.copies: List[Callable[[bytes], None]] = []
        self._descriptor = descriptor
        self._max_bytes = max_bytes
        self._keep = keep
        self._lock = threading.Lock()
        self._path = _regular_file(descriptor)
        self._size = os.fstat(descriptor).st_size if self._path else 0

    def write(self, data: bytes) -> None:
        """Pass ``data`` on."""
        for copy in self.copies:
            copy(data)
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


class Console:
    """Both streams of a task in one file, in the order in which they come; a line stays a line.

    It is within the same bounds as each of them. Where the file cannot be made there is none.
    """

    def __init__(
        self, path: str, streams: Sequence[BoundedOutput], max_bytes: int, keep: int
    ) -> None:
        self._lock = threading.Lock()
        #: The stream whose line has been begun and not ended.
        self._begun_by: Optional[int] = None
        self._copies: List[Callable[[bytes], None]] = []
        self._streams = streams
        self._output: Optional[BoundedOutput] = None
        try:
            with create(path) as file:
                self._descriptor = os.dup(file.fileno())
        except OSError:
            return
        self._output = BoundedOutput(self._descriptor, max_bytes, keep)
        for number, stream in enumerate(streams):
            self._copies.append(functools.partial(self._write, number))
            stream.copies.append(self._copies[number])

    def close(self) -> None:
        """Take nothing more of what the streams get."""
        for stream in self._streams:
            # Another list: what writes now goes through the one of before.
            stream.copies = [copy for copy in stream.copies if copy not in self._copies]
        with self._lock:
            if self._output is not None:
                self._output = None
                os.close(self._descriptor)

    def _write(self, number: int, data: bytes) -> None:
        with self._lock:
            if self._output is None:
                # Another thread has begun to write before it was closed.
                return
            if self._begun_by not in (None, number):
                data = b"\n" + data
            self._begun_by = None if data.endswith(b"\n") else number
            self._output.write(data)


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
    """Cuts a stream of bytes behind its whole lines. A carriage return ends a line too (progress
    bars). What is returned is a block: lines that all end with a line break, many at once.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Return the lines that ``data`` completes."""
        if b"\r" in data:
            # An empty line is none: what two breaks are made of does not matter.
            data = data.replace(b"\r", b"\n")
        whole, end, rest = data.rpartition(b"\n")
        if end:
            whole, self._rest = self._rest + whole + end, rest
        else:
            self._rest += rest
        while len(self._rest) > MAX_LINE_BYTES:
            whole += self._rest[:MAX_LINE_BYTES] + b"\n"
            self._rest = self._rest[MAX_LINE_BYTES:]
        return whole

    def close(self) -> bytes:
        """Return the line that was begun and never ended, if any."""
        rest, self._rest = self._rest, b""
        return rest + b"\n" if rest else b""


def lines_of(block: bytes) -> List[str]:
    """Return the lines of a block; an empty one is none."""
    return [line for line in block.decode("utf-8", "replace").split("\n") if line]


class RecentLines:
    """The last lines of both streams together, in the order in which they came.

    A state of a progress bar takes the place of the one before, which it was written over. Blocks
    are looked at when lines are asked for, or when enough has come: most lines are never asked for.
    """

    def __init__(self, count: int, max_line: int = 2000) -> None:
        self._count = count
        self._lines: Deque[str] = deque(maxlen=count)
        self._max_line = max_line
        self._blocks: List[bytes] = []
        self._size = 0
        self._lock = threading.Lock()

    def add(self, block: bytes) -> None:
        """Remember the lines of ``block``."""
        with self._lock:
            self._blocks.append(block)
            self._size += len(block)
            if self._size > GATHERED_BYTES:
                self._take_in()

    def lines(self) -> List[str]:
        """Return what is remembered, oldest first."""
        with self._lock:
            self._take_in()
            return list(self._lines)

    def clear(self) -> None:
        """Forget everything: another start of the process begins."""
        with self._lock:
            self._blocks, self._size = [], 0
            self._lines.clear()

    def _take_in(self) -> None:
        lines = lines_of(b"".join(self._blocks))
        self._blocks, self._size = [], 0
        newest: List[str] = []
        after: Optional[str] = None
        for line in reversed(lines):
            if len(newest) == self._count:
                # Of those before nothing would be left.
                break
            bar = _bar(line)
            if bar is None or bar != after:
                newest.append(line[: self._max_line])
            after = bar
        else:
            if self._lines and after is not None and _bar(self._lines[-1]) == after:
                self._lines.pop()
        self._lines.extend(reversed(newest))


def _bar(line: str) -> Optional[str]:
    """Return of how much a progress bar is, of which this is a state; None where it is none."""
    found = _BAR.match(line)
    return (found.group(1) or "%") if found else None


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
            return lines_of(self._scanner.feed(self._new_bytes(descriptor)))
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
                return lines + lines_of(self._scanner.close())


class UnitLogs:
    """The files of one sandbox. Used by one thread; ``streams`` may be written by others."""

    def __init__(self, sandbox: str, streams: Sequence[BoundedOutput]) -> None:
        self._sandbox = sandbox
        self._streams = streams
        self._console: Optional[Console] = None
        #: The paths of the files, the oldest first.
        self._there: "OrderedDict[str, None]" = OrderedDict()

    def begin(self, number: int) -> None:
        """Put what is printed from now on into the file of a unit; a former attempt's goes."""
        self.end()
        path = os.path.join(self._sandbox, contract.UNIT_FILE.format(number))
        self._remove(path)
        self._console = Console(path, self._streams, _MOST_BYTES, keep=1)
        self._there[path] = None
        while len(self._there) > _KEPT:
            self._remove(next(iter(self._there)))

    def end(self) -> None:
        """Put nothing more into it."""
        if self._console is not None:
            self._console.close()
            self._console = None

    def _remove(self, path: str) -> None:
        self._there.pop(path, None)
        for each in (path, f"{path}.1"):
            with contextlib.suppress(OSError):
                os.unlink(each)
