"""Values that a package's ``config.json`` forbids, one for each of its rules."""

from collections.abc import Iterator, Mapping
from typing import Any


def wrong_values(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield values that an option's schema forbids."""
    yield from ([1], {"a": 1}, None)
    yield 1.5 if schema["type"] != "number" else "1.5"
    if "enum" in schema:
        yield "no such choice"
    if "minimum" in schema:
        yield schema["minimum"] - (0 if schema.get("exclusiveMinimum") else 1)
    if "maximum" in schema:
        yield schema["maximum"] + 1


def at(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return the options with this value alone."""
    for key in reversed(path):
        value = {key: value}
    found: dict[str, Any] = value
    return found
