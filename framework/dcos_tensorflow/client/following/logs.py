"""Following the output of tasks through their restarts: every line of every attempt once, in order.

Used by ``logs --follow``. One thread decides and prints; a few others read, so that an agent that
does not answer keeps no other task's lines back. An attempt's file is read to its end before the
next attempt's is begun. Nothing here knows where files are read: that is an ``Output``.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Protocol

from dcos_tensorflow.client.following.task_output import (
    STREAMS,
    Attempt,
    LineCutter,
    Lost,
    NotThere,
    Output,
    OutputPart,
    Unreadable,
    last_lines,
    read_on,
)
from dcos_tensorflow.core.contract import CONSOLE_FILE
from dcos_tensorflow.records import dataclass

#: Seconds between looks at the job, and between reads of a file that is at its end.
LOOK_SECONDS = 0.5
#: More lines than a job prints before it is first looked at.
FROM_THE_BEGINNING = 10_000
_READERS = 8
#: Above so many tasks each is asked for less often, so that the agents are asked no more.
_UNHURRIED = 32
_WAIT_SECONDS = 0.1
_AGAIN_SECONDS = 2.0
#: How long the end of an attempt that is over is asked for in vain.
GIVE_UP_SECONDS = 15.0


@dataclass(frozen=True)
class FollowedState:
    """What is known of a job at one moment: the newest attempts, and whether it is done.

    ``away`` says why no scheduler can be asked now; what is known is then what was known before.
    """

    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    done: bool = False
    away: str = ""


class FollowedLogs(Protocol):
    """What is followed."""

    def look(self) -> FollowedState:
        """Return how things stand; never raises for a scheduler that is away."""

    def output(self) -> Output:
        """Return where files can be read now."""


class Sink(Protocol):
    """Where lines go."""

    def line(self, attempt: Attempt, text: str) -> None:
        """Show a line of a task."""

    def note(self, text: str) -> None:
        """Tell the person something that is no output of a task."""

    def gone(self) -> bool:
        """Say whether the reader has gone."""


@dataclass
class _Stream:
    """One attempt's file, as far as it was read. ``tail`` are the lines to begin with, None: all.

    Where no file is wanted by name, ``file`` is the one that was read last, empty before the first.
    ``over_at`` is when it was seen that nothing more is written to it, 0 while it may be.
    """

    attempt: Attempt
    file: str
    tail: int | None = None
    offset: int = 0
    lines: LineCutter = field(default_factory=LineCutter)
    over_at: float = 0.0
    reading_since: float = 0.0
    read_at: float = 0.0
    due: float = 0.0
    drained: bool = False


@dataclass(frozen=True)
class _Part:
    """What was read of an attempt, and of which file."""

    file: str
    part: OutputPart


_Found = _Part | Exception


class Follower:
    """Follows one file of many tasks until the job is done; without one, all that they print."""

    def __init__(
        self,
        job: FollowedLogs,
        sink: Sink,
        file: str | None,
        lines: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._sink = sink
        self._file = file
        self._words = file or "its output"
        self._tail: int | None = lines
        self._clock = clock
        self._streams: dict[str, deque[_Stream]] = {}
        #: None is the end of a reader.
        self._wanted: queue.SimpleQueue[_Stream | None] = queue.SimpleQueue()
        self._read: queue.SimpleQueue[tuple[_Stream, _Found]] = queue.SimpleQueue()
        self._told_away = ""

    def run(self) -> None:
        """Show lines until the job is done and all of them are shown. Raises CliError."""
        for _ in range(_READERS):
            # Daemons: one that waits for an agent must not keep this process.
            threading.Thread(target=self._read_what_is_wanted, daemon=True).start()
        try:
            self._show_all()
        finally:
            for _ in range(_READERS):
                self._wanted.put(None)

    def _show_all(self) -> None:
        next_look = 0.0
        done = False
        while not (done and all(each.drained for s in self._streams.values() for each in s)):
            if self._sink.gone():
                raise BrokenPipeError
            now = self._clock()
            if now >= next_look:
                done = self._look(now)
                next_look = now + LOOK_SECONDS
            self._ask(now)
            self._show(next_look)

    def _look(self, now: float) -> bool:
        standing = self._job.look()
        if standing.away and standing.away != self._told_away:
            self._sink.note(standing.away)
        self._told_away = standing.away
        for task, attempt in standing.attempts.items():
            streams = self._streams.setdefault(task, deque())
            if not streams or streams[-1].attempt.task_id != attempt.task_id:
                streams.append(_Stream(attempt, self._file or "", self._tail))
        if standing.attempts:
            # Whatever is launched from now on is shown from its beginning.
            self._tail = None
        for streams in self._streams.values():
            for stream in list(streams)[:-1] if not standing.done else streams:
                stream.over_at = stream.over_at or now
        return standing.done

    def _ask(self, now: float) -> None:
        """Have the oldest attempt of each task read that is not read to its end."""
        for streams in self._streams.values():
            while len(streams) > 1 and streams[0].drained:
                streams.popleft()
            stream = streams[0]
            if not stream.drained and not stream.reading_since and now >= stream.due:
                stream.reading_since = now
                self._wanted.put(stream)

    def _show(self, until: float) -> None:
        """Show what has been read; wait a moment for the first of it, until a look is due."""
        left = max(0.001, min(_WAIT_SECONDS, until - self._clock()))
        while True:
            try:
                stream, found = self._read.get(timeout=left) if left else self._read.get_nowait()
            except queue.Empty:
                return
            left = 0.0
            began, stream.reading_since = stream.reading_since, 0.0
            if isinstance(found, _Part):
                self._take(stream, found, began)
            elif isinstance(found, NotThere | Unreadable | Lost):
                self._failed(stream, found, began)
            else:
                raise found

    def _take(self, stream: _Stream, found: _Part, began: float) -> None:
        part = found.part
        if found.file != stream.file:
            self._show_rest(stream)
            stream.file = found.file
        stream.tail = None
        stream.offset = part.next_offset
        stream.read_at = self._clock()
        for line in stream.lines.whole(part.text):
            self._sink.line(stream.attempt, line)
        pause = LOOK_SECONDS * max(1.0, len(self._streams) / _UNHURRIED)
        stream.due = stream.read_at + (pause if part.at_end else 0.0)
        # Only a read that began when it was over can have seen the end.
        if part.at_end and stream.over_at and began >= stream.over_at:
            self._finish(stream)

    def _failed(self, stream: _Stream, why: Exception, began: float) -> None:
        now = self._clock()
        stream.due = now + _AGAIN_SECONDS
        # A read that began before it was over says nothing of what was written last.
        if not stream.over_at or began < stream.over_at or self._told_away:
            return
        if isinstance(why, NotThere) and not stream.read_at:
            # It ended before it had written anything.
            self._finish(stream)
        elif isinstance(why, Lost) or now - stream.over_at > GIVE_UP_SECONDS:
            self._sink.note(f"{stream.attempt.task}: the rest of {self._words} is not shown: {why}")
            self._finish(stream)

    def _finish(self, stream: _Stream) -> None:
        self._show_rest(stream)
        stream.drained = True

    def _show_rest(self, stream: _Stream) -> None:
        for line in stream.lines.rest():
            self._sink.line(stream.attempt, line)

    def _read_what_is_wanted(self) -> None:
        while (stream := self._wanted.get()) is not None:
            self._read.put((stream, self._part(stream)))

    def _part(self, stream: _Stream) -> _Found:
        try:
            output = self._job.output()
            if self._file is not None:
                return _next(output, stream, self._file)
            return _next_printed(output, stream)
        except Exception as error:
            return error


def _next(output: Output, stream: _Stream, file: str) -> _Part:
    """Return what follows in a file; of another than before all. Raises as ``read`` does."""
    if stream.tail is not None:
        return _Part(file, last_lines(output, stream.attempt, file, stream.tail))
    offset = stream.offset if file == stream.file else 0
    return _Part(file, read_on(output, stream.attempt, file, offset))


def _next_printed(output: Output, stream: _Stream) -> _Part:
    """Return what follows of what an attempt has printed to both streams, else to the first used.

    The runner makes the file of both before it prints: what is read of a stream while there is none
    stands nowhere else. Raises as ``read`` does.
    """
    if stream.file in ("", CONSOLE_FILE):
        try:
            return _next(output, stream, CONSOLE_FILE)
        except NotThere:
            if stream.file:
                raise
    for file in (stream.file,) if stream.file else STREAMS:
        with contextlib.suppress(NotThere):
            found = _next(output, stream, file)
            if found.part.size:
                try:
                    return _next(output, stream, CONSOLE_FILE)
                except NotThere:
                    return found
    raise NotThere("there is no output")
