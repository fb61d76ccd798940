"""Lines of many tasks as one text: each with its task's name in front, in a colour of its own.

Used by ``logs`` of both command lines, ``dcos tensorflow`` and ``dcos-tensorflow``. Pure. A
progress bar (Keras, tqdm) goes back to the line's beginning and writes its next state over the one
before; of these states the last is a line. A line that is no later state of the same bar is never
left out.
"""

from __future__ import annotations

import json
import re
from typing import Dict, List, Optional, Sequence

from dcos_tensorflow.plugin.plain_text import escaped

#: What erases a part of the line, and colours: a state is told without them.
_TERMINAL_CODES = re.compile(r"\x1b\[(?:[0-2]?K|[0-9;:]*m)")
#: How far a bar is: 7/45, 7/Unknown.
_COUNT = re.compile(r"\d[\d.]*\w*\s*/\s*(\d[\d.]*|Unknown\b)")
_PERCENT = re.compile(r"\d\s*%")
_NO_WORD = re.compile(r"[\W\d_]+")


def final_states(line: str) -> List[str]:
    """Return a line as lines: the last state of each bar that was drawn in it, and all else."""
    if "\r" not in line and "\b" not in line:
        return [line]
    found: List[str] = []
    for part in _TERMINAL_CODES.sub("", line).split("\r"):
        state = _written_over(part).rstrip()
        if not state.strip():
            continue
        if found and _is_later(found[-1], state):
            found.pop()
        found.append(state)
    return found or [""]


def _written_over(text: str) -> str:
    """Return what stands there after the backspaces in ``text``."""
    if "\b" not in text:
        return text
    cells: List[str] = []
    place = 0
    for character in text:
        if character == "\b":
            place = max(0, place - 1)
            continue
        cells[place : place + 1] = [character]
        place += 1
    return "".join(cells)


def _is_later(before: str, state: str) -> bool:
    """Say whether ``state`` shows the same bar as ``before``, further on."""
    total = _total(state)
    if total is not None or _total(before) is not None:
        return total == _total(before)
    if _PERCENT.search(before) and _PERCENT.search(state):
        return True
    return state.startswith(before) or _NO_WORD.sub(" ", before) == _NO_WORD.sub(" ", state)


def _total(state: str) -> Optional[str]:
    found = _COUNT.search(state)
    return found.group(1) if found else None


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
