"""Where log lines go: a service's file while ``run`` shows progress, standard error for the daemon.

A line is for people or, as JSON, for programs (docs/logs.md). A line of a turn of the event
loop carries the turn's id. Nothing else configures logging; libraries below the warning level stay
silent.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.plugin.plain_text import escaped
from dcos_tensorflow.scheduler.loop.turn import TURN_ID, Turn
from untrusted_input.seldom import SeldomFilter

#: ``service.log_level`` in the words of Python's logging.
_LEVELS = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
    "ALL": logging.DEBUG,
}
#: ``service.log_format``.
PRETTY, JSON = "pretty", "json"
_SECONDS = "%Y-%m-%dT%H:%M:%SZ"
_OWN = "dcos_tensorflow"
#: Loggers of what goes wrong with requests and connections: clients could fill the disk.
_DRIVEN_FROM_OUTSIDE = ("asyncio", "dcos_tensorflow.api")


class _Pretty(logging.Formatter):
    """Keeps a message to its line, and its controls from a terminal that shows the log.

    With ``names`` it tells of each turn what came, what was written and what was called.
    """

    def __init__(self, *, names: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s%(id)s: %(message)s", _SECONDS)
        self._names = names

    def format(self, record: logging.LogRecord) -> str:
        own = copy.copy(record)
        own.exc_text = None
        turn_id, turn = TURN_ID.get(), getattr(record, "turn", None)
        own.id = f" [{turn_id}]" if turn_id else ""
        if self._names and isinstance(turn, Turn):
            named = (f"{what}: {', '.join(names)}" for what, names in turn.named().items() if names)
            own.msg, own.args = f"{record.getMessage()} ({'; '.join(named)})", ()
        return super().format(own)

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Return the traceback, whose last line may hold a text from outside."""
        return escaped(super().formatException(ei), lines=True)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        seconds = self.formatTime(record, _SECONDS)
        line: dict[str, Any] = {
            "at": f"{seconds[:-1]}.{record.msecs:03.0f}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        turn_id, turn = TURN_ID.get(), getattr(record, "turn", None)
        if turn_id:
            line["turn"] = turn_id
        if isinstance(turn, Turn):
            line |= turn.named()
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _File(logging.FileHandler):
    """A log that loses lines where they cannot be written: a full disk is no end of anything."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing: Python would print a traceback to the terminal for each line."""


@contextmanager
def log_to_file(path: Path, level: str, form: str = PRETTY) -> Iterator[None]:
    """Append log lines to a file. Raises CliError when it cannot be written."""
    try:
        handler = _File(path, encoding="utf-8")
    except OSError as error:
        raise CliError(f"The log {path} cannot be written: {error.strerror}.") from error
    with _handling(handler, level, form):
        yield


@contextmanager
def log_to_standard_error(level: str, form: str) -> Iterator[None]:
    """Write log lines to standard error: where Marathon and systemd look for them."""
    with _handling(logging.StreamHandler(sys.stderr), level, form):
        yield


@contextmanager
def _handling(handler: logging.Handler, level: str, form: str) -> Iterator[None]:
    wanted = _LEVELS.get(level, logging.INFO)
    formatter = _Json() if form == JSON else _Pretty(names=wanted <= logging.DEBUG)
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    handler.addFilter(SeldomFilter(*_DRIVEN_FROM_OUTSIDE))
    root, own = logging.getLogger(), logging.getLogger(_OWN)
    before = (root.level, own.level)
    root.addHandler(handler)
    root.setLevel(max(wanted, logging.WARNING))
    own.setLevel(wanted)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        own.setLevel(before[1])
        handler.close()
