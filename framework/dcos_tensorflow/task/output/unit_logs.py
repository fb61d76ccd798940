"""What a task prints while it works on a unit of work, in a file of each unit's own.

``starts`` begins one and ends it. The streams of a task go on from unit to unit, and their files
are cut when they are full: a unit's own file has its lines and no other's. A sandbox keeps those of
the newest units, each within bounds.
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from typing import Optional, Sequence

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.output.logs import BoundedOutput, Console

#: Of each unit the last so many bytes are kept, and at most as many before them.
_MOST_BYTES = 256 * 1024
#: The files of so many units.
_KEPT = 100


class UnitLogs:
    """The files of one sandbox. Used by one thread; ``streams`` may be written by others."""

    def __init__(self, sandbox: str, streams: Sequence[BoundedOutput]) -> None:
        self._sandbox = sandbox
        self._streams = streams
        self._console: Optional[Console] = None
        #: The paths of the files, the oldest first.
        self._there: "OrderedDict[str, None]" = OrderedDict()

    def begin(self, number: int) -> None:
        """Put what is printed from now on into the file of a unit; a former attempt's goes."""
        self.end()
        path = os.path.join(self._sandbox, contract.UNIT_FILE.format(number))
        self._remove(path)
        self._console = Console(path, self._streams, _MOST_BYTES, keep=1)
        self._there[path] = None
        while len(self._there) > _KEPT:
            self._remove(next(iter(self._there)))

    def end(self) -> None:
        """Put nothing more into it."""
        if self._console is not None:
            self._console.close()
            self._console = None

    def _remove(self, path: str) -> None:
        self._there.pop(path, None)
        for each in (path, f"{path}.1"):
            with contextlib.suppress(OSError):
                os.unlink(each)
