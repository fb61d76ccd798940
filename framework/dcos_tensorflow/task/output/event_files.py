"""The newest step in the event files that a task writes for TensorBoard, and their scalars.

``observer`` asks for them where a job tells no step itself, and where a unit of work is judged by a
metric that was not told otherwise. TensorFlow is not needed: an event file is a row of framed
records. Only what was appended since the last look is read, and of a long record a few bytes.

Source: tensorflow/core/lib/io/record_writer.h (the frame); ``summaries`` reads the content.
"""

from __future__ import annotations

import os
import struct
from itertools import islice
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.output import summaries
from untrusted_input import trees
from untrusted_input.process_table import open_files

#: TensorFlow names its event files ``events.out.tfevents.<seconds>.<host>...``.
NAME_PART = ".tfevents."
#: Length, and its checksum, before the record; the record's checksum behind it.
HEAD_BYTES = 12
TAIL_BYTES = 4
#: The wall time (a tag, 8 bytes) and the step (a tag, a varint) come first.
LOOK_BYTES = 32
#: Events of scalars are no longer: graphs and pictures are.
SCALARS_BYTES = 64 * 1024
#: What one look reads at most, so that a directory full of events stops nothing.
MAX_RECORDS = 20_000
#: So many files are looked through for event files.
MAX_FILES = 10_000

#: A step, a metric's name, and its value there.
Scalar = Tuple[int, str, float]


def open_event_files(pids: Iterable[int], directories: Tuple[str, ...]) -> Tuple[str, ...]:
    """Return the event files below ``directories`` that one of ``pids`` holds open.

    A task that shares its directories with others so reads its own files only.
    """
    below = tuple(os.path.join(os.path.realpath(path), "") for path in directories)
    paths = dict.fromkeys(path for pid in pids for path in open_files(pid))
    return tuple(p for p in paths if NAME_PART in os.path.basename(p) and p.startswith(below))


def event_files_below(directories: Iterable[str]) -> Tuple[str, ...]:
    """Return the event files below ``directories``."""
    found = (
        path
        for directory in dict.fromkeys(map(os.path.realpath, directories))
        for path in trees.files_below(directory)
    )
    return tuple(dict.fromkeys(p for p in islice(found, MAX_FILES) if NAME_PART in p))


@dataclass
class _File:
    offset: int = 0
    broken: bool = False


class EventFiles:
    """Follows the event files of one start of the user's process.

    They are those that its processes hold open below ``directories``, or held at a look before;
    with ``own`` no other process writes there, so that they are all that come there. Their scalars
    are kept until asked for.
    """

    def __init__(self, directories: Tuple[str, ...], *, own: bool = False) -> None:
        self._directories = directories
        self._own = own
        # Those of an earlier start tell nothing of this one.
        before = event_files_below(directories) if own else ()
        self._files: Dict[str, _File] = {path: _File(_size(path)) for path in before}
        self._newest: Optional[int] = None
        self._scalars: List[Scalar] = []

    def newest_step(self, pids: Iterable[int]) -> Optional[int]:
        """Read what was appended; return the highest step seen so far, if any.

        Step 0 counts as none: the graph and the file's version are written with it.
        """
        directories = self._directories
        paths = event_files_below(directories) if self._own else open_event_files(pids, directories)
        for path in dict.fromkeys((*self._files, *paths)):
            file = self._files.setdefault(path, _File())
            if not file.broken:
                self._read(path, file)
        return self._newest

    def take_scalars(self) -> List[Scalar]:
        """Return the scalars that were read since they were last taken, oldest of a file first."""
        taken, self._scalars = self._scalars, []
        return taken

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
                whole = length <= SCALARS_BYTES
                look = length if whole else min(length, LOOK_BYTES)
                event = os.pread(descriptor, look, file.offset + HEAD_BYTES)
                step = summaries.step_of(event)
                if step:
                    self._newest = max(self._newest or 0, step)
                if whole:
                    self._scalars.extend(_scalars(path, step or 0, event))
                file.offset = end
        except OSError:
            file.broken = True
        finally:
            os.close(descriptor)


def _scalars(path: str, step: int, event: bytes) -> Iterator[Scalar]:
    for tag, value in summaries.scalars_of(event).items():
        name = summaries.metric_of(tag, path)
        if name:
            yield step, name, value


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
