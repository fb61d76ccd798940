"""The JSON Schema of the scheduler's settings file, made from the settings themselves.

``python -m dcos_tensorflow.deploy.settings_schema`` writes it to ``config-schemas/``; ``--check``
only says whether it is up to date. Nothing imports it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dcos_tensorflow.deploy.settings import SETTINGS, Setting
from dcos_tensorflow.options.schema import write_or_check
from dcos_tensorflow.scheduler.configuration import ArtifactDelivery

FILE = "config-schemas/scheduler.schema.json"


def json_schema() -> dict[str, Any]:
    """Return the schema: JSON Schema 2020-12, unknown names refused."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of the dcos-tensorflow scheduler",
        "description": "The file of 'dcos-tensorflow scheduler --config'. Environment variables"
        " and flags of the same names are stronger.",
        "type": "object",
        "additionalProperties": False,
        "properties": {setting.name: _property(setting) for setting in SETTINGS},
    }


def _property(setting: Setting) -> dict[str, Any]:
    described: dict[str, Any] = {"description": setting.meaning}
    if isinstance(setting.default, bool):
        return {**described, "type": "boolean", "default": setting.default}
    if isinstance(setting.default, float):
        limits = {"minimum": 1, "maximum": 3600}
        return {**described, "type": "number", **limits, "default": setting.default}
    if isinstance(setting.default, int):
        limits = {"minimum": 0, "maximum": 65535}
        return {**described, "type": "integer", **limits, "default": setting.default}
    if setting.name == "artifacts":
        return {**described, "enum": [str(choice) for choice in ArtifactDelivery]}
    if setting.default:
        described["default"] = setting.default
    if setting.secret:
        described["writeOnly"] = True
    return {**described, "type": "string"}


def main(arguments: list[str] | None = None) -> int:
    """Write the schema, or check it. Return the exit code."""
    text = json.dumps(json_schema(), indent=2) + "\n"
    return write_or_check("dcos_tensorflow.deploy.settings_schema", {FILE: text}, arguments)


if __name__ == "__main__":
    sys.exit(main())
