"""Takes a task's output to the disk in parts, so that nothing of it is lost on its way out.

``logs.BoundedOutput`` hands over its output; ``shipper`` takes the closed parts, oldest first.
A part is of one stream of one start. Names tell everything, so that the next runner takes up the
parts that a killed one left in the sandbox. Memory holds no output; a full spool drops and counts.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import threading
import time
from typing import Dict, List, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.job_files import create, open_regular, replace_text

#: A closed part is gzip-compressed; one that is written is not.
_OPEN, _CLOSED, _PACKED = ".open", ".log", ".gz"
_NAME = re.compile(
    r"(?P<start>\d{6})-(?P<number>\d{8})-(?P<stream>stdout|stderr)(\.open|\.log|\.gz)\Z"
)
_NUMBER_FILE = "next"
_NUMBER_BYTES = 20
_COPY_BYTES = 1 << 16
#: What waits to be shipped may take so much of the task's disk.
MAX_WAITING_BYTES = 256 << 20
#: The time is noted so often within a part (seconds), and so many times.
_MARK_SECONDS, _MAX_MARKS = 1.0, 4096

#: (offset in the part, unix seconds): what comes from there on was written at that time.
Mark = Tuple[int, float]


@dataclass(frozen=True)
class SpooledPart:
    """A closed part, compressed at ``path``. ``number`` counts over all streams and starts."""

    path: str
    start: int
    number: int
    stream: str
    marks: Tuple[Mark, ...] = ()

    def read(self) -> bytes:
        """Return its content, uncompressed."""
        with open_regular(self.path) as packed, gzip.open(packed, "rb") as file:
            return file.read()


class _OpenPart:
    def __init__(self, folder: str, start: int, number: int, stream: str) -> None:
        self.stem = os.path.join(folder, f"{start:06d}-{number:08d}-{stream}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(self.stem + _OPEN, flags, 0o640)
        self.opened_at = time.monotonic()
        self.size = 0
        self.ends_line = True
        self.marks: List[Mark] = []


class Spool:
    """The parts of one task in ``folder``. ``append`` comes from any thread."""

    def __init__(
        self, folder: str, roll_bytes: int, max_waiting_bytes: int = MAX_WAITING_BYTES
    ) -> None:
        self.dropped_bytes = 0
        self._folder = folder
        self._roll_bytes = roll_bytes
        self._max_waiting_bytes = max_waiting_bytes
        self._lock = threading.Lock()
        self._open: Dict[str, _OpenPart] = {}
        self._marks: Dict[str, Tuple[Mark, ...]] = {}
        self._missing: Dict[str, int] = {}
        self._start = 1
        os.makedirs(folder, exist_ok=True)
        self._recover()
        self._number = self._read_number()
        self._waiting = sum(_size(os.path.join(folder, name)) for name in self._names())

    @property
    def waiting_bytes(self) -> int:
        """Return how much of the disk is taken."""
        return self._waiting

    def begin_start(self, start: int) -> None:
        """What comes from now on is the output of ``start``."""
        with self._lock:
            if start != self._start:
                self._close_all()
                self._start = start

    def append(self, stream: str, data: bytes) -> None:
        """Take output. What cannot be written is dropped and counted: the job goes on."""
        with self._lock:
            while data:
                part = self._part(stream)
                size = _piece(data, part.size if part else 0, self._roll_bytes)
                if size == 0:
                    self._close(stream)
                    continue
                self._write(stream, part, data[:size])
                data = data[size:]

    def roll(self, seconds: float) -> None:
        """Close the parts that are ``seconds`` old. A line is waited for as long again."""
        now = time.monotonic()
        with self._lock:
            for stream, part in list(self._open.items()):
                age = now - part.opened_at
                if part.size and age >= seconds and (part.ends_line or age >= 2 * seconds):
                    self._close(stream)

    def close(self) -> None:
        """Close all parts: nothing more comes."""
        with self._lock:
            self._close_all()

    def next_part(self) -> Optional[SpooledPart]:
        """Return the oldest closed part, compressed; None when there is none. One thread asks."""
        names = sorted(
            (found.group("start", "number"), name)
            for name in self._names()
            for found in [_NAME.match(name)]
            if found and not name.endswith(_OPEN)
        )
        return self._packed(names[0][1]) if names else None

    def shipped(self, part: SpooledPart) -> None:
        """Remove a part that is where it should be."""
        size = _size(part.path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part.path)
        with self._lock:
            self._waiting -= size
            self._marks.pop(part.path[: -len(_PACKED)], None)

    def waiting_parts(self) -> int:
        """Return the number of parts that are not shipped, those that are written included."""
        return sum(_size(os.path.join(self._folder, name)) > 0 for name in self._names())

    def _part(self, stream: str) -> Optional[_OpenPart]:
        part = self._open.get(stream)
        if part is None:
            number = self._number
            self._number += 1
            try:
                replace_text(os.path.join(self._folder, _NUMBER_FILE), str(self._number))
                part = _OpenPart(self._folder, self._start, number, stream)
            except OSError:
                return None
            self._open[stream] = part
        return part

    def _write(self, stream: str, part: Optional[_OpenPart], data: bytes) -> None:
        if part is None or self._waiting + len(data) > self._max_waiting_bytes:
            self._drop(stream, len(data))
            return
        missing = self._missing.pop(stream, 0)
        if missing:
            data = b"task-runner: %d bytes of output are missing here\n" % missing + data
        now = time.time()
        due = not part.marks or now - part.marks[-1][1] >= _MARK_SECONDS
        if due and len(part.marks) < _MAX_MARKS:
            part.marks.append((part.size, now))
        try:
            written = os.write(part.descriptor, data)
        except OSError:
            self._drop(stream, len(data))
            return
        part.size += written
        self._waiting += written
        part.ends_line = data[:written].endswith(b"\n")
        if written < len(data):
            self._drop(stream, len(data) - written)

    def _drop(self, stream: str, count: int) -> None:
        self.dropped_bytes += count
        self._missing[stream] = self._missing.get(stream, 0) + count

    def _close_all(self) -> None:
        for stream in list(self._open):
            self._close(stream)

    def _close(self, stream: str) -> None:
        part = self._open.pop(stream, None)
        if part is None:
            return
        os.close(part.descriptor)
        self._marks[part.stem] = tuple(part.marks)
        with contextlib.suppress(OSError):
            if part.size:
                os.rename(part.stem + _OPEN, part.stem + _CLOSED)
            else:
                os.unlink(part.stem + _OPEN)

    def _packed(self, name: str) -> SpooledPart:
        found = _NAME.match(name)
        assert found is not None
        stem = os.path.join(self._folder, name[: name.rindex(".")])
        if name.endswith(_CLOSED):
            before = _size(stem + _CLOSED)
            _compress(stem + _CLOSED, stem + ".partial")
            modified = os.stat(stem + _CLOSED).st_mtime
            os.utime(stem + ".partial", (modified, modified))
            os.rename(stem + ".partial", stem + _PACKED)
            os.unlink(stem + _CLOSED)
            with self._lock:
                self._waiting += _size(stem + _PACKED) - before
        path = stem + _PACKED
        marks = self._marks.get(stem) or ((0, os.stat(path).st_mtime),)
        start, number, stream = found.group("start", "number", "stream")
        return SpooledPart(path, int(start), int(number), stream, marks)

    def _recover(self) -> None:
        """Take up what another runner left here: its open parts are closed."""
        for name in sorted(os.listdir(self._folder)):
            path = os.path.join(self._folder, name)
            stem = path[: path.rindex(".")] if "." in name else path
            if name.endswith(".partial"):
                os.unlink(path)
            elif name.endswith(_OPEN) and _NAME.match(name):
                if _size(path):
                    os.rename(path, stem + _CLOSED)
                else:
                    os.unlink(path)
            elif name.endswith(_CLOSED) and os.path.exists(stem + _PACKED):
                os.unlink(path)

    def _names(self) -> List[str]:
        # A link is no part of ours: it may lead to what the runner may read and the job may not.
        with os.scandir(self._folder) as entries:
            return [
                e.name for e in entries if _NAME.match(e.name) and e.is_file(follow_symlinks=False)
            ]

    def _read_number(self) -> int:
        used = [int(found.group("number")) for found in map(_NAME.match, self._names()) if found]
        try:
            with open_regular(os.path.join(self._folder, _NUMBER_FILE)) as file:
                used.append(int(file.read(_NUMBER_BYTES)) - 1)
        except (OSError, ValueError):
            # The first runner here.
            pass
        return max(used, default=0) + 1


def _compress(source: str, target: str) -> None:
    with open_regular(source) as reader, create(target) as file:
        # Without a time and a name in it, the same content is always the same bytes.
        packed = gzip.GzipFile("", "wb", 6, file, 0)
        shutil.copyfileobj(reader, packed, _COPY_BYTES)
        packed.close()


def _piece(data: bytes, size: int, limit: int) -> int:
    """Return how much of ``data`` goes into a part of ``size`` bytes: whole lines if it can be."""
    room = max(0, limit - size)
    if len(data) <= room:
        return len(data)
    return data.rfind(b"\n", 0, room) + 1 or (0 if size else room)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
