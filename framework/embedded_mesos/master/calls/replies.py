"""Requests and answers of the master's two doors: HTTP as values.

Made and read by ``wire``; ``scheduler_calls`` and ``operator_calls`` answer. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from embedded_mesos.master.calls.schema import ConversionError
from untrusted_input.json_text import read_json

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True)
class Request:
    """What of an HTTP request matters here. ``principal`` is the authenticated one."""

    body: bytes
    content_type: str | None = JSON
    accept: str | None = JSON
    stream_id: str | None = None
    principal: str | None = None


@dataclass(frozen=True)
class Reply:
    """An HTTP answer. With a ``stream_id`` the connection stays open for events."""

    status: int
    body: str = ""
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    stream_id: str | None = None


def bad_request(text: str) -> Reply:
    """Return 400 with Mesos' text."""
    return Reply(400, text, TEXT)


def parse_json(body: bytes) -> object:
    """Return the JSON of a body. Raises ConversionError in the words of Mesos' parser."""
    text = body.decode("utf-8", "replace")
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        near = text[error.pos :].split("\n", 1)[0].strip().rstrip("}")
        raise ConversionError(
            f"Failed to parse body into JSON: syntax error at line {error.lineno} near: {near}"
        ) from error
    except ValueError as error:
        raise ConversionError(f"Failed to parse body into JSON: {error}") from error
