"""The audit log: each order, its author, address and result. One line of JSON for each.

Written by ``api.answering`` before an order is carried out, so that none goes unwritten; and for a
token that was wrong. It is a file of its own (0600), which grows to a size and is then put aside.
Values of options are not in it: the paths that changed, and the ids under which the API shows both.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO, cast

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.records import dataclass

log = logging.getLogger(__name__)

#: The file and nine of before, each of at most so many bytes.
FILE_BYTES = 1_000_000
FILES_BEFORE = 9
#: The longest text of an entry.
_MOST_CHARACTERS = 300
#: So many changed paths are listed.
_MOST_PATHS = 50


@dataclass(frozen=True)
class AuditEntry:
    """What is written of one request."""

    #: The caller's name; empty for one who was not let in.
    who: str
    #: ``host:port`` that it came from.
    peer: str
    #: Method and path, with the query.
    verb: str
    #: What was answered.
    status: int
    message: str
    #: What becomes of the configuration: ``from``, ``to``, and the paths that ``changed``.
    configuration: Mapping[str, Any] | None = None


class _Private(RotatingFileHandler):
    """A file that only its owner reads, whatever the umask, and that no link leads elsewhere."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self.baseFilename, flags, 0o600)
        os.fchmod(handle, 0o600)
        return cast(TextIOWrapper, cast(TextIO, os.fdopen(handle, "a", encoding="utf-8")))

    def handleError(self, record: logging.LogRecord) -> None:
        """Say in the scheduler's log that an entry is missing, not on the terminal."""
        log.exception("the audit log %s cannot be written", self.baseFilename)


class AuditLog:
    """The log in one file; without a path nothing is written. Any thread may write."""

    def __init__(self, path: Path | None = None) -> None:
        self._handler: _Private | None = None
        if path is not None:
            self._handler = _Private(
                path, maxBytes=FILE_BYTES, backupCount=FILES_BEFORE, encoding="utf-8", delay=True
            )

    def note(self, entry: AuditEntry) -> None:
        """Write an entry. A disk that is full ends nothing: the scheduler's log has it."""
        if self._handler is None:
            return
        document: dict[str, Any] = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "who": entry.who,
            "from": entry.peer,
            "verb": entry.verb[:_MOST_CHARACTERS],
            "status": entry.status,
            "message": entry.message[:_MOST_CHARACTERS],
        }
        if entry.configuration is not None:
            document["configuration"] = entry.configuration
        self._handler.handle(
            logging.LogRecord("audit", logging.INFO, "", 0, json.dumps(document), None, None)
        )
        # Orders are rare: between two of them the file is not held open.
        self._handler.close()


def changed(before: ServiceSpec, after: ServiceSpec) -> dict[str, Any]:
    """Return what an entry says of a change of the configuration."""
    paths = sorted(_differing(codec.to_plain(before), codec.to_plain(after)))
    return {
        "from": configuration_id(before),
        "to": configuration_id(after),
        "changed": paths[:_MOST_PATHS],
    }


def _differing(before: Any, after: Any, path: str = "") -> list[str]:
    if before == after:
        return []
    before, after = _named(before), _named(after)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return [path]
    return [
        each
        for key in before.keys() | after.keys()
        for each in _differing(
            before.get(key), after.get(key), f"{path}.{key}" if path else str(key)
        )
    ]


def _named(value: Any) -> Any:
    """Return a list as what is in it by name: a role's own, else its place."""
    if not isinstance(value, list | tuple):
        return value
    return {
        str(each["role"]) if isinstance(each, dict) and "role" in each else str(index): each
        for index, each in enumerate(value)
    }
