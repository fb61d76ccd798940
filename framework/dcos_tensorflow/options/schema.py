"""The schemas of an options file, and the other generated files: tables of docs/options.md, too.

All are made from the models. ``python -m dcos_tensorflow.options.schema`` writes them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dcos_tensorflow.options import catalogue
from dcos_tensorflow.options.document import COMMENT
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.sections.images import DEFAULT_TENSORFLOW
from dcos_tensorflow.options.sections.role_models import RoleSection, described

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

#: What the published package's schema requires, as far as it still is: the DC/OS UI marks these.
_UNIVERSE_REQUIRED = {
    ("service",): ("name", "user"),
    ("parameter_server",): ("count", "cpus", "mem", "port", "disk", "disk_type"),
    ("worker",): ("count", "cpus", "mem", "disk", "disk_type"),
    ("gpu_worker",): ("count", "gpus", "cpus", "mem", "disk", "disk_type"),
    ("tensorboard",): ("port", "cpus", "mem"),
}

#: Where the package says more than the models: it brings images, so it can choose one of them.
_UNIVERSE_DEFAULTS = {("service", "tensorflow_version"): DEFAULT_TENSORFLOW}


#: In each group, comments beside the options.
_COMMENTS: Mapping[str, Any] = {"patternProperties": {f"^{COMMENT}": {}}}
#: What stands above it in the page is written by hand.
MARK = "<!-- From here on written by python -m dcos_tensorflow.options.schema, from the models. -->"

_TABLE_HEAD = "| option | default | allowed | meaning |\n|---|---|---|---|\n"

_ROLES_HEAD = """\
## Roles

The kinds of tasks:

{roles}

An option is written with its role, as in `worker.count`. Under each role stands its default, which
may be `none`; a row is not about the roles that have `-` in it.
"""
#: What a task and its role are called where all roles are meant.
_ANY_ROLE = {
    "one": "task",
    "many": "tasks of the role",
    "whose": "tasks of the role",
    "article": "a",
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an options file, without references."""
    head = {
        "$schema": _DIALECT,
        "title": "Options of dcos-tensorflow",
        "description": "One service: the job, its tasks and the rules it runs by.",
    }
    body = _plain_group(catalogue.resolved_schema())
    return {**head, **{key: value for key, value in body.items() if key not in head}}


def universe_config() -> dict[str, Any]:
    """Return ``config.json`` of the DC/OS package: JSON Schema draft 4."""
    return _universe_group(catalogue.resolved_schema(), ())


def generated_files() -> dict[str, str | Callable[[str], str]]:
    """Return the text of each generated file by its path in the repository.

    Of a page that is written by hand in part: what makes of it the page with the rest.
    """
    return {
        "config-schemas/options.schema.json": _text(json_schema()),
        "universe/config.json": _text(universe_config()),
        "docs/options.md": with_tables,
    }


def _text(value: Mapping[str, Any]) -> str:
    # Universe's validator wants ASCII without \u escapes: descriptions hold nothing else.
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _plain_group(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group without the titles and empty defaults that only the models have."""
    if "properties" not in schema:
        return dict(schema)
    return {
        "type": "object",
        **({"description": schema["description"]} if "description" in schema else {}),
        "properties": {name: _plain_group(below) for name, below in schema["properties"].items()},
        **_COMMENTS,
        "additionalProperties": False,
    }


def _universe_group(schema: Mapping[str, Any], path: catalogue.Path) -> dict[str, Any]:
    if "properties" not in schema:
        default = {"default": _UNIVERSE_DEFAULTS[path]} if path in _UNIVERSE_DEFAULTS else {}
        return _universe_option({**schema, **default})
    group: dict[str, Any] = {"type": "object"}
    if path:
        group["description"] = schema["description"]
    group["properties"] = {
        name: _universe_group(below, (*path, name)) for name, below in schema["properties"].items()
    }
    if path in _UNIVERSE_REQUIRED:
        group["required"] = list(_UNIVERSE_REQUIRED[path])
    group.update(_COMMENTS)
    group["additionalProperties"] = False
    return group


def _universe_option(schema: Mapping[str, Any]) -> dict[str, Any]:
    option = dict(schema)
    if "anyOf" in option:
        # A package template can pass text only: structures are written as JSON text there.
        del option["anyOf"]
        option["type"] = "string"
        if not isinstance(schema["default"], str):
            option["default"] = json.dumps(schema["default"])
            option["description"] += " Written as JSON text."
    if "exclusiveMinimum" in option:
        option["minimum"], option["exclusiveMinimum"] = option["exclusiveMinimum"], True
    order = ("title", "description", "type", "enum", "default")
    return {
        **{key: option[key] for key in order if key in option},
        **{key: option[key] for key in option if key not in order},
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the files made from the option models, or check them. Return the exit code."""
    return write_or_check("dcos_tensorflow.options.schema", generated_files(), arguments)


def write_or_check(
    module: str, files: Mapping[str, str | Callable[[str], str]], arguments: list[str] | None
) -> int:
    """Be the command line of ``module``, which generates ``files``.

    Each is its text by its path, or what makes a new text of the present one. Paths are below the
    repository. Return the exit code: 1 when ``--check`` finds a difference.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(__file__).resolve().parents[3],
        help="the repository (default: the one this file lies in)",
    )
    parsed = parser.parse_args(arguments)
    root: Path = parsed.root
    if not (root / "setup.cfg").is_file():
        parser.error(f"{root} is no checkout of dcos-tensorflow: give it with --root")
    stale = []
    for name, made in files.items():
        path = root / name
        present = path.read_text(encoding="utf-8") if path.is_file() else ""
        text = made if isinstance(made, str) else made(present)
        if present == text:
            continue
        stale.append(name)
        if not parsed.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    if parsed.check and stale:
        print(f"out of date: {', '.join(stale)}; run python -m {module}", file=sys.stderr)
        return 1
    return 0


def with_tables(page: str) -> str:
    """Return the page, Markdown, with what follows the mark written anew."""
    parts = [f"{page.partition(MARK)[0]}{MARK}\n"]
    roles = {
        name: field.annotation
        for name, field in Options.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, RoleSection)
    }
    for section in catalogue.groups()[()]:
        if section in roles:
            if section == next(iter(roles)):
                parts.append(_roles_table(roles))
            continue
        description = catalogue.resolved_schema()["properties"][section]["description"]
        rows = [_row(option) for path, option in catalogue.options().items() if path[0] == section]
        parts.append(f"## {section}\n\n{description}\n\n{_TABLE_HEAD}{''.join(rows)}")
    return "\n".join(parts)


def _roles_table(roles: dict[str, type[RoleSection]]) -> str:
    """Return the options of all roles in one table: a column for the default of each role."""
    kinds: dict[tuple[str, str, str], dict[str, catalogue.Option]] = {}
    for role, model in roles.items():
        for name, field in model.model_fields.items():
            option = catalogue.options()[role, name]
            meaning = field.description or option.schema["description"]
            kinds.setdefault((name, option.allowed, meaning), {})[role] = option
    # Rows of one name stand together, in the order in which the names are first met.
    places = list(dict.fromkeys(name for name, _, _ in kinds))
    rows = [("option", *roles, "allowed", "meaning"), ("---",) * (len(roles) + 3)]
    for kind in sorted(kinds, key=lambda kind: places.index(kind[0])):
        name, allowed, meaning = kind
        found = kinds[kind]
        defaults = (_default(found[role]) or "none" if role in found else "-" for role in roles)
        alone = next(iter(found.values())).schema["description"] if len(found) == 1 else ""
        rows.append((f"`{name}`", *defaults, allowed, alone or described(meaning, _ANY_ROLE)))
    groups = catalogue.resolved_schema()["properties"]
    about = "\n".join(f"* `{role}`: {groups[role]['description']}" for role in roles)
    return _ROLES_HEAD.format(roles=about) + "\n" + "".join(map(_cells, rows))


def _default(option: catalogue.Option) -> str:
    return f"`{json.dumps(option.schema['default'])}`" if "default" in option.schema else ""


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _row(option: catalogue.Option) -> str:
    meaning = option.schema["description"]
    return _cells((f"`{option.name}`", _default(option), option.allowed, meaning))


if __name__ == "__main__":
    sys.exit(main())
