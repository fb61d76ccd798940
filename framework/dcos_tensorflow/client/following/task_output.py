"""The output of tasks: from the scheduler's API while it runs, from the disk once it is gone.

Used by ``logs``. Both places know a file by the attempt that wrote it, and by bytes: a reader that
goes on after an interruption, from the other place even, misses nothing and gets nothing twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlencode

from dcos_tensorflow.client.api_client import SchedulerAway, SchedulerClient
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.contract import CONSOLE_FILE
from dcos_tensorflow.plugin.log_lines import final_states
from dcos_tensorflow.records import dataclass

_PART_BYTES = 64 * 1024
#: The streams of an attempt of which no ``CONSOLE_FILE`` is there: its runner has not begun, is of
#: an earlier release, or the sandbox is lost and this was kept.
STREAMS = ("stdout", "stderr")
#: Where an attempt ran, below the agents of an embedded cluster.
_RUN = "*/slaves/*/frameworks/*/executors/{}/runs/*"
#: How much of a file's end is searched for its last lines, step by step.
_TAIL_BYTES = (_PART_BYTES, 4 * _PART_BYTES, 16 * _PART_BYTES)
#: The scheduler asks an agent, up to four times.
_ANSWER_SECONDS = 60.0


class NotThere(Exception):
    """There is no such file in the sandbox, or not yet."""


class Unreadable(Exception):
    """The file cannot be read now; the text says why."""


class Lost(Exception):
    """The file cannot be read any more; the text says why."""


@dataclass(frozen=True)
class Attempt:
    """One attempt of a task: a container of its own, with files of its own."""

    task: str
    task_id: str
    agent_id: str = ""


@dataclass(frozen=True)
class OutputPart:
    """Text of a file, and where to go on: bytes, of ``size`` in all."""

    text: str
    next_offset: int
    size: int

    @property
    def at_end(self) -> bool:
        """Say whether there was no more of it."""
        return self.next_offset >= self.size


class Output(Protocol):
    """Where the files of attempts are read."""

    def read(
        self, attempt: Attempt, file: str, offset: int, length: int = _PART_BYTES
    ) -> OutputPart:
        """Return what follows ``offset``. Raises NotThere, Unreadable, Lost, CliError."""


class ApiOutput:
    """The files as a running scheduler reads them from the agents (``/v1/pod/<task>/files/``)."""

    def __init__(self, connect: Callable[[], SchedulerClient]) -> None:
        """``connect`` returns a client of the present scheduler; it raises SchedulerAway."""
        self._connect = connect

    def read(
        self, attempt: Attempt, file: str, offset: int, length: int = _PART_BYTES
    ) -> OutputPart:
        """Return what follows ``offset``. Raises NotThere, Unreadable, CliError."""
        query = {"offset": offset, "length": length, "task_id": attempt.task_id}
        path = f"/v1/pod/{quote(attempt.task, safe='')}/files/{quote(file)}"
        path = f"{path}?{urlencode({**query, 'agent_id': attempt.agent_id})}"
        try:
            # A scheduler that was started again answers elsewhere.
            answer = self._connect().ask("GET", path, seconds=_ANSWER_SECONDS)
        except SchedulerAway as away:
            raise Unreadable(str(away)) from away
        if answer.status == 404:
            raise NotThere(f"there is no {file}")
        if answer.status == 503:
            raise Unreadable(answer.message)
        found = answer.expected()
        return OutputPart(str(found["data"]), int(found["next_offset"]), int(found["size"]))


class FolderOutput:
    """The sandboxes of a local job that has ended: ``tasks/<name>`` in the service's folder."""

    def __init__(self, directory: ServiceDirectory) -> None:
        self._folder = directory.task_logs

    def tasks(self) -> list[str]:
        """Return the tasks whose sandboxes lie here."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir())

    def attempt(self, task: str) -> Attempt | None:
        """Return the attempt whose sandbox lies here; None when none does."""
        try:
            # .../executors/<task id>/runs/<run>
            run = (self._folder / task).resolve(strict=True)
        except OSError:
            return None
        return Attempt(task, run.parent.parent.name)

    def read(
        self, attempt: Attempt, file: str, offset: int, length: int = _PART_BYTES
    ) -> OutputPart:
        """Return what follows ``offset``. Raises NotThere, Unreadable, Lost."""
        sandbox = self.sandbox(attempt)
        path = (sandbox / file).resolve()
        if not path.is_relative_to(sandbox) or not path.is_file():
            raise NotThere(f"there is no {file}")
        return _part(path, offset, length)

    def sandbox(self, attempt: Attempt) -> Path:
        """Return where an attempt ran; earlier ones lie by the last one's agent. Raises Lost."""
        for task in self.tasks():
            run = (self._folder / task).resolve()
            if run.parent.parent.name == attempt.task_id:
                return run
            agents = next((p for p in run.parents if p.name == "agents"), None)
            found = agents and agents.glob(_RUN.format(attempt.task_id))
            for earlier in found or ():
                if not earlier.is_symlink():
                    return earlier.resolve()
        raise Lost("its sandbox is not on this machine")


def _part(path: Path, offset: int, length: int) -> OutputPart:
    try:
        with path.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(offset)
            data = opened.read(max(0, min(length, size - offset)))
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from error
    if offset + len(data) < size:
        data = data[: data.rfind(b"\n") + 1] or data
    return OutputPart(data.decode("utf-8", "replace"), offset + len(data), size)


def read_on(output: Output, attempt: Attempt, file: str, offset: int) -> OutputPart:
    """Return what follows ``offset``, also when the file was cut to nothing in between.

    A task runner whose file is full copies it to ``<file>.1`` and begins anew.
    """
    part = output.read(attempt, file, offset)
    if part.size >= offset:
        return part
    # There may be nothing in it yet, and it is to be read all the same.
    return OutputPart(_rest(output, attempt, f"{file}.1", offset), 0, max(part.size, 1))


def _rest(output: Output, attempt: Attempt, file: str, offset: int) -> str:
    found = ""
    # Where no copies are kept, what was in there is lost.
    with contextlib.suppress(NotThere):
        for part in _parts(output, attempt, file, offset):
            found += part.text
    return found


def _parts(
    output: Output, attempt: Attempt, file: str, offset: int, end: int | None = None
) -> Iterator[OutputPart]:
    """Yield what follows ``offset``, part by part, to ``end`` or the end of the file."""
    while end is None or offset < end:
        length = _PART_BYTES if end is None else min(_PART_BYTES, end - offset)
        part = output.read(attempt, file, offset, length)
        yield part
        if part.at_end or part.next_offset <= offset:
            return
        offset = part.next_offset


def whole_file(output: Output, attempt: Attempt, file: str) -> Iterator[str]:
    """Yield the lines of a file, with what was copied out of it when it was full.

    Raises as ``read`` does.
    """
    lines = LineCutter()
    for name in (f"{file}.1", file):
        try:
            for part in _parts(output, attempt, name, 0):
                yield from lines.whole(part.text)
        except NotThere:
            # Without a copy it was never full.
            if name == file:
                raise
    yield from lines.rest()


def last_printed(output: Output, attempt: Attempt, lines: int) -> OutputPart:
    """Return the last lines that an attempt has printed, to both streams where that is known.

    Raises as ``read`` does.
    """
    for file in (CONSOLE_FILE, *STREAMS):
        with contextlib.suppress(NotThere):
            found = last_lines(output, attempt, file, lines)
            if found.size or file == STREAMS[-1]:
                return found
    raise NotThere("there is no output")


def last_lines(output: Output, attempt: Attempt, file: str, lines: int) -> OutputPart:
    """Return the last lines of a file, the unfinished one among them. Raises as ``read`` does."""
    size = output.read(attempt, file, 0, 0).size
    text, start = "", size
    for behind in _TAIL_BYTES if lines else ():
        start = max(0, size - behind)
        text = "".join(part.text for part in _parts(output, attempt, file, start, size))
        if start == 0 or text.count("\n") > lines:
            break
    whole = text.split("\n")
    # What stands before the first line's end is a part of a line, unless the file begins there.
    kept = whole[1:] if start > 0 and len(whole) > 1 else whole
    unfinished = kept.pop()
    kept = [*kept[max(0, len(kept) - lines) :], unfinished] if lines else [""]
    return OutputPart("\n".join(kept), size, size)


class LineCutter:
    """Cuts text that comes in pieces into lines. A line that gets too long is cut, too.

    Of a progress bar that is one long line the last state is a line (``plugin.log_lines``).
    """

    def __init__(self) -> None:
        self._begun = ""

    def whole(self, text: str) -> list[str]:
        """Return the lines that are complete with ``text``."""
        *whole, self._begun = (self._begun + text).split("\n")
        found = [line for each in whole for line in final_states(each)]
        if len(self._begun) > _PART_BYTES:
            # The newest whole state stays: what follows may be the next one of the same bar.
            states, again, begun = self._begun.rpartition("\r")
            *over, state = final_states(states)
            found += over
            self._begun = f"{state}{again}{begun}"
        if len(self._begun) > _PART_BYTES:
            found.append(self._begun)
            self._begun = ""
        return found

    def rest(self) -> list[str]:
        """Return the line that was begun and never ended, if there is one."""
        begun, self._begun = self._begun, ""
        return final_states(begun) if begun else []


def refuse_nonsense(file: str | None) -> None:
    """Raise CliError for a file that can be in no sandbox; None is what was printed."""
    if file is None:
        return
    if not file or file.startswith("/") or {".", "..", ""} & set(file.split("/")):
        raise CliError(f"--file: {file!r} is no path below a sandbox, such as stdout.", 2)
