"""The values of a JSON object, read one by one; a wrong one is refused with its path.

For ``spec`` and ``storage_spec``, which know what the values mean.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, Optional, Tuple

#: No time or amount is larger; beyond that, numbers stop being ones that can be counted with.
MAX_NUMBER = 1e9


class SpecError(ValueError):
    """The document is not what the runner understands; the message names the path and why."""


def json_object(text: str, what: str) -> Mapping[str, Any]:
    """Return the JSON object in ``text``. Raises SpecError, which names ``what`` it is."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise SpecError(f"{what} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise SpecError(f"{what} must be a JSON object, got {_kind(document)}")
    return document


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    if value is None:
        return "null"
    return names.get(type(value), f"{value!r}")


_MISSING = object()


class Fields:
    """Reads the values of one JSON object and names the path of a wrong one."""

    def __init__(self, document: Mapping[str, Any], path: str) -> None:
        self._document = document
        self._path = path

    def names(self) -> Tuple[str, ...]:
        """Return the names of all values."""
        return tuple(self._document)

    def path(self, name: str) -> str:
        """Return the path of a value from the top of the document."""
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        """Say whether there is a value; null is none."""
        return self._document.get(name) is not None

    def text(self, name: str, default: Any = _MISSING) -> str:
        """Return a text. Raises SpecError, as all of these do."""
        value = self._value(name, default)
        if not isinstance(value, str) or "\0" in value:
            raise self._wrong(name, "a text", value)
        return value

    def integer(self, name: str, default: Any = _MISSING) -> int:
        """Return a whole number of at least 0."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._wrong(name, "a whole number of at least 0", value)
        return value

    def number(self, name: str, default: Any = _MISSING) -> float:
        """Return a number from 0 to MAX_NUMBER."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise self._wrong(name, "a number of at least 0", value)
        if value > MAX_NUMBER:
            raise SpecError(f"{self.path(name)} must be a number of at most {MAX_NUMBER:g}")
        return float(value)

    def boolean(self, name: str, default: Any = _MISSING) -> bool:
        """Return true or false."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def part(self, name: str, read: Callable[[Any], Any] = lambda value: value) -> "Fields":
        """Return an object within the object, as ``read`` makes it of what stands there."""
        value = self._value(name, _MISSING)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object", value)
        return Fields(read(value), self.path(name))

    def optional_part(self, name: str) -> "Optional[Fields]":
        """Return an object within the object; None where there is none."""
        return self.part(name) if self.has(name) else None

    def parts(self, name: str) -> "Tuple[Fields, ...]":
        """Return the objects of a list; none where there is no value."""
        value = self._value(name, [])
        if not isinstance(value, list):
            raise self._wrong(name, "a list of objects", value)
        for index, part in enumerate(value):
            if not isinstance(part, dict):
                raise self._wrong(f"{name}.{index}", "an object", part)
        return tuple(Fields(p, f"{self.path(name)}.{i}") for i, p in enumerate(value))

    def optional_object(self, name: str) -> Optional[Mapping[str, Any]]:
        """Return an object as it is; None where there is none."""
        value = self._document.get(name)
        if value is not None and not isinstance(value, dict):
            raise self._wrong(name, "an object or null", value)
        return value

    def addresses(self, name: str) -> Tuple[str, ...]:
        """Return a list of ``host:port``; an empty one where there is none."""
        value = self._value(name, [])
        if not isinstance(value, list):
            raise self._wrong(name, "a list of host:port", value)
        for address in value:
            host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
            if not host or not port.isdigit() or not 0 < int(port) < 65536:
                raise self._wrong(name, "a list of host:port", address)
        return tuple(value)

    def _value(self, name: str, default: Any) -> Any:
        value = self._document.get(name, default)
        if value is _MISSING:
            raise SpecError(f"{self.path(name)} is missing")
        return value

    def _wrong(self, name: str, wanted: str, value: object) -> SpecError:
        return SpecError(f"{self.path(name)} must be {wanted}, got {_kind(value)}")
