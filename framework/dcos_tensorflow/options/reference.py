"""The tables of the page ``docs/options.md``, written from the models by ``options.schema``."""

from __future__ import annotations

import json
from collections.abc import Iterable

from dcos_tensorflow.options import catalogue
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.sections.role_models import RoleSection, described

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
