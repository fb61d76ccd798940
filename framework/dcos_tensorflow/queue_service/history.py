"""The history of a queue: the place and time of each job, its giving way, and the teams' shares.

Written by ``jobs`` as lines of JSON beside the queue's code, asked by the dashboard. It is no
record: a queue that loses it decides as before. The file is cut when it is long.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from untrusted_input.json_text import read_json

log = logging.getLogger(__name__)

#: So many of the newest events, and samples of shares, are kept.
_KEPT = 20_000
#: How often shares are noted that do not change; seconds.
SAMPLE_SECONDS = 60.0


class QueueHistory:
    """The events of a queue in a file, the newest in memory. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = 0
        self._known: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        try:
            with path.open(encoding="utf-8") as file:
                for line in file:
                    self._lines += 1
                    self._remember(line)
        except OSError:
            # There is none yet, or it cannot be read: the queue goes on without it.
            pass

    def note(self, at: float, what: str, **told: Any) -> None:
        """Note an event, ``at`` in unix seconds."""
        event = {"at": at, "what": what, **told}
        self._known.append(event)
        self._lines += 1
        try:
            if self._lines > 2 * _KEPT:
                self._cut()
            else:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(event) + "\n")
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error)

    def since(self, at: float) -> list[Mapping[str, Any]]:
        """Return what happened from a moment on, the oldest first."""
        return [event for event in self._known if event["at"] >= at]

    def _remember(self, line: str) -> None:
        try:
            event = read_json(line)
            if isinstance(event["at"], int | float) and isinstance(event["what"], str):
                self._known.append(event)
        except (ValueError, KeyError, TypeError):
            # The last line of a process that was killed, or of a full disk.
            return

    def _cut(self) -> None:
        partial = self._path.with_suffix(".part")
        partial.write_text("".join(json.dumps(event) + "\n" for event in self._known))
        partial.replace(self._path)
        self._lines = len(self._known)
