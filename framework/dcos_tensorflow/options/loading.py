"""Options files to Options, or one error that lists everything wrong with them.

The door of this room for the CLI and the scheduler. It reads the one file it is given.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.options import catalogue, cross_checks, default_tasks, document
from dcos_tensorflow.options.cross_checks import findings
from dcos_tensorflow.options.errors import OptionProblem, OptionsError, is_secret
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.sections.role_models import role_options
from dcos_tensorflow.options.sections.section import GROUP_OF_ROLE
from dcos_tensorflow.options.sections.storage import KEY_REFUSED, STORAGE_GROUPS, looks_like_key
from dcos_tensorflow.options.service import service_spec

_Path = tuple[str, ...]

#: pydantic's own variable.
_NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
_ONCE = threading.Lock()

#: A file with more wrong options than this is no options file; the rest is not looked into.
_MOST_PROBLEMS = 200


def _work_out_models() -> None:
    """Work out the option models, once, and without plugins of pydantic's.

    Plugins are other people's. To find that there is none, pydantic reads what every installed
    package says of itself, which takes longer than the models.
    """
    # Threads of a program may begin jobs at the same time.
    with _ONCE:
        if Options.__pydantic_complete__:
            return
        before = os.environ.get(_NO_PLUGINS)
        os.environ[_NO_PLUGINS] = "__all__"
        try:
            Options.model_rebuild()
        finally:
            # No child process is to have it.
            del os.environ[_NO_PLUGINS]
            if before is not None:
                os.environ[_NO_PLUGINS] = before


def load(
    source: Path | Mapping[str, Any] | str,
    *,
    overrides: Sequence[str] = (),
    published_defaults: bool = False,
    folder: Path | None = None,
) -> Options:
    """Return the validated options of a file, a mapping or JSON text.

    ``overrides`` are texts ``path=value`` that win over ``source``: the value is read as JSON where
    it is JSON and the option is not text, else taken as it is. With ``published_defaults`` tasks
    come of sections that are not named, too, as in the published package (``default_tasks``).
    ``folder`` is where relative paths start, in place of the file's own. Raises OptionsError with
    every problem, in the order of the file.
    """
    _work_out_models()
    values, problems, name, base_directory = _given_values(source, overrides, published_defaults)
    options, found = _validate(values)
    problems += found
    if options is None or problems:
        raise OptionsError(_in_order(problems, values), name)
    too_large = tuple(_too_large(options))
    if too_large:
        raise OptionsError(too_large, name)
    options._base_directory = folder or base_directory
    return options


def given_part(
    source: Path | Mapping[str, Any] | str,
    overrides: Sequence[str],
    *,
    published_defaults: bool = False,
) -> dict[str, Any]:
    """Return a part of options as it is given, to be laid over others; it is not checked by itself.

    The rest is as in ``load``. Raises OptionsError for what is no options document at all.
    """
    values, problems, name, _ = _given_values(source, overrides, published_defaults)
    if problems:
        raise OptionsError(_in_order(problems, values), name)
    return values


def _given_values(
    source: Path | Mapping[str, Any] | str, overrides: Sequence[str], published_defaults: bool
) -> tuple[dict[str, Any], list[OptionProblem], str, Path | None]:
    """Return the values, what is wrong with how they are given, and where a file of them lies."""
    name, base_directory = "", None
    if isinstance(source, Path):
        name, base_directory = str(source), source.absolute().parent
        given: Mapping[str, Any] = document.parse(document.read_file(source), name)
    elif isinstance(source, str):
        given = document.parse(source)
    else:
        given = source
    values = _plain(given)
    problems = [*_duplicates(given), *_override(values, overrides)]
    if published_defaults:
        values = default_tasks.with_published_defaults(values)
    return values, problems, name, base_directory


def _too_large(options: Options) -> Iterator[OptionProblem]:
    """Yield what no process could be passed; asked when all else is right."""

    def variable(role: TaskRole, name: str) -> str:
        group = GROUP_OF_ROLE[role]
        own = name in role_options(options, group).env
        return f"{group if own else 'service'}.env.{name}"

    return cross_checks.problems(service_spec(options), GROUP_OF_ROLE, variable)


def _plain(value: Any) -> Any:
    """Return a copy in plain dicts and lists, which the overrides may change, without comments."""
    if isinstance(value, Mapping):
        return {
            str(key): _plain(part)
            for key, part in value.items()
            if not str(key).startswith(document.COMMENT)
        }
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return deepcopy(value)


def _duplicates(given: Any, below: _Path = ()) -> list[OptionProblem]:
    return [
        OptionProblem(".".join((*path, key)), "stands there more than once", "", "once")
        for path, value in document.walk(given, below)
        if isinstance(value, document.JsonObject)
        for key in value.duplicates
        if not key.startswith(document.COMMENT)
    ]


def _override(values: dict[str, Any], overrides: Sequence[str]) -> list[OptionProblem]:
    problems: list[OptionProblem] = []
    for override in overrides:
        name, equals, text = override.partition("=")
        path = tuple(name.strip().split("."))
        if not equals or not all(path):
            problems.append(
                OptionProblem("", "an override must be path=value", name, "e.g. worker.count=2")
            )
            continue
        value = _override_value(path, text)
        problems += _duplicates(value, path)
        problem = _set(values, path, _plain(value))
        if problem is not None:
            problems.append(problem)
    return problems


def _override_value(path: _Path, text: str) -> Any:
    option = catalogue.find(path)
    try:
        value = document.json_value(text)
    except ValueError:
        return text
    is_text = option is not None and (
        option.is_text or (option.is_environment and len(path) > len(option.path))
    )
    return text if is_text and not isinstance(value, str) else value


def _set(values: dict[str, Any], path: _Path, value: Any) -> OptionProblem | None:
    option = catalogue.find(path)
    if option is not None and len(path) > len(option.path) and not option.has_names:
        return OptionProblem(".".join(path), f"{option.name} has no parts that can be set")
    into = values
    for depth, key in enumerate(path[:-1], 1):
        below = into.setdefault(key, {})
        if isinstance(below, str) and option is not None and depth == len(option.path):
            # An environment or another object that is written as JSON text.
            try:
                below = into[key] = _plain(document.json_value(below or "{}"))
            except ValueError:
                return None
        if not isinstance(below, dict):
            # What stands there is wrong in itself, and is told as such.
            return None
        into = below
    into[path[-1]] = value
    return None


def _validate(values: Mapping[str, Any]) -> tuple[Options | None, list[OptionProblem]]:
    """Return the options, and what is wrong with them.

    What is wrong in itself is left out for a second look, so that the rules that span several
    options are checked on the rest at the same time.
    """
    unnamed = list(_flawed_names(values))
    if unnamed:
        # A reader of such a name cannot even say which it is.
        return None, unnamed
    flaws = dict(_flaws(values))
    problems = list(flaws.values())
    rest = _plain(values)
    wrong = list(flaws)
    for path in wrong:
        _remove(rest, path)
    if flaws:
        # In a list it stands still, and no error could say its half characters.
        rest = _whole(rest)
    try:
        options = Options.model_validate(rest)
    except ValidationError as error:
        details = error.errors(include_url=False)
    else:
        options = default_tasks.only_asked(options)
        return options, problems + _cross_problems(options, values, wrong)
    problems += [_problem(detail) for detail in _first(details, values)]
    found = [tuple(str(part) for part in detail["loc"]) for detail in details]
    for path in found:
        _remove(rest, path)
    try:
        options = Options.model_validate(rest)
    except ValidationError:
        return None, problems
    options = default_tasks.only_asked(options)
    return options, problems + _cross_problems(options, values, wrong + found)


def _whole(value: Any) -> Any:
    """Return a copy with a mark for each half of a character."""
    if isinstance(value, Mapping):
        return {key: _whole(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _flawed_names(values: Mapping[str, Any]) -> Iterator[OptionProblem]:
    for path, _ in document.walk(values):
        flaw = document.text_flaw(path[-1]) if path else ""
        if flaw:
            yield OptionProblem(".".join(path[:-1]), f"has something whose name {flaw}")


def _flaws(values: Mapping[str, Any]) -> Iterator[tuple[_Path, OptionProblem]]:
    for path, value in document.walk(values):
        flaw = document.text_flaw(value) if isinstance(value, str) else ""
        if flaw:
            yield path, OptionProblem(".".join(path), flaw)
        elif isinstance(value, str) and path[0] in STORAGE_GROUPS and looks_like_key(value):
            yield path, OptionProblem(".".join(path), KEY_REFUSED, "(hidden)")


def _first(details: list[ErrorDetails], values: Mapping[str, Any]) -> list[ErrorDetails]:
    """Return as many as a person reads, the first of the file first."""
    places = {path: place for place, (path, _) in enumerate(document.walk(values))}
    in_order = sorted(
        details, key=lambda detail: places.get(tuple(map(str, detail["loc"])), len(places))
    )
    return in_order[:_MOST_PROBLEMS]


def _remove(values: dict[str, Any], path: _Path) -> None:
    """Take what is wrong out of ``values``: a variable of an environment, or a whole option."""
    option = catalogue.find(path)
    if option is not None and not isinstance(document.at(values, option.path), dict):
        path = option.path
    into = document.at(values, path[:-1])
    if isinstance(into, dict):
        into.pop(path[-1], None)


def _cross_problems(
    options: Options, values: Mapping[str, Any], wrong: Iterable[_Path]
) -> list[OptionProblem]:
    names = {".".join(path) for path in wrong}
    problems = []
    for finding in findings(options):
        if any(_touches(name, looked_at) for name in names for looked_at in finding.looked_at):
            continue
        given = finding.given
        if given is None:
            given = _given(tuple(finding.path.split(".")), values)
        problems.append(OptionProblem(finding.path, finding.message, given, finding.allowed))
    return problems


def _touches(wrong: str, looked_at: str) -> bool:
    return (
        wrong == looked_at or looked_at.startswith(wrong + ".") or wrong.startswith(looked_at + ".")
    )


def _given(path: _Path, values: Mapping[str, Any]) -> str:
    """Return what the file says at ``path``, or which default stands in for it."""
    option = catalogue.find(path)
    value = document.at(values, path)
    if value is not document.MISSING:
        return document.shown(value) if option is None else _shown(value, path, option)
    if option is None or "default" not in option.schema:
        return "nothing"
    if path[0] in default_tasks.PUBLISHED_COUNTS and path[1:] == ("count",):
        return default_tasks.given_count(path[0], values)
    return f"{document.shown(option.schema['default'])}, the default"


def _shown(value: object, path: _Path, option: catalogue.Option) -> str:
    """Return ``value`` as it may be shown: nothing of a secret, nothing of a whole environment."""
    in_environment = option.is_environment and (
        isinstance(value, str) if path == option.path else is_secret(path[-1])
    )
    hidden = option.secret or option.hidden_when_wrong or in_environment
    return "(hidden)" if hidden else document.shown(value)


def _problem(detail: ErrorDetails) -> OptionProblem:
    path = tuple(str(part) for part in detail["loc"])
    name, value = ".".join(path), detail["input"]
    option = catalogue.find(path)
    if option is not None and option.parts and len(path) > len(option.path):
        return _part_problem(detail, option)
    if detail["type"] == "extra_forbidden":
        return _unknown(path)
    if option is None:
        names = ", ".join(catalogue.groups().get(path, ()))
        return OptionProblem(
            name,
            f"must be an object, not {document.kind_of(value)}",
            document.shown(value),
            f"an object with any of {names}",
        )
    given = _shown(value, path, option)
    if len(path) > len(option.path) and detail["type"] != "option":
        message = f"must be text, not {document.kind_of(value)}"
        allowed = "text" if option.is_environment else option.allowed
        meant = "" if given == "(hidden)" else _as_text(value, option)
        return OptionProblem(name, message, given, allowed, meant)
    context = detail.get("ctx", {})
    if detail["type"] == "option":
        return OptionProblem(name, context["message"], given, option.allowed, context["suggestion"])
    message, suggestion = _mismatch(detail, option)
    return OptionProblem(name, message, given, option.allowed, suggestion)


def _part_problem(detail: ErrorDetails, option: catalogue.Option) -> OptionProblem:
    """Return what is wrong within a list of objects, at the path of the part."""
    path, value = tuple(str(part) for part in detail["loc"]), detail["input"]
    name, below = ".".join(path), path[len(option.path) :]
    wanted = ", ".join(option.parts)
    if detail["type"] == "option":
        context = detail.get("ctx", {})
        # What stands where a secret's place belongs may be the secret itself.
        hidden = option.hidden_when_wrong
        shown = "(hidden)" if hidden else document.shown(value)
        return OptionProblem(name, context["message"], shown, "", context["suggestion"])
    if detail["type"] == "missing":
        return OptionProblem(name, "is missing", "", f"an object with {wanted}")
    if detail["type"] == "extra_forbidden":
        near = get_close_matches(below[-1], option.parts, n=1)
        return OptionProblem(name, "unknown option", "", wanted, near[0] if near else "")
    if len(below) == 1:
        message = f"must be an object with {wanted}, not {document.kind_of(value)}"
        return OptionProblem(name, message)
    allowed = catalogue.allowed_by(option.part(below[1]))
    if allowed == "text":
        return OptionProblem(name, f"must be text, not {document.kind_of(value)}")
    message = "is not a value that it can have"
    return OptionProblem(name, message, document.shown(value), allowed)


def _unknown(path: _Path) -> OptionProblem:
    names = catalogue.groups().get(path[:-1], ())
    nearest = catalogue.nearest(path)
    # With a near name at hand the whole list would only hide it.
    return OptionProblem(
        ".".join(path), "unknown option", "", "" if nearest else ", ".join(names), nearest
    )


def _mismatch(detail: ErrorDetails, option: catalogue.Option) -> tuple[str, str]:
    """Return what is wrong with a value of the wrong type or size, and what was meant."""
    value, kind = detail["input"], detail["type"]
    if kind == "literal_error":
        choices = option.schema["enum"]
        if not isinstance(value, str):
            return f"must be text, not {document.kind_of(value)}", ""
        same = [choice for choice in choices if choice.lower() == value.lower().replace("-", "_")]
        near = same or get_close_matches(value, choices, n=1)
        return "is not a value that it can have", near[0] if near else ""
    if kind in ("greater_than_equal", "greater_than"):
        return "is too small", ""
    if kind in ("less_than_equal", "less_than"):
        return "is too large", ""
    if kind == "finite_number":
        return "is not a finite number", ""
    wanted = {
        "string": "text",
        "boolean": "true or false",
        "integer": "a whole number",
        "number": "a number",
    }.get(option.schema.get("type", ""), option.allowed)
    if isinstance(value, float) and wanted == "a whole number":
        return "must be a whole number", ""
    return f"must be {wanted}, not {document.kind_of(value)}", _as_text(value, option)


def _as_text(value: object, option: catalogue.Option) -> str:
    """Return ``value`` written in the type that the option has, or '' when it cannot be."""
    if option.secret:
        return ""
    if isinstance(value, str):
        try:
            meant = json.loads(value.strip().lower())
        except (ValueError, RecursionError):
            return ""
        kinds = {"integer": int, "number": int | float, "boolean": bool}
        wanted = kinds.get(option.schema.get("type", ""))
        fits = wanted is not None and isinstance(meant, wanted)
        if fits and isinstance(meant, bool) == (option.schema.get("type") == "boolean"):
            return json.dumps(meant)
        return ""
    if isinstance(value, bool | int | float) and option.schema.get("type", "string") == "string":
        return f'"{json.dumps(value)}"'
    return ""


def _in_order(problems: list[OptionProblem], values: Mapping[str, Any]) -> list[OptionProblem]:
    """Return ``problems`` in the order of the file; what is not in it follows, in ours."""
    in_file = {".".join(path): place for place, (path, _) in enumerate(document.walk(values))}
    in_models = {option.name: place for place, option in enumerate(catalogue.options().values())}

    def place(problem: OptionProblem) -> tuple[int, int]:
        if problem.path in in_file:
            return (0, in_file[problem.path])
        return (1, in_models.get(problem.path, len(in_models)))

    return sorted(problems, key=place)
