"""JSON from outside: whatever is wrong with it is a ValueError, too much nesting included.

Used for every text from outside: a person's file, a request, a task, a master, an agent. Python's
own parser ends with RecursionError where a text nests deeper than its stack, and a text that it
just gets through would end the code that walks the value later. ``task`` and ``plugin``, which
stand alone, catch that error themselves. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

#: Objects and lists within each other. Nothing that anybody writes or answers has a dozen.
MOST_LEVELS = 64


def read_json(text: str | bytes, *, most_levels: int | None = MOST_LEVELS, **hooks: Any) -> Any:
    """Return the value of a JSON text; ``hooks`` are those of ``json.loads``. Raises ValueError.

    Without ``most_levels`` nothing is counted, which costs a large value about as much as to parse
    it: for code that takes known parts out of the value and never walks over it.
    """
    try:
        value = json.loads(text, **hooks)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if most_levels is not None and _may_nest(text, most_levels) and _nests(value, most_levels):
        raise ValueError(f"it is nested too deeply: more than {most_levels} levels")
    return value


def _may_nest(text: str | bytes, levels: int) -> bool:
    """Say no where that is to be seen from afar."""
    if isinstance(text, str):
        return text.count("[") + text.count("{") > levels
    return text.count(b"[") + text.count(b"{") > levels


def _nests(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [part for each in level for part in _parts(each) if isinstance(part, dict | list)]
        if not level:
            return False
    return True


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
