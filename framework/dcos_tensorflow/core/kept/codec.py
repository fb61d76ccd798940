"""Frozen dataclasses <-> JSON: how the core's values are kept in the state store.

Called by the rest of ``core.kept`` to write and to read, and by ``api.views`` to show. One generic
codec driven by the type hints, so that a new field needs no code
here. A field that is missing in stored JSON takes its default: an older scheduler's state stays
readable. Unknown fields are an error, because dropping a field of a newer scheduler
would lose it at the next write. The functions of a type are worked out once: every commit comes
through here (docs/decisions/0012-own-codec.md has the figures, and those of pydantic).
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

T = TypeVar("T")
Reader = Callable[[Any], Any]


class RecordError(ValueError):
    """Stored JSON does not fit the type it should hold; the text says where."""

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self._problem = problem
        self._where = where

    def inside(self, outer: str) -> RecordError:
        """Return the error as the holder of the value sees it: ``outer`` is where it stands."""
        return RecordError(self._problem, outer + self._where)


def to_plain(value: Any) -> Any:
    """Return ``value`` (dataclasses, enums, tuples, mappings) as JSON-ready builtins."""
    return json.loads(json.dumps(value, default=_one_level))


def encode(value: Any) -> bytes:
    """Return ``value`` as canonical JSON: the same value always gives the same bytes."""
    return _ENCODER.encode(value).encode()


def decode(kind: type[T], data: bytes) -> T:
    """Return the value of type ``kind`` that ``encode`` wrote. Raises RecordError."""
    try:
        plain = json.loads(data)
    except ValueError as error:
        raise RecordError(f"not JSON: {error}", kind.__name__) from error
    return typing.cast(T, from_plain(kind, plain, kind.__name__))


def from_plain(kind: Any, plain: Any, where: str) -> Any:
    """Return ``plain`` as a value of type ``kind``. Raises RecordError naming ``where``."""
    try:
        return _reader(kind)(plain)
    except RecordError as error:
        raise error.inside(where) from error


@functools.cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind))


def _one_level(value: Any) -> Any:
    """Return what ``json`` cannot write as something that it can, for it to go on inside."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, AbstractSet):
        return sorted(value)
    # Not __dict__: what a cached_property keeps there is no field. Raises TypeError for the rest.
    kind: type = type(value)
    return {name: getattr(value, name) for name in _field_names(kind)}


#: Goes through builtins in C, and asks for one level of anything else.
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), default=_one_level, check_circular=False
)


@functools.cache
def _reader(kind: Any) -> Reader:
    if kind is Any:
        return lambda plain: plain
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union_reader(arguments)
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_key_reader(arguments[0]), _reader(arguments[1]))
    if origin is not None and issubclass(origin, AbstractSet):
        items = _tuple_reader((*arguments, Ellipsis))
        return lambda plain: frozenset(items(plain))
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    if issubclass(kind, enum.Enum):
        return _enum_reader(kind)
    return _scalar_reader(kind)


def _dataclass_reader(kind: Any) -> Reader:
    hints = typing.get_type_hints(kind)
    found = dataclasses.fields(kind)
    readers = {f.name: _reader(hints[f.name]) for f in found}
    required = {
        f.name
        for f in found
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }

    def read(plain: Any) -> Any:
        _expect(dict, "an object", plain)
        if not plain.keys() <= readers.keys():
            unknown = min(plain.keys() - readers.keys())
            raise RecordError(f"unknown field {unknown!r}; written by a newer version?")
        if not required <= plain.keys():
            raise RecordError(f"field {min(required - plain.keys())!r} is missing")
        values = {}
        name = ""
        try:
            for name, item in plain.items():
                values[name] = readers[name](item)
        except RecordError as error:
            raise error.inside(f".{name}") from error
        return kind(**values)

    return read


def _mapping_reader(key_reader: Reader, reader: Reader) -> Reader:
    def read(plain: Any) -> dict[Any, Any]:
        _expect(dict, "an object", plain)
        key = ""
        try:
            return {key_reader(key := name): reader(item) for name, item in plain.items()}
        except RecordError as error:
            raise error.inside(f".{key}") from error

    return read


def _key_reader(kind: Any) -> Reader:
    """Return what reads a key, which JSON has as text."""
    if kind is not int:
        return _reader(kind)

    def read(plain: Any) -> int:
        try:
            return int(plain)
        except ValueError as error:
            raise RecordError(f"expected a number, found {plain!r}") from error

    return read


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    endless = len(arguments) == 2 and arguments[1] is Ellipsis
    readers = tuple(_reader(kind) for kind in arguments if kind is not Ellipsis)

    def read(plain: Any) -> tuple[Any, ...]:
        _expect(list, "a list", plain)
        wanted = readers * len(plain) if endless else readers
        if len(wanted) != len(plain):
            raise RecordError(f"expected {len(wanted)} items, found {len(plain)}")
        index = 0
        items = []
        try:
            for index, item in enumerate(plain):
                items.append(wanted[index](item))
        except RecordError as error:
            raise error.inside(f"[{index}]") from error
        return tuple(items)

    return read


def _union_reader(options: tuple[Any, ...]) -> Reader:
    readers = [_reader(kind) for kind in options if kind is not type(None)]
    may_be_null = type(None) in options

    def read(plain: Any) -> Any:
        if plain is None and may_be_null:
            return None
        if len(readers) == 1:
            return readers[0](plain)
        problems = []
        for reader in readers:
            try:
                return reader(plain)
            except RecordError as error:
                problems.append(str(error))
        raise RecordError("; ".join(problems))

    return read


def _enum_reader(kind: type[enum.Enum]) -> Reader:
    def read(plain: Any) -> enum.Enum:
        try:
            return kind(plain)
        except ValueError as error:
            raise RecordError(str(error)) from error

    return read


def _scalar_reader(kind: type) -> Reader:
    def read(plain: Any) -> Any:
        if type(plain) is kind:
            return plain
        if kind is float and type(plain) is int:
            return float(plain)
        raise RecordError(f"expected {kind.__name__}, found {plain!r}")

    return read


def _expect(kind: type, word: str, plain: Any) -> None:
    if not isinstance(plain, kind):
        raise RecordError(f"expected {word}, found {plain!r}")
