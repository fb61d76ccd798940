"""A package's options: the defaults of its config.json, the user's on top, checked. Pure.

Called by ``rendering`` and ``service_changes``. The rules are Cosmos' (JsonSchema.scala): defaults
are those of the properties, an object's own default wins over those within it; the user's options
win, arrays are replaced as a whole; the merged options are validated (JSON Schema draft 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import jsonschema

from dcos_tensorflow.local.dcos.errors import CosmosError

Json = dict[str, Any]


def defaults(schema: Json) -> Json:
    """Return what the schema sets by itself."""
    found: Json = {}
    for name, property_schema in schema.get("properties", {}).items():
        if not isinstance(property_schema, dict):
            continue
        if "default" in property_schema:
            found[name] = property_schema["default"]
        elif "properties" in property_schema:
            found[name] = defaults(property_schema)
    return found


def merged(base: Json, over: Json) -> Json:
    """Return ``base`` overlaid by ``over``: objects member by member, everything else whole."""
    found = dict(base)
    for name, value in over.items():
        below = found.get(name)
        both = isinstance(below, dict) and isinstance(value, dict)
        found[name] = merged(below, value) if both else value  # type: ignore[arg-type]
    return found


def resolved(schema: Json | None, options: Json | None) -> Json:
    """Return the whole options.

    Raises:
        CosmosError: JsonSchemaMismatch, which names each wrong option in message and data.
    """
    if schema is None:
        if options:
            raise _mismatch(
                [{"message": "No schema available to validate the provided options"}],
                "the package has no config.json, so it takes no options",
            )
        return {}
    whole = merged(defaults(schema), options or {})
    # The reference implementation of draft 4 checks the schema's own form, too.
    errors = sorted(
        jsonschema.Draft4Validator(schema).iter_errors(whole),
        key=lambda error: [str(part) for part in error.absolute_path],
    )
    if errors:
        found = [entry for error in errors for entry in _entries(error)]
        listed = "; ".join(f"{pointer or '/'}: {text}" for pointer, text, _ in found)
        raise _mismatch([entry for _, _, entry in found], listed)
    return whole


def _mismatch(errors: list[Json], text: str) -> CosmosError:
    # Clients that look for Cosmos' words find them first; the dcos CLI prints the message alone.
    message = f"Options JSON failed validation: {text}"
    return CosmosError("JsonSchemaMismatch", message, {"errors": errors})


def _entries(error: jsonschema.ValidationError) -> Iterator[tuple[str, str, Json]]:
    pointer = _pointer(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = list(error.schema.get("properties", {}))
        for name in error.instance:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield _entry(error, f"{pointer}/{name}", f"there is no such option{hint}")
        return
    if error.validator == "required" and isinstance(error.instance, dict):
        # iter_errors gives one error for each missing name: its text begins with the name.
        missing = [
            name
            for name in error.schema.get("required", [])
            if name not in error.instance and error.message.startswith(repr(name))
        ]
        for name in missing:
            yield _entry(error, f"{pointer}/{name}", "is required")
        return
    yield _entry(error, pointer, _text(error))


def _text(error: jsonschema.ValidationError) -> str:
    if error.validator == "type":
        return f"{_shown(error.instance)} is not of type {_words(error.validator_value)}"
    if error.validator == "enum":
        allowed = ", ".join(_shown(one) for one in error.validator_value)
        return f"{_shown(error.instance)} is not one of {allowed}"
    return str(error.message)


def _shown(value: Any) -> str:
    import json

    return json.dumps(value)


def _words(value: Any) -> str:
    return " or ".join(value) if isinstance(value, list) else str(value)


def _entry(error: jsonschema.ValidationError, pointer: str, text: str) -> tuple[str, str, Json]:
    entry: Json = {
        "level": "error",
        "schema": {"loadingURI": "#", "pointer": _pointer(list(error.absolute_schema_path)[:-1])},
        "instance": {"pointer": pointer},
        "domain": "validation",
        "keyword": str(error.validator),
        "message": text,
    }
    return pointer, text, entry


def _pointer(path: Any) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
