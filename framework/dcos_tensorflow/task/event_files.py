"""The newest step in the event files that a task writes for TensorBoard.

``runner`` asks for it where a job tells no step itself. TensorFlow is not needed: an event file is
a row of framed records, and the step lies in the first bytes of each. Only what was appended since
the last look is read, and of that a few bytes per record.

Source: tensorflow/core/lib/io/record_writer.h (the frame) and tensorflow/core/util/event.proto.
"""

from __future__ import annotations

import os
import struct
from typing import Dict, Iterable, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.process_table import open_files

#: TensorFlow names its event files ``events.out.tfevents.<seconds>.<host>...``.
NAME_PART = ".tfevents."
#: Length, and its checksum, before the record; the record's checksum behind it.
HEAD_BYTES = 12
TAIL_BYTES = 4
#: The wall time (a tag, 8 bytes) and the step (a tag, a varint) come first.
LOOK_BYTES = 32
#: What one look reads at most, so that a directory full of events stops nothing.
MAX_RECORDS = 20_000
#: Wire types of a protocol buffer's fields.
_VARINT, _FIXED64, _FIXED32 = 0, 1, 5
_STEP_FIELD = 2
_MAX_STEP = 2**63


def open_event_files(pids: Iterable[int], directories: Tuple[str, ...]) -> Tuple[str, ...]:
    """Return the event files below ``directories`` that one of ``pids`` holds open.

    A task that shares its directories with others so reads its own files only.
    """
    below = tuple(os.path.join(os.path.realpath(path), "") for path in directories)
    paths = dict.fromkeys(path for pid in pids for path in open_files(pid))
    return tuple(p for p in paths if NAME_PART in os.path.basename(p) and p.startswith(below))


def step_of(event: bytes) -> Optional[int]:
    """Return the step of an Event message, of which ``event`` is the beginning; None if unknown.

    Fields other than the first two are never needed: TensorFlow writes in the order of numbers.
    """
    position = 0
    while position < len(event):
        tag, position = _varint(event, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = _varint(event, position)
            if tag >> 3 == _STEP_FIELD and 0 <= position <= len(event):
                return value if value < _MAX_STEP else None
        elif kind == _FIXED64:
            position += 8
        elif kind == _FIXED32:
            position += 4
        else:
            return None
    return None


def _varint(data: bytes, position: int) -> Tuple[int, int]:
    """Return a number and where it ends; beyond the data when it is cut off."""
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7
    return 0, len(data) + 1


@dataclass
class _File:
    offset: int = 0
    broken: bool = False


class EventFiles:
    """Follows the event files of one start of the user's process."""

    def __init__(self) -> None:
        self._files: Dict[str, _File] = {}
        self._newest: Optional[int] = None

    def newest_step(self, paths: Iterable[str]) -> Optional[int]:
        """Read what was appended to ``paths``; return the highest step seen so far, if any.

        Step 0 counts as none: the graph and the file's version are written with it.
        """
        for path in paths:
            file = self._files.setdefault(path, _File())
            if not file.broken:
                self._read(path, file)
        return self._newest

    def _read(self, path: str, file: _File) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        try:
            size = os.fstat(descriptor).st_size
            for _ in range(MAX_RECORDS):
                head = os.pread(descriptor, HEAD_BYTES, file.offset)
                if len(head) < HEAD_BYTES:
                    return
                length = struct.unpack("<Q", head[:8])[0]
                end = file.offset + HEAD_BYTES + length + TAIL_BYTES
                if end > size:
                    # Half written; or no event file at all, which then never gets so long.
                    return
                event = os.pread(descriptor, min(length, LOOK_BYTES), file.offset + HEAD_BYTES)
                step = step_of(event)
                if step:
                    self._newest = max(self._newest or 0, step)
                file.offset = end
        except OSError:
            file.broken = True
        finally:
            os.close(descriptor)
