"""Takes error messages out of a job's output: their numbers are no metrics of the training.

``progress_log`` and ``progress`` ask before they look for numbers. A traceback shows lines of code
(``steps_per_epoch=60``), an exception's text quotes arguments, a warning repeats the line that it
is about. Only text is looked at; nothing else is known of the job.
"""

from __future__ import annotations

import re
from typing import Iterable, List, Optional

_BEGINS = b"Traceback (most recent call last)"
#: A block without any of these has no traceback, and no line of code below a warning.
_MARKS = (b"Traceback (most recent", b"Warning: ", b'  File "')
#: Of text behind a traceback's last line so many lines may be the exception's own.
_MOST_OF_A_TEXT = 200
#: What ends an exception's text: a line that tells of a training by its form.
_PROGRESS = re.compile(
    rb"\s*(?:(?:Train )?Epoch\b|\d+/\d+\b|\d+%\||(?:global[_ ])?step\b|\{|INFO:|I\d{4} |result\b"
    rb"|\d{4}-\d\d-\d\d[^A-Za-z]*(?:[\w.]+ - )?INFO\b"
    rb"|[\w/.-]+\s?[:=]\s?[-+]?[\d.]+[,;\s]+[\w/.-]+\s?[:=]\s?[-+]?[\d.])",
    re.IGNORECASE,
)
_TERMINAL_CODES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
#: A line that is an error's or a warning's by its own beginning.
_IS_OF_AN_ERROR = re.compile(
    r"""\s*(?:
      [\w./<>-]+:\d+:\ (?:[\w.]*Warning|WARNING|ERROR):?     # the module warnings, compilers
    | (?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b(?::|$)
    | (?:\[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d)[^A-Za-z]*)?  # logging, by any of its formats
      (?:[\w.]+\ -\ )?\[?(?:WARNING|WARN|ERROR|CRITICAL|FATAL)\b
    | \{.*"(?:level|levelname|severity|log_level)":\ ?"(?i:warn|warning|error|critical|fatal)"
    | [WEF]\d{4}\ \d\d:\d\d                                 # absl, glog
    | \d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d\.\d+:\ [IWEF]\        # TensorFlow's own, from C++
    )""",
    re.VERBOSE,
)
#: A place in code; the line below it is code.
_PLACE = re.compile(rb'\s*(?:File "[^"]*", line \d+|[\w./<>-]+:\d+: [\w.]*Warning:)')


def is_of_an_error(line: str) -> bool:
    """Say whether a line is that of an error or a warning by its own beginning."""
    return _IS_OF_AN_ERROR.match(line) is not None


def without_errors(lines: Iterable[str]) -> List[str]:
    """Return the lines of a task's output, as they are read again, less those that tell errors."""
    text = "".join(f"{line}\n" for line in lines)
    kept = ErrorTexts().taken_out(text.encode(errors="surrogateescape"))
    return kept.decode(errors="surrogateescape").split("\n")[:-1]


class ErrorTexts:
    """The tracebacks in one process's output, and code below warnings; lines come in blocks."""

    def __init__(self) -> None:
        #: How many lines of an exception's text may still come; None within the frames of a
        #: traceback, 0 outside.
        self._left: Optional[int] = 0
        self._before = b""

    def taken_out(self, block: bytes) -> bytes:
        """Return whole lines of output less those of tracebacks and of code below warnings."""
        if (
            self._left == 0
            and not _PLACE.match(self._before)
            and not any(m in block for m in _MARKS)
        ):
            self._before = block[block.rfind(b"\n", 0, -1) + 1 :]
            return block
        kept: List[bytes] = []
        for line in block.split(b"\n")[:-1]:
            if not self._is_taken(line):
                kept.append(line + b"\n")
            self._before = line
        return b"".join(kept)

    def _is_taken(self, line: bytes) -> bool:
        if _BEGINS in line:
            self._left = None
            return True
        if self._left is None:
            # The frames are indented; the first line that is not is the exception's.
            if line.strip() and not line[:1].isspace():
                self._left = _MOST_OF_A_TEXT
            return True
        if self._left and not _PROGRESS.match(_TERMINAL_CODES.sub(b"", line)):
            self._left -= 1
            return True
        self._left = 0
        is_code = line[:1].isspace() and _PLACE.match(self._before) is not None
        return is_code or _PLACE.match(line) is not None
