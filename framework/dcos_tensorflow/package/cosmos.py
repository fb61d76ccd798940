"""Package and options to a Marathon app, step by step as DC/OS' package manager Cosmos does it.

Called by ``package render`` and by the local DC/OS. Options are judged by the package's
``config.json`` alone, as on a cluster; what only the scheduler can judge, it judges when it starts.
Facts: Cosmos, PackageDefinitionRenderer, JsonSchema and JsonUtil. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import jsonschema

from dcos_tensorflow.options import OptionProblem, OptionsError
from dcos_tensorflow.options.document import COMMENT, shown
from dcos_tensorflow.package.definition import Package
from dcos_tensorflow.package.mustache import TemplateError, render
from dcos_tensorflow.plugin.update_check import defaults, merge
from dcos_tensorflow.records import dataclass


class RenderError(Exception):
    """A package whose template makes no Marathon app of good options: the package is wrong.

    ``kind`` is what Cosmos calls that.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


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


def marathon_app(
    package: Package, options: Mapping[str, Any], *, app_id: str = ""
) -> dict[str, Any]:
    """Return the Marathon app of ``package`` with the user's ``options``.

    ``app_id`` takes the place of the template's id and of nothing else. Raises OptionsError naming
    every wrong option's path, RenderError when the package itself is at fault.
    """
    merged = effective_options(package, options)
    try:
        app = app_of(package.template, merged, package.resource)
    except RenderError as error:
        raise RenderError(error.kind, f"{package.name}: {error}") from error
    return {**app, "id": app_id} if app_id else app


def app_of(
    template: str, options: Mapping[str, Any], resource: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the Marathon app of a template with its effective options. Raises RenderError."""
    try:
        text = render(template, {**options, "resource": resource})
    except TemplateError as error:
        raise RenderError(
            "MarathonTemplateMustBeValid", f"marathon.json.mustache: {error}"
        ) from error
    try:
        app = json.loads(text)
    except ValueError as error:
        raise RenderError(
            "RenderedTemplateNotJson", f"the template renders to no JSON: {error}"
        ) from error
    if not isinstance(app, dict):
        raise RenderError("RenderedTemplateNotJsonObject", "the template renders to no JSON object")
    labels = app.get("labels", {})
    if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
        raise RenderError("OptionsNotAllowed", "labels must be text")
    return app


def effective_options(package: Package, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` laid over the package's defaults. Raises OptionsError."""
    merged = merge(defaults(package.config), options)
    problems = [
        OptionProblem(".".join(wrong.path), wrong.message, wrong.given, suggestion=wrong.suggestion)
        for wrong in violations(package.config, merged)
    ]
    if problems:
        raise OptionsError(problems)
    return merged


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
        known = error.schema.get("properties", {})
        for name in error.instance:
            if name not in known and not name.startswith(COMMENT):
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
        yield Violation(path, rule, rule_path, words, shown(error.instance))


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
