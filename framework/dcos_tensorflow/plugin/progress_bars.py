"""Progress bars in what tasks print: of a line that was written over, what a person needs.

Keras, tqdm and their like go back to the line's beginning (carriage return, backspaces) and write
its next state over the one before; in a file all states stand one after the other. Used by ``logs``
of both command lines. Pure. What is no later state of the same bar is never left out.
"""

from __future__ import annotations

import re
from typing import List, Optional

#: What erases a part of the line, and colours: a state is told without them.
_TERMINAL_CODES = re.compile(r"\x1b\[(?:[0-2]?K|[0-9;:]*m)")
#: How far a bar is: 7/45, 7/Unknown.
_COUNT = re.compile(r"\d[\d.]*\w*\s*/\s*(\d[\d.]*|Unknown\b)")
_PERCENT = re.compile(r"\d\s*%")
_NO_WORD = re.compile(r"[\W\d_]+")


def settled(line: str) -> List[str]:
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
