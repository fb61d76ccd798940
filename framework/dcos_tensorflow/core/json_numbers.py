"""Numbers as a job tells them, which may be NaN or infinity, and as JSON can hold them. Pure.

The task runner has its own (``task.output.progress``): it knows of the core its contract alone.
"""

from __future__ import annotations

import math

from dcos_tensorflow.core.contract import NOT_FINITE


def as_number(value: object) -> float | None:
    """Return what a document tells as a number, ``NOT_FINITE`` included; None for what is none."""
    if isinstance(value, str):
        return float(value) if value in NOT_FINITE else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def as_json(value: float) -> float | str:
    """Return a number as a document tells it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
