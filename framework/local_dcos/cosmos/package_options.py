"""A package's options as Cosmos takes them: laid over the defaults, and judged by the schema. Pure.

Called by ``rendering``, and by a program that makes packages. A schema (``config.json``, draft 4)
alone decides; here its verdict becomes the error that Cosmos' clients read. Facts:
Cosmos, JsonSchema and JsonUtil.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import jsonschema

from local_dcos.errors import CosmosError
from untrusted_input.package_options import defaults, merge

Json = dict[str, Any]

#: So much of a value is shown.
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class Violation:
    """One thing that a ``config.json`` finds wrong with options.

    ``path`` leads to the option, ``rule`` is the schema's keyword and ``rule_path`` leads to it.
    """

    path: tuple[str, ...]
    rule: str
    rule_path: tuple[str, ...]
    message: str
    given: str = ""
    suggestion: str = ""


def resolved(schema: Json | None, options: Json | None) -> Json:
    """Return the whole options.

    Raises CosmosError, JsonSchemaMismatch, which names each wrong option in message and data.
    """
    if schema is None:
        if options:
            raise _mismatch(
                [{"message": "No schema available to validate the provided options"}],
                "the package has no config.json, so it takes no options",
            )
        return {}
    whole = merge(defaults(schema), options or {})
    wrong = violations(schema, whole)
    if wrong:
        raise _mismatch([_entry(one) for one in wrong], "; ".join(map(_line, wrong)))
    return whole


def _mismatch(errors: list[Json], text: str) -> CosmosError:
    # Clients that look for Cosmos' words find them first; the dcos CLI prints the message alone.
    message = f"Options JSON failed validation: {text}"
    return CosmosError("JsonSchemaMismatch", message, {"errors": errors})


def _line(wrong: Violation) -> str:
    line = f"{_pointer(wrong.path) or '/'}: {wrong.message}"
    if wrong.suggestion:
        line += f"; did you mean {wrong.suggestion}?"
    if wrong.given:
        line += f" (given: {wrong.given})"
    # Names and values come from a file: nothing in them may start a line or colour a terminal.
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in line
    )


def _entry(wrong: Violation) -> Json:
    return {
        "level": "error",
        "schema": {"loadingURI": "#", "pointer": _pointer(wrong.rule_path)},
        "instance": {"pointer": _pointer(wrong.path)},
        "domain": "validation",
        "keyword": wrong.rule,
        "message": wrong.message,
    }


def _pointer(path: tuple[str, ...]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)


def violations(schema: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[Violation, ...]:
    """Return what ``schema`` (draft 4) finds wrong with ``options``, in the order of the paths.

    Of a value whose type is wrong nothing else is told.
    """
    errors = list(jsonschema.Draft4Validator(schema).iter_errors(options))
    wrong_type = [list(error.absolute_path) for error in errors if error.validator == "type"]
    found: list[Violation] = []
    for error in sorted(errors, key=lambda error: [str(key) for key in error.absolute_path]):
        if error.validator == "type" or list(error.absolute_path) not in wrong_type:
            found += _violations(error)
    return tuple(found)


def _violations(error: jsonschema.ValidationError) -> Iterator[Violation]:
    path = tuple(str(key) for key in error.absolute_path)
    rule = str(error.validator)
    rule_path = tuple(str(key) for key in list(error.absolute_schema_path)[:-1])
    if rule == "additionalProperties":
        known, allowed = (
            error.schema.get(keyword, {}) for keyword in ("properties", "patternProperties")
        )
        for name in error.instance:
            if name not in known and not any(re.search(each, name) for each in allowed):
                near = _nearest(path, name, known)
                yield Violation(
                    (*path, name), rule, rule_path, "there is no such option", suggestion=near
                )
    elif rule == "required":
        # One error for each name that is missing; its text begins with the name.
        for name in error.validator_value:
            if name not in error.instance and error.message.startswith(repr(name)):
                yield Violation((*path, name), rule, rule_path, "is missing")
    else:
        words = _words(rule, error.schema)
        yield Violation(path, rule, rule_path, words, _shown(error.instance))


def _nearest(path: tuple[str, ...], name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return ".".join((*path, near[0])) if near else ""


def _words(rule: str, schema: Mapping[str, Any]) -> str:
    if rule == "type":
        kinds = schema["type"]
        return f"must be of type {' or '.join(kinds) if isinstance(kinds, list) else kinds}"
    if rule == "enum":
        return f"must be one of {', '.join(map(str, schema['enum']))}"
    if rule in ("minimum", "maximum"):
        least = "at least" if rule == "minimum" else "at most"
        if schema.get(f"exclusive{rule.capitalize()}"):
            least = "above" if rule == "minimum" else "below"
        return f"must be {least} {schema[rule]:.15g}"
    return f"breaks the rule {rule} of the package"


def _shown(value: object) -> str:
    """Return a value as it stands in a file: cut when it is long, passwords of URIs masked."""
    text = re.sub(r"://[^/@\s\"]*@", "://********@", json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
