"""The OpenAPI 3.1 document of the HTTP API, made from the operations that the app serves.

``api.app`` answers with it at ``/v1/openapi.json``; ``config-schemas/openapi.json`` is the same,
written by ``python -m dcos_tensorflow.api.openapi``, which with ``--check`` only says whether it is
up to date. Pure.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from dcos_tensorflow.api import schemas
from dcos_tensorflow.api.operations import OPERATIONS, TEXT, Operation, Response
from dcos_tensorflow.options.schema import write_or_check

FILE = "config-schemas/openapi.json"

_REFERENCE = "#/components/schemas/{}"
_PLACE = re.compile(r"\{([a-z]+)\}")
_DESCRIPTION = """\
Paths, bodies and statuses are those of the DC/OS SDK, with more beside them; docs/api.md explains
what they mean. Verbs are asynchronous: 200 says that a command was received.

A path that does not exist is answered 404, and one with another method 405, with an `UnknownPath`.
Secrets in answers are masked as `<redacted>`."""
_TAGS = {
    "plans": "The service's plans, and their control",
    "pods": "The tasks",
    "job": "The job: how far it is, other options, its end",
    "endpoints": "Where the tasks listen",
    "configurations": "The options that run, and those before them",
    "state": "The service itself",
    "metrics": "Numbers for monitoring",
    "debug": "For the search for a fault",
    "artifacts": "Files that tasks fetch",
}
_PATH_PARAMETERS = {
    "plan": "name of a plan: deploy, recovery, update or decommission",
    "name": "a name as the list beside this path gives it",
    "id": "id of a configuration, a UUID",
    "file": "path below the sandbox; slashes in it stay as they are",
}
#: What a parameter of the query may be, where that is not any text.
_WORDS = {"merge": ("true", "false")}
_UNAUTHORIZED = Response("the token is missing or wrong", "Message")
_FOREIGN = Response(
    "the token may only read, or a browser may have sent this for a page of another site", "Message"
)
_TOO_MANY = Response("too many wrong tokens came from this address", "Message")
_BROKEN = Response("a fault of the scheduler; its log has the details", "Message")
_NO_STATE = Response("the state is not loaded, or another scheduler leads", "Message")


def document() -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dcos-tensorflow scheduler",
            "version": "1",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {"url": "/", "description": "the scheduler itself"},
            {
                "url": "/service/{service}",
                "description": "behind the Admin Router of DC/OS",
                "variables": {"service": {"default": "tensorflow"}},
            },
        ],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        # Either form is enough; an API that has no token asks for none.
        "security": [{"bearer": []}, {"dcosToken": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "dcosToken": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "`token=<token>`, the form of DC/OS",
                },
            },
            "schemas": body_schemas(),
        },
    }


class _Untitled(GenerateJsonSchema):
    """Gives no titles: they would say each name once more."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Say no."""
        return False


@functools.cache
def body_schemas() -> dict[str, Any]:
    """Return the JSON Schemas, by the names that ``api.operations`` uses."""
    of_all = {answer.schema for operation in OPERATIONS for answer in answers(operation).values()}
    named = {*of_all, *(operation.body for operation in OPERATIONS), "UnknownPath"}
    known = {**vars(schemas), **schemas.UNNAMED}
    found, shared = TypeAdapter.json_schemas(
        [
            (name, "serialization", TypeAdapter(known[name]))
            for name in sorted(named)
            if name and "/" not in name
        ],
        ref_template=_REFERENCE.format("{model}"),
        schema_generator=_Untitled,
    )
    alone = {name: found[name, "serialization"] for name in schemas.UNNAMED}
    every = {**shared["$defs"], **alone}
    for schema in every.values():
        schema.pop("title", None)
    return dict(sorted(every.items()))


def text() -> str:
    """Return the document as it is served and checked in."""
    return json.dumps(document(), indent=2) + "\n"


def answers(operation: Operation) -> dict[int, Response]:
    """Return every status that an operation can answer, those common to all included."""
    found = dict(operation.answers)
    if not operation.is_open:
        found[401] = _UNAUTHORIZED
        found[429] = _TOO_MANY
    if operation.is_verb:
        found[403] = _FOREIGN
        found.setdefault(400, Response("the body is too long, or ended too soon", "Message"))
    found[500] = _BROKEN
    if operation.needs_state:
        found.setdefault(503, _NO_STATE)
    return dict(sorted(found.items()))


def _operation(operation: Operation) -> dict[str, Any]:
    places = _PLACE.findall(operation.path)
    described: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
    }
    parameters = [
        *(_parameter(name, "path", _PATH_PARAMETERS[name]) for name in places),
        *(_parameter(name, "query", meaning) for name, meaning in operation.query.items()),
    ]
    if parameters:
        described["parameters"] = parameters
    if operation.body:
        described["requestBody"] = {
            "required": operation.body_is_required,
            "content": {"application/json": {"schema": _reference(operation.body)}},
        }
    if operation.is_open:
        described["security"] = [{}]
    described["responses"] = {
        str(status): _response(status, answer) for status, answer in answers(operation).items()
    }
    return described


def _parameter(name: str, place: str, meaning: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "description": meaning,
        "schema": {"type": "string", **({"enum": list(_WORDS[name])} if name in _WORDS else {})},
    }


def _response(status: int, answer: Response) -> dict[str, Any]:
    response: dict[str, Any] = {"description": answer.meaning}
    if "/" in answer.schema:
        response["content"] = {answer.schema: {}}
    elif answer.schema:
        response["content"] = {"application/json": {"schema": _reference(answer.schema)}}
        if status == 404:
            response["content"][TEXT] = {}
    if status == 401:
        response["headers"] = {"WWW-Authenticate": {"schema": {"const": "Bearer"}}}
    if status in (429, 503):
        response["headers"] = {"Retry-After": {"schema": {"type": "string"}}}
    return response


def _reference(name: str) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(name)}


def main(arguments: list[str] | None = None) -> int:
    """Write the document, or check it. Return the exit code."""
    return write_or_check("dcos_tensorflow.api.openapi", {FILE: text()}, arguments)


if __name__ == "__main__":
    sys.exit(main())
