"""The second format of the store, and its way to the present one: units in pages of 200.

A page is one value of the store, so a unit that changed wrote all of its page; and all attempts
that were given up were one value, which is too small for those of 10,000 tasks. Called by
``core.kept.restore`` as ``format_1`` is. Pages of now are written before those of then go, the
first of them at first: a commit that is cut short leaves all of then, or all of now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.codec import RecordError
from dcos_tensorflow.core.kept.writes import abandoned
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.units import PAGE

UNITS = "Units"
ABANDONED = "Properties/abandoned"


def changes(values: Mapping[str, bytes]) -> tuple[Write, ...]:
    """Return what brings a store of the second format to the present one; nothing for any other.

    Raises RecordError when what it holds cannot be read.
    """
    return (*_units(values), *_abandoned(values))


def _abandoned(values: Mapping[str, bytes]) -> tuple[Write, ...]:
    if ABANDONED not in values:
        return ()
    found: dict[str, str] = codec.decode(dict, values[ABANDONED])
    return (*abandoned({}, found), Write(ABANDONED, None))


def _units(values: Mapping[str, bytes]) -> tuple[Write, ...]:
    given: list[Any] = []
    states: list[Any] = []
    # A page whose state a split commit did not reach was never asked for anything.
    number = 0
    while (path := f"{UNITS}/{number:04}/State") in values:
        states += _list(values, path)
        given += _list(values, f"{UNITS}/{number:04}/Given")
        number += 1
    if len(states) != len(given):
        raise RecordError(f"{UNITS}: {len(given)} units were given, and {len(states)} are kept")
    if not states:
        return ()
    writes = []
    for page, first in enumerate(range(0, len(states), PAGE)):
        part = slice(first, first + PAGE)
        writes.append(Write(paths.units_given(page), codec.encode(given[part])))
        writes.append(Write(paths.units_state(page), codec.encode(states[part])))
    old = sorted(path for path in values if path.partition("/")[0] == UNITS)
    old.sort(key=lambda path: path != f"{UNITS}/0000/State")
    return (*writes, *(Write(path, None) for path in old))


def _list(values: Mapping[str, bytes], path: str) -> list[Any]:
    try:
        found = json.loads(values[path])
    except (KeyError, ValueError) as error:
        raise RecordError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, list):
        raise RecordError(f"{path}: expected a list")
    return found
