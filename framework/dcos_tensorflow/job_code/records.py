"""Frozen dataclasses that cost a tenth as much to define.

``dataclass(frozen=True)`` of the standard library writes the source of six functions for each class
and compiles it, at every start of every task: for all of the task runner's some 30 ms of CPU time.
Here all classes share functions that look their fields up. What a class has, and what
``dataclasses`` can do with it, is the same.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Callable, Dict, Type, TypeVar

__all__ = ["dataclass"]

Record = TypeVar("Record")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool) -> Callable[[Type[Record]], Type[Record]]:
        """Return what makes a class a frozen dataclass; ``frozen`` is for who reads the class."""
        assert frozen
        return _record


def _record(kind: Type[Record]) -> Type[Record]:
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(kind)
    fields = dataclasses.fields(made)
    names = tuple(field.name for field in fields)
    wanted, missing = frozenset(names), dataclasses.MISSING
    defaults = {field.name: field.default for field in fields if field.default is not missing}
    factories = {
        field.name: field.default_factory
        for field in fields
        if field.default_factory is not missing
    }
    values_of: Callable[[Any], Any] = attrgetter(*names) if names else lambda record: ()

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        values: Dict[str, Any] = {**defaults, **dict(zip(names, given)), **named}
        for name, make in factories.items():
            if name not in values:
                values[name] = make()
        twice = named.keys() & names[: len(given)]
        if values.keys() != wanted or len(given) > len(names) or twice:
            raise TypeError(f"{kind.__name__}({', '.join(names)}) got {given!r} and {named!r}")
        self.__dict__.update(values)

    def __eq__(self: Any, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(values_of(self) == values_of(other))

    def __hash__(self: Any) -> int:
        return hash(values_of(self))

    def __repr__(self: Any) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{kind.__qualname__}({told})"

    for function in (__init__, __eq__, __hash__, __repr__, __setattr__, __delattr__):
        setattr(made, function.__name__, function)
    return kind


def __setattr__(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
