"""Reads frozen dataclasses out of JSON; a wrong value is refused with its path.

For ``spec`` and ``storage_spec``, whose fields say all of it: by their type the allowed values, by
their default that it may be absent or null, and by ``checked`` rules beyond a type. Names that
are not known are passed over.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import (
    Any,
    Callable,
    Dict,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

#: No time or amount is larger; beyond that, numbers stop being ones that can be counted with.
MAX_NUMBER = 1e9

#: A list of ``host:port``; a list of any texts is a ``Texts``.
Addresses = Tuple[str, ...]
Texts = Sequence[str]
Value = TypeVar("Value")


class SpecError(ValueError):
    """The document is not what the runner understands; the message names the path and why."""


def checked(
    wanted: str, is_right: Callable[[Any], bool], default: Any = dataclasses.MISSING
) -> Any:
    """Return a field whose value ``is_right`` judges; ``wanted`` says what it must be."""
    return dataclasses.field(default=default, metadata={"check": (wanted, is_right)})


def json_object(text: str, what: str) -> Mapping[str, Any]:
    """Return the JSON object in ``text``. Raises SpecError, which names ``what`` it is."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{what} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise SpecError(f"{what} must be a JSON object, got {_kind(document)}")
    return document


def read(kind: Type[Value], document: Mapping[str, Any], path: str = "", **known: Any) -> Value:
    """Return the ``kind`` that ``document`` tells of; ``known`` are fields it need not tell.

    Raises SpecError.
    """
    types, values = _types_of(kind), dict(known)  # type: ignore[arg-type]
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = document.get(field.name)
        needed = dataclasses.MISSING is field.default is field.default_factory
        if field.name in known or (value is None and not needed):
            continue
        where = f"{path}.{field.name}" if path else field.name
        if field.name not in document:
            raise SpecError(f"{where} is missing")
        values[field.name] = _value(types[field.name], value, where)
        wanted, is_right = field.metadata.get("check", ("", None))
        if is_right and not is_right(values[field.name]):
            raise SpecError(f"{where} must be {wanted}, got {value!r}")
    return kind(**values)


#: Orders come with each unit of work, and the types are texts that must be evaluated.
_types_of = functools.lru_cache(maxsize=None)(get_type_hints)


def _value(kind: Any, value: Any, path: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Union:
        return _value(inner[0], value, path)
    if kind == Addresses:
        return _addresses(value, path)
    if kind == Texts:
        if not isinstance(value, list):
            raise _wrong(path, "a list of texts", value)
        return tuple(_value(str, item, f"{path}.{i}") for i, item in enumerate(value))
    if origin is tuple:
        if not isinstance(value, list):
            raise _wrong(path, "a list of objects", value)
        return tuple(_value(inner[0], item, f"{path}.{i}") for i, item in enumerate(value))
    if origin is not None or dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise _wrong(path, "an object", value)
        if dataclasses.is_dataclass(kind):
            return read(kind, value, path)  # type: ignore[arg-type]
        return {name: _value(inner[1], part, f"{path}.{name}") for name, part in value.items()}
    wanted, is_right = _PLAIN[kind]
    if not is_right(value):
        raise _wrong(path, wanted, value)
    if kind is float and value > MAX_NUMBER:
        raise SpecError(f"{path} must be a number of at most {MAX_NUMBER:g}")
    return float(value) if kind is float else value


_PLAIN: Dict[Any, Tuple[str, Callable[[Any], bool]]] = {
    str: ("a text", lambda value: isinstance(value, str) and "\0" not in value),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number of at least 0", lambda value: type(value) is int and value >= 0),
    float: ("a number of at least 0", lambda value: type(value) in (int, float) and value >= 0),
    Any: ("anything", lambda value: True),
}


def _addresses(value: Any, path: str) -> Addresses:
    if not isinstance(value, list):
        raise _wrong(path, "a list of host:port", value)
    for address in value:
        host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
        if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
            raise _wrong(path, "a list of host:port", address)
    return tuple(value)


def _kind(value: object) -> str:
    names: Dict[Optional[type], str] = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), f"{value!r}")


def _wrong(path: str, wanted: str, value: object) -> SpecError:
    return SpecError(f"{path} must be {wanted}, got {_kind(value)}")
