"""Renders a package's app template as Cosmos does, but refuses what Cosmos would leave blank. Pure.

``rendering`` calls it. The rules (PackageDefinitionRenderer.scala): values are escaped as JSON
text without its quotes, ``{{x}}`` and ``{{{x}}}`` alike; whole numbers have no decimal point;
``{{#x}}`` follows where ``x`` is missing, false or empty text; ``{{#asJson}}name{{/asJson}}`` gives
a top-level text with its quotes, else null. A variable that is not there would be empty text on a
cluster, mostly unnoticed: here it is an error, and so is a list or an object in the place of text.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pystache.context import ContextStack, KeyNotFoundError
from pystache.parser import ParsingError
from pystache.renderengine import RenderEngine

Json = dict[str, Any]


_SECTION_TAG = re.compile(r"\{\{\s*([#^/])\s*(.*?)\s*\}\}")


class TemplateError(Exception):
    """A template cannot be rendered. The text says why and names the variable."""


class _Missing:
    """Stands for a name without a value: false in a section, an error anywhere else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __bool__(self) -> bool:
        return False


def render(template: str, values: Json) -> str:
    """Return the template with ``values`` in it.

    Raises:
        TemplateError: a tag is not closed, a variable has no value or none that is text.
    """
    engine = RenderEngine(
        literal=str,
        escape=str,
        resolve_context=_resolve,
        resolve_partial=_refuse_partial,
        to_str=_text,
    )
    _check_sections(template)
    prepared = {name: _prepared(value) for name, value in values.items()}
    prepared["asJson"] = lambda name: _as_json(values.get(str(name).strip()))
    try:
        return str(engine.render(template, ContextStack(prepared)))
    except ParsingError as error:
        raise TemplateError(f"the template cannot be read: {error}") from error


def _check_sections(template: str) -> None:
    # pystache takes a section that is never closed, and drops what stands in it.
    open_sections: list[str] = []
    for kind, name in _SECTION_TAG.findall(template):
        if kind != "/":
            open_sections.append(name)
        elif not open_sections or open_sections.pop() != name:
            raise TemplateError(f"{{{{/{name}}}}} closes no section")
    if open_sections:
        raise TemplateError(f"the section {{{{#{open_sections[-1]}}}}} is never closed")


def _prepared(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _prepared(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_prepared(one) for one in value]
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)[1:-1]
    if isinstance(value, bool) or value is None:
        return value
    # As text a zero is true in a section, as with Cosmos.
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _resolve(stack: Any, name: str) -> Any:
    try:
        found = stack.get(name)
    except KeyNotFoundError:
        return _Missing(name)
    return _Missing(name) if found is None else found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Missing):
        raise TemplateError(f"the variable {{{{{value.name}}}}} has no value")
    kind = "a list" if isinstance(value, list) else "an object"
    raise TemplateError(f"{kind} stands where text is wanted: {json.dumps(value)[:80]}")


def _as_json(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else "null"


def _refuse_partial(name: str) -> str:
    raise TemplateError(f"partials are not possible in a package: {{{{>{name}}}}}")
