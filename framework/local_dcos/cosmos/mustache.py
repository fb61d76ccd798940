"""Mustache as DC/OS' package manager renders it: every value escaped for the inside of JSON text.

Called by ``rendering`` for each package that is installed, and by a program that checks a package.
Variables, sections, inverted sections, comments and Cosmos' ``asJson``; a section of an object
looks its names up there first, one of a list is repeated. Other parts of Mustache are refused by
name, so that no template works here and fails on a cluster (facts: Cosmos,
PackageDefinitionRenderer). Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_TAG = re.compile(r"\{\{(\{)?\s*([#^/!&>=]?)\s*(.*?)\s*(?(1)\}\}\}|\}\})", re.DOTALL)
_NAME = re.compile(r"\.|[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")

#: Cosmos' own section: the name within stands for a top-level text with its quotes, else for null.
AS_JSON = "asJson"

_UNSUPPORTED = {
    ">": "partials",
    "=": "other delimiters",
}


class TemplateError(ValueError):
    """A template that cannot be rendered; the text names the line."""


@dataclass(frozen=True)
class Text:
    """Text that stays as it is."""

    text: str


@dataclass(frozen=True)
class Variable:
    """A value's place. ``name`` is its dotted path."""

    name: str
    line: int


@dataclass(frozen=True)
class Section:
    """Parts that are there when the value ``name`` is true, or, ``inverted``, when it is not."""

    name: str
    line: int
    inverted: bool
    parts: tuple[Part, ...]


Part = Text | Variable | Section


def parse_template(template: str) -> tuple[Part, ...]:
    """Return the parts of ``template``. Raises TemplateError."""
    stack: list[tuple[str, int, bool, list[Part]]] = [("", 0, False, [])]
    end = 0
    for match in _TAG.finditer(template):
        line = template.count("\n", 0, match.start()) + 1
        parts = stack[-1][3]
        if match.start() > end:
            parts.append(Text(_plain(template[end : match.start()], line)))
        end = match.end()
        kind, name = match[2], match[3]
        if kind == "!":
            continue
        if kind in _UNSUPPORTED:
            raise TemplateError(f"line {line}: {_UNSUPPORTED[kind]} are not supported: {match[0]}")
        if not _NAME.fullmatch(name):
            raise TemplateError(f"line {line}: {match[0]} is no tag")
        if kind in ("#", "^"):
            stack.append((name, line, kind == "^", []))
        elif kind == "/":
            opened, opened_line, inverted, inner = stack.pop()
            if not stack or opened != name:
                raise TemplateError(f"line {line}: {match[0]} ends a section that is not open")
            stack[-1][3].append(Section(name, opened_line, inverted, tuple(inner)))
        else:
            parts.append(Variable(name, line))
    if len(stack) > 1:
        name, line, _, _ = stack[-1]
        raise TemplateError(f"line {line}: the section {name} is never closed")
    if end < len(template):
        stack[0][3].append(Text(_plain(template[end:], template.count("\n") + 1)))
    return tuple(stack[0][3])


def names_in(parts: tuple[Part, ...]) -> Iterator[Variable | Section]:
    """Yield every place in ``parts`` where a value is asked for, sections before their inside."""
    for part in parts:
        if isinstance(part, Text):
            continue
        yield part
        if isinstance(part, Section):
            yield from names_in(part.parts)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return ``template`` with ``values`` in it. Raises TemplateError.

    A section follows where its value is missing, false, empty text or an empty list; a zero is
    true. A variable without a value would be empty text on a cluster, and go unnoticed: here it is
    an error. Values are put in once: tags inside them stay as they are.
    """
    return "".join(_render(parse_template(template), (values,)))


#: What names are looked up in: the values, then whatever the sections around opened.
_Scopes = tuple[Any, ...]


def _render(parts: tuple[Part, ...], scopes: _Scopes) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Variable):
            yield _escaped(_found(scopes, part.name), part)
        elif part.name == AS_JSON:
            yield _as_json(part, scopes)
        else:
            for inner in _opened(part, scopes):
                yield from _render(part.parts, inner)


def _opened(section: Section, scopes: _Scopes) -> Iterator[_Scopes]:
    """Yield the scopes that the inside of ``section`` is rendered with, one for each time."""
    value = _found(scopes, section.name)
    there = value not in (None, "", []) and value is not False
    if section.inverted:
        if not there:
            yield scopes
    elif isinstance(value, list):
        yield from ((*scopes, item) for item in value)
    elif there:
        yield (*scopes, value) if isinstance(value, Mapping) else scopes


def _as_json(section: Section, scopes: _Scopes) -> str:
    name = "".join(part.text for part in section.parts if isinstance(part, Text)).strip()
    value = scopes[0].get(name)
    return json.dumps(value) if isinstance(value, str) else "null"


def _found(scopes: _Scopes, name: str) -> Any:
    """Return the value of a name in the innermost scope that has its first part."""
    if name == ".":
        return scopes[-1]
    first = name.partition(".")[0]
    for scope in reversed(scopes):
        if isinstance(scope, Mapping) and first in scope:
            return lookup(scope, name)
    return None


def lookup(values: Mapping[str, Any], name: str) -> Any:
    """Return the value at the dotted path ``name``, None when there is none."""
    value: Any = values
    for key in name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def _escaped(value: Any, place: Variable) -> str:
    if value is None:
        raise TemplateError(f"line {place.line}: {place.name} has no value")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)[1:-1]
    if isinstance(value, int | float):
        whole = float(value).is_integer() and abs(value) < 2**63
        return str(int(value)) if whole else repr(value)
    raise TemplateError(
        f"line {place.line}: {place.name} is a structure; a template can take single values only"
    )


def _plain(text: str, line: int) -> str:
    if "{{" in text:
        raise TemplateError(f"line {line}: a tag that is not closed")
    return text
