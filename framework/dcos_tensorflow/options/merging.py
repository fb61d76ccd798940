"""Options laid over others: what an update gives, over those in force. Pure.

The rule is that of DC/OS' package manager, so that an update means the same whoever carries it out
(``plugin.update_check`` has it for machines that have nothing of ours).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``over`` laid over ``under``: objects are merged, everything else is replaced."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[name] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged
