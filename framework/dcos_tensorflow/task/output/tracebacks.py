"""Reads Python's tracebacks in the output of a process: the exception, and its place.

``exit_analysis`` asks for the end of a process. Pure. It knows the forms in which TensorFlow and
Keras wrap an error, measured with 2.15.1 and 2.21.0: an exception inside ``tf.function`` says "in
user code:" and nothing more, and the real one stands below it, indented; Keras says "Exception
encountered when calling", and the message stands below that.
"""

from __future__ import annotations

import re
from typing import Iterable, List, Optional, Sequence

from dcos_tensorflow.records import dataclass

#: What is told of an error's line at most.
MAX_ERROR = 300

_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(
    r"^\s*(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Unavailable)\w*)"
    r"(?::\s?(?P<text>.*))?$"
)
#: An exception may have any name. So only what ends the frames of a traceback is taken for one.
_ANY_EXCEPTION = re.compile(r"^(?P<name>[A-Za-z_][\w.]*)(?::\s(?P<text>.*))?$")
_FRAME = re.compile(r'^[\s|+]*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_CHAINED = re.compile(r"^(During handling of the above exception|The above exception was the)")
_DIRECT_CAUSE = "The above exception was the direct cause"
#: What says nothing by itself: the error is below it.
_WRAPPED = re.compile(r"in user code:$|(?:^|: )Exception encountered when calling ")
_GRAPH = "Graph execution error:"
_LOCATION = re.compile(r"^$|Detected at node|File \"|<stack traces|\d+ root error")
_TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: Where in a graph an operation is: nothing to an author who wrote no graph.
_OF_THE_GRAPH = re.compile(r"\{\{\w+ [^{}]*\}\}(?:\[\[\{\{[^{}]*\}\}\]\])? |(?: name:) *$")
_TENSORFLOW_ERRORS = "tensorflow.python.framework.errors_impl."
#: Code that is not the user's: libraries, the interpreter's own, the task runner's wrapper, and
#: what AutoGraph has made of the user's, in files of changing names.
_NOT_THE_USERS = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python3[.\d]*/|^<|task-runner[^/]*\.pyz/"
    r"|/dcos_tensorflow/task/|__autograph_generated_file"
)


@dataclass(frozen=True)
class Raised:
    """An exception that has ended a process.

    ``error`` is its sentence, such as ``KeyError: 'x'``; ``exception`` the name of its type.
    ``file`` and ``line`` are the innermost place in the user's own code, else the innermost of all;
    a file of the sandbox is named from there. They are empty and 0 where no place was printed.
    """

    error: str
    exception: str
    file: str = ""
    line: int = 0

    @property
    def told(self) -> str:
        """Return the sentence with the place."""
        return f"{self.error} ({self.file}, line {self.line})" if self.file else self.error


def failure_of(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines from the last traceback on, with those it is chained to; else all lines.

    What was printed long before (a peer that was lost and came back) is not the cause of the end.
    """
    starts = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    if not starts:
        return lines
    start = starts.pop()
    while starts and any(map(_CHAINED.match, lines[starts[-1] : start])):
        start = starts.pop()
    return lines[start:]


def causes_of(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines that name the exceptions which the last one was raised from (``from``)."""
    failure = failure_of(lines)
    ends = [n for n, line in enumerate(failure) if line.startswith(_DIRECT_CAUSE)]
    found = (header_of(failure[:end]) for end in ends)
    return [failure[number] for number in found if number is not None]


def header_of(lines: Sequence[str]) -> Optional[int]:
    """Return the number of the line that names the last exception."""
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if _EXCEPTION.match(line) and line[:1].strip():
            return number
        if number and _ANY_EXCEPTION.match(line) and _ends_frames(lines, number):
            return number
    return None


def raised(lines: Sequence[str], sandbox: str = "") -> Optional[Raised]:
    """Return the last exception that was printed; None when there is none."""
    number = header_of(lines)
    if number is None:
        return None
    head, below = lines[number].strip(), [_TERMINAL_CODES.sub("", x) for x in lines[number + 1 :]]
    error = _real_error(head, below).replace(_TENSORFLOW_ERRORS, "")
    error = _OF_THE_GRAPH.sub("", error).strip()
    name = _match(error)
    exception = name.group("name") if name else ""
    place = _place([*_frames_above(lines, number), *filter(None, map(_FRAME.match, below))])
    if place is None:
        return Raised(error[:MAX_ERROR], exception)
    file = place.group("file")
    inside = f"{sandbox.rstrip('/')}/"
    if sandbox and file.startswith(inside):
        file = file[len(inside) :]
    return Raised(error[:MAX_ERROR], exception, file, int(place.group("line")))


def _ends_frames(lines: Sequence[str], number: int) -> bool:
    """Say whether the line follows on the frames of a traceback."""
    above = number - 1
    while above >= 0 and lines[above][:1] == " ":
        above -= 1
    return 0 <= above < number - 1 and lines[above].endswith(_TRACEBACK)


def _match(error: str) -> "Optional[re.Match[str]]":
    return _EXCEPTION.match(error) or _ANY_EXCEPTION.match(error)


def _says_nothing(head: str) -> bool:
    return bool(_WRAPPED.search(head)) or head.endswith(_GRAPH)


def _real_error(head: str, below: List[str]) -> str:
    if head.endswith(_GRAPH):
        more = (line.strip() for line in below)
        return f"{head} {next((x for x in more if not _LOCATION.match(x)), '')}"
    if not _WRAPPED.search(head):
        return head
    named = [n for n, x in enumerate(below) if x[:1] == " " and _EXCEPTION.match(x)]
    telling = [n for n in named if not _says_nothing(below[n].strip())]
    if telling:
        return below[telling[-1]].strip()
    # Keras 3 names no exception again: its message stands alone, below the last that is named.
    name = _match(below[named[-1]].strip() if named else head)
    said = (x.strip() for x in below[named[-1] + 1 if named else 0 :])
    message = next((x for x in said if x and not _LOCATION.match(x) and not _match(x)), "")
    return f"{name.group('name')}: {message}" if name and message else head


def _frames_above(lines: Sequence[str], number: int) -> "Iterable[re.Match[str]]":
    starts = [n for n, line in enumerate(lines[:number]) if line.endswith(_TRACEBACK)]
    return filter(None, map(_FRAME.match, lines[starts[-1] : number] if starts else ()))


def _place(frames: "List[re.Match[str]]") -> "Optional[re.Match[str]]":
    theirs = [frame for frame in frames if not _NOT_THE_USERS.search(frame.group("file"))]
    known = [frame for frame in frames if "__autograph_generated_file" not in frame.group("file")]
    return (theirs or known or [None])[-1]  # type: ignore[list-item]
