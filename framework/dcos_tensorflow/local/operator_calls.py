"""The operator's side of the master: ``POST /api/v1`` and the GET endpoints. Pure.

Called by ``cluster`` for ``http_master``. The bodies are those of Mesos (the recordings);
``operator_views`` builds them. A call that is not here is refused by name.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from dcos_tensorflow.local.agent_views import version
from dcos_tensorflow.local.master import Master
from dcos_tensorflow.local.scheduler_calls import JSON, TEXT, Reply, bad_request, parse_json
from dcos_tensorflow.local.schema import ConversionError
from dcos_tensorflow.local.validation import NOT_SUPPORTED

Json = dict[str, Any]


def json_reply(body: object) -> Reply:
    """Return 200 with JSON."""
    return Reply(200, json.dumps(body, separators=(",", ":")), JSON)


def call(master: Master, body: bytes, now: float) -> Reply:
    """Answer one POST to ``/api/v1``."""
    try:
        parsed = parse_json(body)
    except ConversionError as error:
        return bad_request(str(error))
    kind = parsed.get("type") if isinstance(parsed, dict) else None
    if not isinstance(parsed, dict) or kind is None:
        return bad_request("Failed to validate master::Call: Expecting 'type' to be present")
    handler = _CALLS.get(kind)
    if handler is None:
        return Reply(501, f"{NOT_SUPPORTED}: call {kind}", TEXT)
    try:
        return handler(master, parsed.get(kind.lower(), {}), now)
    except (KeyError, TypeError) as error:
        return bad_request(f"Failed to validate master::Call: {kind} lacks {error}")


def _teardown(master: Master, body: Json, now: float) -> Reply:
    framework = master.state.frameworks.get(body["framework_id"]["value"])
    if framework is None:
        return bad_request("No framework found with specified ID")
    master.remove_framework(framework, now)
    return Reply(200)


_CALLS: dict[str, Callable[[Master, Json, float], Reply]] = {
    "TEARDOWN": _teardown,
}


def get(
    master: Master, path: str, query: Mapping[str, list[str]], form: bytes, now: float
) -> Reply:
    """Answer the endpoints that are no calls."""
    if path == "/health":
        return Reply(200)
    if path == "/version":
        return json_reply(version())
    if path == "/teardown":
        fields = urllib.parse.parse_qs(form.decode("utf-8", "replace"))
        framework_id = fields.get("frameworkId", [""])[0]
        return _teardown(master, {"framework_id": {"value": framework_id}}, now)
    return Reply(404)
