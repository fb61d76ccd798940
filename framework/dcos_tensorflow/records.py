"""Dataclasses that cost a tenth as much to define: all of ours are made here.

``dataclass`` of the standard library writes the source of six functions for each class and compiles
it: for the some 300 classes of a command that is a third of its start. Here all classes share
functions, and the source of ``__init__`` is compiled when an instance is made for the first time,
because that one has to be fast. A class has the same members, and ``dataclasses`` treats it the
same. The task runner comes with it, on any Python from 3.8.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Type, TypeVar

__all__ = ["dataclass"]

Record = TypeVar("Record")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        kind: Optional[Type[Record]] = None, *, frozen: bool = False, eq: bool = True
    ) -> Any:
        """Return the class as a dataclass, or what makes one of a class: see ``dataclasses``."""
        if kind is not None:
            return _record(kind, frozen, eq)
        return lambda kind: _record(kind, frozen, eq)


#: What stands for the default of a field whose default is made for each instance.
_UNSAID = object()


def _record(kind: Type[Record], frozen: bool, eq: bool) -> Type[Record]:
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(kind)
    fields = dataclasses.fields(made)
    shown = [field.name for field in fields if field.repr]

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        made.__init__ = _init_of(kind, fields)
        made.__init__(self, *given, **named)

    def __repr__(self: Any) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({told})"

    functions: Dict[str, Any] = {"__init__": __init__, "__repr__": __repr__}
    if eq:
        functions.update(_comparing([field.name for field in fields if field.compare], frozen))
    if frozen:
        functions.update(__setattr__=__setattr__, __delattr__=__delattr__)
    for name, function in functions.items():
        # What a class says itself stays; its own __eq__ alone leaves None for __hash__.
        if vars(made).get(name) is None:
            setattr(made, name, function)
    return kind


def _init_of(kind: Type[Any], fields: Iterable[dataclasses.Field[Any]]) -> Callable[..., None]:
    """Compile ``__init__``: one line for each field, as if it were typed by hand."""
    given, lines = ["self"], []
    known: Dict[str, Any] = {"_set": object.__setattr__, "_unsaid": _UNSAID}
    for field in fields:
        name = value = field.name
        if field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            given.append(f"{name}=_default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            given.append(f"{name}=_unsaid")
            value = f"_make_{name}() if {name} is _unsaid else {name}"
        else:
            given.append(name)
        lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(given)}):\n " + "\n ".join([*lines, "pass"]), known)
    function: Callable[..., None] = known["__init__"]
    function.__qualname__ = f"{kind.__qualname__}.__init__"
    return function


def _comparing(names: List[str], frozen: bool) -> Dict[str, Any]:
    """Return ``__eq__``, and ``__hash__``, which what can change has none of."""
    # One name alone would give its value, which need not equal itself; a tuple with it does.
    values_of: Callable[[Any], Any] = attrgetter(*names) if len(names) > 1 else _few(names)

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values_of(self) == values_of(other)

    def __hash__(self: Any) -> int:
        return hash(values_of(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _few(names: List[str]) -> Callable[[Any], Any]:
    return lambda record: tuple(getattr(record, name) for name in names)


def __setattr__(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
