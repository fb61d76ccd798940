"""Frozen dataclasses <-> JSON: how the core's values are kept in the state store.

Called by ``core.model.service_state``, for what is written and for what was. One generic codec
driven by the type hints, so that a new field needs no code here. A field that is missing in stored
JSON takes its default: an older scheduler's state stays readable. Unknown fields are an error,
because silently dropping what a newer scheduler wrote would lose it at the next write.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class RecordError(ValueError):
    """Stored JSON does not fit the type it should hold; the text says where."""


def to_plain(value: Any) -> Any:
    """Return ``value`` (dataclasses, enums, tuples, mappings) as JSON-ready builtins."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


def encode(value: Any) -> bytes:
    """Return ``value`` as canonical JSON: the same value always gives the same bytes."""
    return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":")).encode()


def decode(kind: type[T], data: bytes) -> T:
    """Return the value of type ``kind`` that ``encode`` wrote. Raises RecordError."""
    try:
        plain = json.loads(data)
    except ValueError as error:
        raise RecordError(f"{kind.__name__}: not JSON: {error}") from error
    return typing.cast(T, from_plain(kind, plain, kind.__name__))


@functools.cache
def _fields(kind: type) -> dict[str, tuple[Any, bool]]:
    hints = typing.get_type_hints(kind)
    return {
        f.name: (
            hints[f.name],
            f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING,
        )
        for f in dataclasses.fields(kind)
    }


def _dataclass_from(kind: type, plain: Any, where: str) -> Any:
    if not isinstance(plain, dict):
        raise RecordError(f"{where}: expected an object, found {plain!r}")
    fields = _fields(kind)
    unknown = sorted(set(plain) - set(fields))
    if unknown:
        raise RecordError(f"{where}: unknown field {unknown[0]!r}; written by a newer version?")
    missing = sorted(
        name for name, (_, required) in fields.items() if required and name not in plain
    )
    if missing:
        raise RecordError(f"{where}: field {missing[0]!r} is missing")
    return kind(
        **{
            name: from_plain(fields[name][0], item, f"{where}.{name}")
            for name, item in plain.items()
        }
    )


def _union_from(options: tuple[Any, ...], plain: Any, where: str) -> Any:
    if plain is None and type(None) in options:
        return None
    problems = []
    for option in options:
        if option is type(None):
            continue
        try:
            return from_plain(option, plain, where)
        except RecordError as error:
            problems.append(str(error))
    raise RecordError("; ".join(problems) or f"{where}: unexpected null")


def _scalar_from(kind: Any, plain: Any, where: str) -> Any:
    if kind is float and isinstance(plain, int) and not isinstance(plain, bool):
        return float(plain)
    if not isinstance(plain, kind) or (kind is not bool and isinstance(plain, bool)):
        raise RecordError(f"{where}: expected {kind.__name__}, found {plain!r}")
    return plain


def _tuple_from(arguments: tuple[Any, ...], plain: Any, where: str) -> Any:
    if not isinstance(plain, list):
        raise RecordError(f"{where}: expected a list, found {plain!r}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(from_plain(arguments[0], x, f"{where}[{i}]") for i, x in enumerate(plain))
    if len(arguments) != len(plain):
        raise RecordError(f"{where}: expected {len(arguments)} items, found {len(plain)}")
    return tuple(
        from_plain(kind, x, f"{where}[{i}]")
        for i, (kind, x) in enumerate(zip(arguments, plain, strict=True))
    )


def from_plain(kind: Any, plain: Any, where: str) -> Any:
    """Return ``plain`` as a value of type ``kind``. Raises RecordError naming ``where``."""
    if kind is Any:
        return plain
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union_from(arguments, plain, where)
    if origin is tuple:
        return _tuple_from(arguments, plain, where)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(plain, dict):
            raise RecordError(f"{where}: expected an object, found {plain!r}")
        return {
            from_plain(arguments[0], k, where): from_plain(arguments[1], v, f"{where}.{k}")
            for k, v in plain.items()
        }
    if dataclasses.is_dataclass(kind):
        return _dataclass_from(typing.cast(type, kind), plain, where)
    if issubclass(kind, enum.Enum):
        try:
            return kind(plain)
        except ValueError as error:
            raise RecordError(f"{where}: {error}") from error
    return _scalar_from(kind, plain, where)
