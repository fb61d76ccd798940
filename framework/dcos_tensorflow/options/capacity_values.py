"""The types of the options about machines: money, counts, deadlines.

Used by ``capacity_models``. A rule that needs more than one option is in ``capacity_checks``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from dcos_tensorflow.options.values import (
    MAXIMUM_COUNT,
    MAXIMUM_SECONDS,
    Allowed,
    given,
    object_from_text,
    problem,
    text_schema,
    whole,
)

_MAXIMUM_MONEY = 1_000_000_000.0


def deadline_of(text: str) -> tuple[float, float]:
    """Return a deadline as seconds from the beginning and as a moment; one of the two is 0.

    Raises ValueError.
    """
    if not text.strip():
        return 0.0, 0.0
    try:
        seconds = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            raise ValueError("it names no time zone") from None
        return 0.0, moment.timestamp()
    if not 0 < seconds <= MAXIMUM_SECONDS:
        raise ValueError(f"{text} is no number of seconds from 1 to {MAXIMUM_SECONDS:.0f}")
    return seconds, 0.0


def _as_text(value: object) -> object:
    """Take a number of seconds for its text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if is_number else value


def _deadline(value: str) -> str:
    try:
        deadline_of(value)
    except ValueError as error:
        raise problem(f"is no deadline: {error}") from None
    return value


Money = Annotated[float, Field(gt=0, le=_MAXIMUM_MONEY, allow_inf_nan=False)]
MoneyIfGiven = Annotated[Money | None, BeforeValidator(given)]
MachineCount = Annotated[int, Field(ge=0, le=MAXIMUM_COUNT), BeforeValidator(whole)]
MachineCountIfGiven = Annotated[
    Annotated[int, Field(ge=1, le=MAXIMUM_COUNT), BeforeValidator(whole)] | None,
    BeforeValidator(given),
]
DiskGigabytes = Annotated[int, Field(ge=8, le=16_384), BeforeValidator(whole)]
Deadline = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_deadline),
    Allowed("a number of seconds, a moment such as 2027-01-31T18:00:00Z, or empty text"),
]
Prices = Annotated[
    dict[str, Money],
    BeforeValidator(object_from_text),
    Field(json_schema_extra=text_schema),
    Allowed("an object of prices by instance type, or JSON text of one"),
]
