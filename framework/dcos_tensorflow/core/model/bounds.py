"""The largest size of each part of the stored state, in bytes, in one place.

``of_event`` cuts events from outside at the core's one door (``core.step``); code that makes a
stored text, also of a runner's report, cuts it with the bounds here. Bytes are those of the stored
JSON, where a letter may take six and an emoji
twelve: no written text is ever too large for a value of the state store. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from dcos_tensorflow.core.contract import UNIT_RESULT_BYTES

E = TypeVar("E")

#: A sentence or a few: a message of Mesos, how a process ended, the reason of an order.
TEXT_BYTES = 2_000
#: A word, a name, or a place in a file.
NAME_BYTES = 300
#: A sentence about a unit of work: there are thousands.
UNIT_TEXT_BYTES = 300
#: So many of a unit's failures are kept, the newest ones; of the others it keeps their number.
FAILURES_OF_A_UNIT = 20
#: What the job calls its result.
JOB_RESULT_BYTES = 100_000
#: So many of a job's newest incidents are kept as they are ...
INCIDENTS_IN_FULL = 50
#: ... so many in all ...
MOST_INCIDENTS = 500
#: ... and of the older ones a text of this length.
OLD_INCIDENT_BYTES = 150
#: Machines of one purchase, which is one value: more are several purchases.
MACHINES_OF_A_PURCHASE = 100
#: Names and addresses of a machine, and how long one is: longer ones are no name of DNS.
NAMES_OF_A_MACHINE, HOSTNAME_LETTERS = 8, 253
#: Changes of price that are kept, of all pools together.
MOST_PRICES = 1_000

#: What of an event that comes from outside is kept, and how long it may be; by the event's kind.
OF_EVENTS: Mapping[str, Mapping[str, int]] = {
    "TaskUpdate": {
        **{"message": TEXT_BYTES, "reason": NAME_BYTES, "source": NAME_BYTES},
        "container_address": NAME_BYTES,
    },
    "FrameworkRefused": {"message": TEXT_BYTES},
    "CallFailed": {"message": TEXT_BYTES},
    "EvidenceFound": dict.fromkeys(("result", "progress"), JOB_RESULT_BYTES)
    | {"summary": TEXT_BYTES},
    "StopRequested": {"why": TEXT_BYTES},
    "UninstallRequested": {"why": TEXT_BYTES},
    "UnitPruned": {"why": UNIT_TEXT_BYTES, "result": UNIT_RESULT_BYTES},
}


def of_event(event: E) -> E:
    """Return an event with what is kept of it within its bounds: texts are cut, objects emptied."""
    changed: dict[str, Any] = {}
    for name, most in OF_EVENTS.get(type(event).__name__, {}).items():
        value = getattr(event, name)
        within = cut(value, most) if isinstance(value, str) else small(value, most)
        if within is not value:
            changed[name] = within
    return replace(event, **changed) if changed else event  # type: ignore[type-var]


def cut(text: str, most: int) -> str:
    """Return a text that takes at most so many bytes in JSON: its beginning, if it is longer."""
    if 12 * len(text) <= most or _bytes(text) <= most:
        return text
    left, kept = most - _bytes("\u2026"), 0
    for letter in text:
        left -= _bytes(letter)
        if left < 0:
            break
        kept += 1
    return text[:kept] + "\u2026"


def small(value: Any, most: int) -> Mapping[str, Any]:
    """Return a JSON object of at most so many bytes; an empty one for anything else."""
    if not isinstance(value, Mapping):
        return {}
    try:
        text = json.dumps(value, default=dict)
    except (TypeError, ValueError):
        return {}
    return value if len(text) <= most else {}


def _bytes(text: str) -> int:
    return len(json.dumps(text)) - 2
