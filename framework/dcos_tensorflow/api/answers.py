"""The form of every answer of the API: JSON without secrets, or the SDK's plain text.

Used by ``api.app``. The SDK answers an unknown plan, pod or endpoint with exactly the text
``Element not found``: its clients look for it. All other errors are JSON with a ``message``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import PlainTextResponse, Response

from dcos_tensorflow.api.callers.access import Refusal
from dcos_tensorflow.api.redaction import redact
from dcos_tensorflow.options import OptionsError

ELEMENT_NOT_FOUND = "Element not found"

#: Statuses whose answers carry no body in HTTP (RFC 9110, 15.3.5 and 15.3.6).
BODYLESS = frozenset({204, 205})


def json_answer(
    body: Any,
    status: int = 200,
    secrets: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return ``body`` as JSON, redacted; without it where HTTP forbids one."""
    if status in BODYLESS:
        # 205 needs the length to be said (RFC 9112, 6.3); for 204 it must not be.
        length = {"content-length": "0"} if status == 205 else {}
        return Response(status_code=status, headers={**length, **(headers or {})})
    text = json.dumps(redact(body, secrets), allow_nan=False)
    return Response(text, status, headers, media_type="application/json")


def message_answer(message: str, status: int, **more: Any) -> Response:
    """Return an error or an acknowledgement: an object with a ``message``."""
    return json_answer({"message": message, **more}, status)


def not_found_answer() -> Response:
    """Return the SDK's 404."""
    return PlainTextResponse(ELEMENT_NOT_FOUND, 404)


def options_answer(error: OptionsError) -> Response:
    """Return what is wrong with options: each problem with its path."""
    problems = [problem.document() for problem in error.problems]
    return message_answer(str(error), 400, problems=problems)


def refused_answer(refusal: Refusal) -> Response:
    """Return what is said to a caller who is not let in."""
    headers = {"www-authenticate": "Bearer"} if refusal.status == 401 else {}
    if refusal.wait_seconds:
        headers["retry-after"] = str(refusal.wait_seconds)
        # The next try costs a connection.
        headers["connection"] = "close"
    return json_answer({"message": refusal.why}, refusal.status, headers=headers)
