"""Package and options to a Marathon app, step by step as DC/OS' package manager Cosmos does it.

Called by ``package render`` and by the local DC/OS. Options are judged by the package's
``config.json`` alone, as on a cluster; what only the scheduler can judge, it judges when it starts.
Facts: Cosmos, PackageDefinitionRenderer and JsonUtil.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import jsonschema

from dcos_tensorflow.options import OptionProblem, OptionsError
from dcos_tensorflow.options.document import shown
from dcos_tensorflow.package.definition import Package
from dcos_tensorflow.package.mustache import TemplateError, render


class RenderError(Exception):
    """A package whose template makes no Marathon app of good options: the package is wrong."""


def marathon_app(
    package: Package, options: Mapping[str, Any], *, app_id: str = ""
) -> dict[str, Any]:
    """Return the Marathon app of ``package`` with the user's ``options``.

    ``app_id`` takes the place of the template's id and of nothing else. Raises OptionsError naming
    every wrong option's path, RenderError when the package itself is at fault.
    """
    merged = effective_options(package, options)
    try:
        text = render(package.template, {**merged, "resource": package.resource})
    except TemplateError as error:
        raise RenderError(f"{package.name}: marathon.json.mustache: {error}") from error
    try:
        app = json.loads(text)
    except ValueError as error:
        raise RenderError(f"{package.name}: the template renders to no JSON: {error}") from error
    if not isinstance(app, dict):
        raise RenderError(f"{package.name}: the template renders to no JSON object")
    labels = app.get("labels", {})
    if not all(isinstance(value, str) for value in labels.values()):
        raise RenderError(f"{package.name}: labels must be text")
    return {**app, "id": app_id} if app_id else app


def effective_options(package: Package, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` laid over the package's defaults. Raises OptionsError."""
    merged = merge(defaults(package.config), options)
    problems = [*validate(package.config, merged)]
    if problems:
        raise OptionsError(problems)
    return merged


def defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that a ``config.json`` gives; a group's own win over those inside it."""
    found: dict[str, Any] = {}
    for name, below in schema.get("properties", {}).items():
        if "default" in below:
            found[name] = below["default"]
        elif "properties" in below:
            found[name] = defaults(below)
    return found


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``over`` laid over ``under``: objects are merged, everything else is replaced."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[name] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged


def validate(schema: Mapping[str, Any], options: Mapping[str, Any]) -> Iterable[OptionProblem]:
    """Yield what ``schema`` (draft 4) finds wrong with ``options``, each with its dotted path."""
    errors = list(jsonschema.Draft4Validator(schema).iter_errors(options))
    wrong_type = [list(error.absolute_path) for error in errors if error.validator == "type"]
    for error in sorted(errors, key=lambda error: [str(key) for key in error.absolute_path]):
        path = [str(key) for key in error.absolute_path]
        if error.validator == "additionalProperties":
            known = error.schema.get("properties", {})
            yield from (_unknown(path, name, known) for name in error.instance if name not in known)
        elif error.validator == "required":
            # One error for each name that is missing; the name itself is only in the message.
            name = error.message.split("'")[1]
            yield OptionProblem(".".join((*path, name)), "is missing")
        elif error.validator == "type" or list(error.absolute_path) not in wrong_type:
            yield OptionProblem(
                ".".join(path), _words(error.validator, error.schema), shown(error.instance)
            )


def _unknown(path: list[str], name: str, known: Iterable[str]) -> OptionProblem:
    near = get_close_matches(name, list(known), n=1)
    suggestion = ".".join((*path, near[0])) if near else ""
    return OptionProblem(".".join((*path, name)), "there is no such option", suggestion=suggestion)


def _words(rule: str, schema: Mapping[str, Any]) -> str:
    if rule == "type":
        return f"must be of type {schema['type']}"
    if rule == "enum":
        return f"must be one of {', '.join(map(str, schema['enum']))}"
    if rule in ("minimum", "maximum"):
        least = "at least" if rule == "minimum" else "at most"
        if schema.get(f"exclusive{rule.capitalize()}"):
            least = "above" if rule == "minimum" else "below"
        return f"must be {least} {schema[rule]:.15g}"
    return f"breaks the rule {rule} of the package"
