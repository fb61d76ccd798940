"""The options in force that differ from the wanted ones: the base of an update.

Asked by ``api.views.configurations`` after options were refused. Laying further options over
those that a package manager has stored would ask for the refused ones again. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.options import catalogue
from dcos_tensorflow.options.document import MISSING, at, json_value
from dcos_tensorflow.options.errors import HIDDEN, is_secret


def differing(in_force: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return option -> its value in force, for each that ``asked`` gives another value.

    None stands for one that is left out. Structures are JSON text, as a package takes them. What
    holds a secret cannot be told, and is left out.
    """
    found: dict[str, Any] = {}
    for path, option in catalogue.options().items():
        theirs = at(asked, path)
        if theirs is MISSING:
            continue
        ours = at(in_force, path)
        if _plain(option, ours) == _plain(option, theirs):
            continue
        value = json.dumps(ours, sort_keys=True) if isinstance(ours, dict | list) else ours
        if HIDDEN not in str(value):
            found[option.name] = None if value is MISSING else value
    return found


def _plain(option: catalogue.Option, value: Any) -> Any:
    """Return a value as it compares: structures out of their text, secrets hidden."""
    if isinstance(value, str) and not option.is_text:
        try:
            value = json_value(value) if value.strip() else {}
        except ValueError:
            return value
    if option.is_environment and isinstance(value, Mapping):
        return {name: HIDDEN if text and is_secret(name) else text for name, text in value.items()}
    return value
