"""The door of ``/api/v1/scheduler``: from a request's body to an answer, and to the master.

Called by ``http_master`` for every POST. Pure. The order of the checks is Mesos' own
(``src/master/http.cpp``, scheduler()): content type, JSON, call, Accept, stream id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedded_mesos import messages
from embedded_mesos.master import frameworks, inverse_offers, offers, updates
from embedded_mesos.master.allocator import constraints_error
from embedded_mesos.master.calls.accept import accept
from embedded_mesos.master.calls.replies import JSON, TEXT, Reply, Request, bad_request, parse_json
from embedded_mesos.master.calls.schema import ConversionError, convert
from embedded_mesos.master.calls.validation import NOT_SUPPORTED, framework_error
from embedded_mesos.master.desk import Desk
from embedded_mesos.master.reconciliation import answer, reconcile
from embedded_mesos.master.records import Framework

Json = dict[str, Any]


def scheduler_call(desk: Desk, request: Request, now: float) -> Reply:
    """Answer one POST."""
    if request.content_type is None:
        return bad_request("Expecting 'Content-Type' to be present")
    if request.content_type.split(";")[0].strip() != JSON:
        expected = "Expecting 'Content-Type' of application/json or application/x-protobuf"
        if request.content_type == "application/x-protobuf":
            expected = f"{NOT_SUPPORTED}: protobuf; use application/json"
        return Reply(415, expected, TEXT)
    try:
        parsed = parse_json(request.body)
    except ConversionError as error:
        return bad_request(str(error))
    try:
        call = convert(parsed)
    except ConversionError as error:
        return bad_request(f"Failed to convert JSON into Call protobuf: {error}")
    problem = _call_error(call, request.principal)
    if problem is not None:
        return bad_request(f"Failed to validate scheduler::Call: {problem}")
    if request.accept is not None and not _accepts_json(request.accept):
        expected = "Expecting 'Accept' to allow application/json or application/x-protobuf"
        return Reply(406, expected, TEXT)
    if call["type"] == "SUBSCRIBE":
        if request.stream_id is not None:
            return bad_request("Subscribe calls should not include the 'Mesos-Stream-Id' header")
        return _subscribe(desk, call, request, now)
    return _dispatch(desk, call, request, now)


def _accepts_json(accept_header: str) -> bool:
    kinds = [part.split(";")[0].strip() for part in accept_header.split(",")]
    return any(kind in (JSON, "*/*", "application/*", "") for kind in kinds)


# The calls that need a field of their own name.
_BODIES = (
    "ACCEPT",
    "DECLINE",
    "ACCEPT_INVERSE_OFFERS",
    "DECLINE_INVERSE_OFFERS",
    "KILL",
    "SHUTDOWN",
    "ACKNOWLEDGE",
    "ACKNOWLEDGE_OPERATION_STATUS",
    "RECONCILE",
    "RECONCILE_OPERATIONS",
    "MESSAGE",
    "REQUEST",
    "UPDATE_FRAMEWORK",
)


def _call_error(call: Json, principal: str | None) -> str | None:
    kind = call.get("type")
    if kind is None:
        return "Expecting 'type' to be present"
    if kind == "SUBSCRIBE":
        if "subscribe" not in call:
            return "Expecting 'subscribe' to be present"
        info = call["subscribe"]["framework_info"]
        if call.get("framework_id") != info.get("id"):
            return "'framework_id' differs from 'subscribe.framework_info.id'"
        claimed = info.get("principal")
        if principal is not None and claimed is not None and claimed != principal:
            return (
                f"Authenticated principal '{principal}' does not match principal '{claimed}'"
                " set in `FrameworkInfo`"
            )
        return None
    if "framework_id" not in call:
        return "Expecting 'framework_id' to be present"
    if kind in _BODIES and kind.lower() not in call:
        return f"Expecting '{kind.lower()}' to be present"
    return None


# What a new subscription cannot change: Mesos ignores it without a word.
_FIXED = ("user", "checkpoint")


def _subscribe(desk: Desk, call: Json, request: Request, now: float) -> Reply:
    subscribe = call["subscribe"]
    info = subscribe["framework_info"]
    stream_id = desk.new_id()
    reply = Reply(200, content_type=JSON, stream_id=stream_id)
    framework_id = info.get("id", {}).get("value")
    state = desk.state
    problem = framework_error(info)
    constraints = subscribe.get("offer_constraints", {})
    if problem is None:
        invalid = constraints_error(constraints)
        problem = f"Offer constraints are not valid: {invalid}" if invalid else None
    if problem is None and framework_id in state.completed_frameworks:
        problem = "Framework has been removed"
    known = state.frameworks.get(framework_id) if framework_id is not None else None
    if (
        problem is None
        and known is not None
        and known.info.get("principal") != info.get("principal")
    ):
        problem = (
            f"Changing framework's principal is not allowed (old: "
            f"'{known.info.get('principal', '')}', new: '{info.get('principal', '')}')"
        )
    if problem is not None:
        frameworks.refuse_stream(desk, stream_id, problem)
        return reply
    if known is None:
        desk.count("master/messages_register_framework")
        framework_id = framework_id or state.new_framework_id()
        known = Framework(
            framework_id=framework_id,
            info={**info, "id": {"value": framework_id}},
            stream_id=None,
            registered_at=now,
            reregistered_at=now,
            principal=request.principal,
        )
        state.frameworks[framework_id] = known
    else:
        desk.count("master/messages_reregister_framework")
        kept: Json = {name: known.info[name] for name in _FIXED if name in known.info}
        known.info = {**info, **kept}
    known.suppressed = set(subscribe.get("suppressed_roles", []))
    known.constraints = constraints
    frameworks.connect(desk, known, stream_id, now)
    return reply


def _dispatch(desk: Desk, call: Json, request: Request, now: float) -> Reply:
    framework_id = call["framework_id"]["value"]
    framework = desk.state.frameworks.get(framework_id)
    if framework is None:
        return bad_request("Framework cannot be found")
    if framework.principal is not None and request.principal != framework.principal:
        return bad_request(
            f"Authenticated principal '{request.principal}' does not match principal"
            f" '{framework.principal}' of the framework"
        )
    if not framework.connected:
        return Reply(403, "Framework is not subscribed", TEXT)
    if request.stream_id is None:
        return bad_request("All non-subscribe calls should include the 'Mesos-Stream-Id' header")
    if request.stream_id != framework.stream_id:
        return bad_request(
            f"The stream ID '{request.stream_id}' included in this request didn't match the"
            f" stream ID currently associated with framework ID {framework_id}"
        )
    if call["type"] == "UPDATE_FRAMEWORK":
        return _update_framework(desk, framework, call["update_framework"], now)
    handler = _HANDLERS.get(call["type"])
    if handler is None:
        return Reply(501, f"{NOT_SUPPORTED}: call {call['type']}", TEXT)
    handler(desk, framework, call.get(call["type"].lower(), {}), now)
    return Reply(202)


def _update_framework(desk: Desk, framework: Framework, body: Json, now: float) -> Reply:
    info = body["framework_info"]
    problem = framework_error(info)
    if problem is None and info.get("id", {}).get("value") != framework.framework_id:
        problem = "'FrameworkInfo.id' differs from the framework's"
    for name in ("principal", "user", "checkpoint"):
        if problem is None and info.get(name) != framework.info.get(name):
            problem = f"Updating 'FrameworkInfo.{name}' is unsupported"
    if problem is not None:
        return bad_request(
            f"'FrameworkInfo' object supplied with an 'UpdateFramework' call is not valid:"
            f" {problem}"
        )
    constraints = body.get("offer_constraints", {})
    problem = constraints_error(constraints)
    if problem is not None:
        return bad_request(
            f"'UpdateFramework' call is not valid: Offer constraints are not valid: {problem}"
        )
    before = set(framework.roles)
    framework.info = info
    framework.suppressed = set(body.get("suppressed_roles", []))
    framework.constraints = constraints
    for offer in list(desk.state.offers.values()):
        removed = before - set(framework.roles)
        if offer.framework_id == framework.framework_id and offer.mesos_role in removed:
            offers.rescind(desk, offer)
    return Reply(200)


def _teardown(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    frameworks.remove(desk, framework, now)


def _decline(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    desk.count("master/messages_decline_offers")
    for one in body.get("offer_ids", []):
        offer = desk.state.offers.get(one["value"])
        if offer is not None and offer.framework_id == framework.framework_id:
            offers.drop(desk, offer)
            offers.refuse(desk, offer, offer.resources, body.get("filters"), now)


def _inverse(status: str) -> Callable[[Desk, Framework, Json, float], None]:
    def answer_inverse(desk: Desk, framework: Framework, body: Json, now: float) -> None:
        offer_ids = [one["value"] for one in body.get("inverse_offer_ids", [])]
        filters = body.get("filters", {})
        inverse_offers.answer(
            desk, framework, offer_ids=offer_ids, status=status, filters=filters, now=now
        )

    return answer_inverse


def _roles(framework: Framework, body: Json) -> list[str] | None:
    given = list(body.get("roles", [])) or ([body["role"]] if "role" in body else [])
    roles = given or framework.roles
    # Mesos drops the whole call when one role is not the framework's.
    return roles if set(roles) <= set(framework.roles) else None


def _revive(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    desk.count("master/messages_revive_offers")
    roles = _roles(framework, body)
    if roles is not None:
        framework.suppressed -= set(roles)
        framework.filters = [one for one in framework.filters if one.mesos_role not in roles]
        framework.inverse_filters.clear()
        offers.allocate(desk, now)


def _suppress(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    desk.count("master/messages_suppress_offers")
    framework.suppressed |= set(_roles(framework, body) or ())


def _kill(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    desk.count("master/messages_kill_task")
    task_id = body["task_id"]["value"]
    agent_id = body.get("agent_id", {}).get("value")
    task = framework.tasks.get(task_id)
    if task is None:
        answer(desk, framework, task_id, agent_id, now)
        return
    if agent_id is not None and agent_id != task.agent_id:
        return
    grace = body.get("kill_policy", {}).get("grace_period", {}).get("nanoseconds")
    agent = desk.state.agents.get(task.agent_id)
    if agent is not None:
        seconds = None if grace is None else grace / 1e9
        message = messages.KillTask(framework.framework_id, task_id, seconds)
        desk.send_to_agent(agent, message)


def _shutdown(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    agent = desk.state.agents.get(body["agent_id"]["value"])
    if agent is not None:
        executor_id = body["executor_id"]["value"]
        message = messages.ShutdownExecutor(framework.framework_id, executor_id)
        desk.send_to_agent(agent, message)


def _acknowledge(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    agent_id, task_id = body["agent_id"]["value"], body["task_id"]["value"]
    updates.acknowledge(
        desk, framework, agent_id=agent_id, task_id=task_id, uid=body["uuid"], now=now
    )


def _acknowledge_operation(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    agent = desk.state.agents.get(body.get("agent_id", {}).get("value"))
    if agent is not None:
        message = messages.AcknowledgeOperation(framework.framework_id, body["uuid"])
        desk.send_to_agent(agent, message)


def _reconcile(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    desk.count("master/messages_reconcile_tasks")
    wanted = [
        (one["task_id"]["value"], one.get("agent_id", {}).get("value"))
        for one in body.get("tasks", [])
    ]
    reconcile(desk, framework, wanted, now)


def _nothing(desk: Desk, framework: Framework, body: Json, now: float) -> None:
    """Do nothing, as Mesos' allocator with a REQUEST and the command executor with a MESSAGE."""


_HANDLERS: dict[str, Callable[[Desk, Framework, Json, float], None]] = {
    "TEARDOWN": _teardown,
    "ACCEPT": accept,
    "DECLINE": _decline,
    "ACCEPT_INVERSE_OFFERS": _inverse("ACCEPT"),
    "DECLINE_INVERSE_OFFERS": _inverse("DECLINE"),
    "REVIVE": _revive,
    "SUPPRESS": _suppress,
    "KILL": _kill,
    "SHUTDOWN": _shutdown,
    "ACKNOWLEDGE": _acknowledge,
    "ACKNOWLEDGE_OPERATION_STATUS": _acknowledge_operation,
    "RECONCILE": _reconcile,
    "REQUEST": _nothing,
    "MESSAGE": _nothing,
}
