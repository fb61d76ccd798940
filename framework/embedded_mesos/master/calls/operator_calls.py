"""The operator's side of the master: ``POST /api/v1`` and the other endpoints. Pure.

Called by ``cluster`` for ``http_master``. The bodies are those of Mesos (the recordings);
``operator_views`` builds them. A call that is not here is refused by name.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from embedded_mesos.master import draining, frameworks, maintenance, membership
from embedded_mesos.master.calls import operator_v1_views, operator_views
from embedded_mesos.master.calls.replies import JSON, TEXT, Reply, bad_request, parse_json
from embedded_mesos.master.calls.schema import ConversionError
from embedded_mesos.master.calls.validation import NOT_SUPPORTED, role_error
from embedded_mesos.master.desk import Desk
from embedded_mesos.shared_views import version

Json = dict[str, Any]


def json_reply(body: object) -> Reply:
    """Return 200 with JSON."""
    return Reply(200, json.dumps(body, separators=(",", ":")), JSON)


def call(desk: Desk, body: bytes, now: float) -> Reply:
    """Answer one POST to ``/api/v1``."""
    try:
        parsed = parse_json(body)
    except ConversionError as error:
        return bad_request(str(error))
    kind = parsed.get("type") if isinstance(parsed, dict) else None
    if not isinstance(parsed, dict) or kind is None:
        return bad_request("Failed to validate master::Call: Expecting 'type' to be present")
    view = _VIEWS.get(kind)
    if view is not None:
        return json_reply({"type": kind, kind.lower(): view(desk)})
    handler = _CALLS.get(kind)
    if handler is None:
        return Reply(501, f"{NOT_SUPPORTED}: call {kind}", TEXT)
    field = kind.lower()
    if field not in parsed:
        return bad_request(f"Failed to validate master::Call: Expecting '{field}' to be present")
    try:
        return handler(desk, parsed[field], now)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return bad_request(f"Failed to validate master::Call: {kind}: {error!r}")


_VIEWS: dict[str, Callable[[Desk], Json]] = {
    "GET_HEALTH": lambda desk: {"healthy": True},
    "GET_VERSION": lambda desk: {"version_info": version()},
    "GET_MASTER": lambda desk: {
        "master_info": desk.master_info(),
        "start_time": desk.started_at,
        "elected_time": desk.started_at,
    },
    "GET_STATE": operator_v1_views.get_state,
    "GET_AGENTS": operator_v1_views.get_agents,
    "GET_FRAMEWORKS": operator_v1_views.get_frameworks,
    "GET_TASKS": operator_v1_views.get_tasks,
    "GET_ROLES": operator_v1_views.get_roles,
    "GET_MAINTENANCE_STATUS": operator_v1_views.get_maintenance_status,
    "GET_MAINTENANCE_SCHEDULE": lambda desk: {"schedule": {"windows": desk.state.maintenance}},
}


def _teardown(desk: Desk, body: Json, now: float) -> Reply:
    framework = desk.state.frameworks.get(body["framework_id"]["value"])
    if framework is None:
        return bad_request("No framework found with specified ID")
    frameworks.remove(desk, framework, now)
    return Reply(200)


def _answered(problem: str | None) -> Reply:
    return Reply(200) if problem is None else bad_request(problem)


def _of_agent(
    order: Callable[[Desk, str, Json, float], str | None],
) -> Callable[[Desk, Json, float], Reply]:
    """Return the handler of an order to an agent, which is to be known."""

    def handle(desk: Desk, body: Json, now: float) -> Reply:
        agent_id = str(body["agent_id"]["value"])
        if not desk.state.knows_agent(agent_id):
            return Reply(404, "Agent not found", TEXT)
        return _answered(order(desk, agent_id, body, now))

    return handle


def _mark_gone(desk: Desk, body: Json, now: float) -> Reply:
    if body["agent_id"]["value"] in desk.state.gone_agents:
        return Reply(200)
    mark = _of_agent(lambda desk, agent_id, _, now: membership.mark_gone(desk, agent_id, now))
    return mark(desk, body, now)


def _drain(desk: Desk, agent_id: str, body: Json, now: float) -> None:
    grace = body.get("max_grace_period")
    seconds = None
    if isinstance(grace, dict):
        seconds = float(grace.get("seconds", 0)) + float(grace.get("nanos", 0)) / 1e9
    elif grace is not None:
        seconds = float(str(grace).removesuffix("s"))
    draining.drain(desk, agent_id, seconds, bool(body.get("mark_gone", False)), now)


def _update_quota(desk: Desk, body: Json, now: float) -> Reply:
    quotas = {}
    for config in body["quota_configs"]:
        role = config["role"]
        if role_error(role) or "/" in role or role == "*":
            return bad_request(f"Invalid QuotaConfig: quota is not possible for role '{role}'")
        if any(_scalar(value) for value in config.get("guarantees", {}).values()):
            return Reply(501, f"{NOT_SUPPORTED}: quota guarantees", TEXT)
        quotas[role] = {
            name: round(_scalar(value) * 1000) for name, value in config.get("limits", {}).items()
        }
    for role, limits in quotas.items():
        desk.state.quotas.pop(role, None)
        if limits:
            desk.state.quotas[role] = limits
    return Reply(200)


def _scalar(value: Any) -> float:
    return float(value["value"] if isinstance(value, dict) else value)


def _update_schedule(desk: Desk, body: Json, now: float) -> Reply:
    windows = body["schedule"].get("windows", [])
    problem = maintenance.schedule_error(desk, windows)
    if problem is None:
        maintenance.set_schedule(desk, windows, now)
    return _answered(problem)


_CALLS: dict[str, Callable[[Desk, Json, float], Reply]] = {
    "TEARDOWN": _teardown,
    "MARK_AGENT_GONE": _mark_gone,
    "DRAIN_AGENT": _of_agent(_drain),
    "DEACTIVATE_AGENT": _of_agent(lambda desk, agent_id, *_: draining.deactivate(desk, agent_id)),
    "REACTIVATE_AGENT": _of_agent(
        lambda desk, agent_id, _, now: draining.reactivate(desk, agent_id, now)
    ),
    "UPDATE_QUOTA": _update_quota,
    "UPDATE_MAINTENANCE_SCHEDULE": _update_schedule,
    "START_MAINTENANCE": lambda desk, body, now: _answered(
        maintenance.start(desk, body["machines"], now)
    ),
    "STOP_MAINTENANCE": lambda desk, body, _: _answered(maintenance.stop(desk, body["machines"])),
}


def get(desk: Desk, path: str, query: Mapping[str, list[str]], form: bytes, now: float) -> Reply:
    """Answer the endpoints that are no calls. ``form`` is the request's body."""
    if path == "/health":
        return Reply(200)
    if path == "/version":
        return json_reply(version())
    if path == "/metrics/snapshot":
        return json_reply(operator_views.metrics(desk, now))
    if path == "/tasks":
        limit, offset = (int(query.get(name, [default])[0]) for name, default in _PAGE.items())
        return json_reply(operator_views.tasks(desk, limit, offset))
    if path == "/teardown":
        fields = urllib.parse.parse_qs(form.decode("utf-8", "replace"))
        framework_id = fields.get("frameworkId", [""])[0]
        return _teardown(desk, {"framework_id": {"value": framework_id}}, now)
    view = _PAGES.get(path.removesuffix(".json"))
    if view is None:
        return Reply(404)
    return json_reply(view(desk))


_PAGE = {"limit": "100", "offset": "0"}
_PAGES: dict[str, Callable[[Desk], Json]] = {
    "/state": operator_views.state,
    "/state-summary": operator_views.state_summary,
    "/frameworks": operator_views.frameworks,
    "/slaves": operator_views.slaves,
    "/roles": operator_views.roles,
}
