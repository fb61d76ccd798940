"""Lines of many tasks as one text: each with its task's name in front, in a colour of its own.

Used by ``logs`` of both command lines, ``dcos tensorflow`` and ``dcos-tensorflow``. Pure.
"""

from __future__ import annotations

import json
from typing import Dict, Sequence

from dcos_tensorflow.plugin.plain_text import escaped

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)


class LineFormat:
    """How lines are shown. One task alone has no name in front.

    ``as_json`` makes each line a JSON object, for programs that read line by line; what else is
    known of a line is told in there only.
    """

    def __init__(
        self, tasks: Sequence[str], *, as_json: bool = False, coloured: bool = False
    ) -> None:
        self._as_json = as_json
        self._coloured = coloured
        self._places: Dict[str, int] = {}
        self._width = 0
        self._alone = len(tasks) < 2
        for task in sorted(tasks):
            self._place(task)

    def line(self, task: str, text: str, **more: str) -> str:
        """Return one line of a task as it is shown."""
        if self._as_json:
            return json.dumps({"task": task, "line": text, **more})
        place = self._place(task)
        text = escaped(text)
        if self._alone:
            return text
        head = f"{task:<{self._width}} | "
        if self._coloured:
            head = f"\x1b[{_COLOURS[place % len(_COLOURS)]}m{head}\x1b[0m"
        return head + text

    def _place(self, task: str) -> int:
        if task not in self._places:
            # A task that joined later: from the second on there are names in front.
            self._alone = self._alone and not self._places
            self._places[task] = len(self._places)
            self._width = max(self._width, len(task))
        return self._places[task]
