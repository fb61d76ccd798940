"""The verbs of the API: requests to events, and their answers.

Used by ``api.app``. Each verb is a pure function of the state and the request: it answers with the
effect, and names the event by which the one thread that owns the state brings it about. That is
asynchronous, as in the DC/OS SDK: an answer says that a command was received, not that it is done.
Statuses: 200 received, 208 so already, 404 no such element, 409 it cannot be done (the SDK has no
word for that; the text says why), 400 nonsense.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from dcos_tensorflow.api.errors import BadRequest, ElementNotFound
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.events import (
    ConfigurationChanged,
    Event,
    PlanCommand,
    PlanVerb,
    PodCommand,
    PodVerb,
    ReleaseRequested,
    StopRequested,
    UninstallRequested,
)
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.operator import plan_control, renewal, requests
from dcos_tensorflow.core.operator.plan_control import CommandAnswer
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.restarts import planned_changes, sidecars
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.history.record import ALLOWED, Notes, notes_of
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

_MAX_WHY = 300

#: The last part of a plan verb's path, and which verb it is.
PLAN_VERBS: Mapping[str, PlanVerb] = {
    "start": PlanVerb.START,
    "stop": PlanVerb.STOP,
    "continue": PlanVerb.RESUME,
    "interrupt": PlanVerb.PAUSE,
    "forceComplete": PlanVerb.FORCE_COMPLETE,
    "restart": PlanVerb.FORCE_RESTART,
}

POD_VERBS: Mapping[str, PodVerb] = {str(verb): verb for verb in PodVerb}

_STATUS = {CommandAnswer.RECEIVED: 200, CommandAnswer.ALREADY: 208, CommandAnswer.REFUSED: 409}


@dataclass(frozen=True)
class Reply:
    """An answer, and the event that is to be submitted before it is given; None for none.

    ``then`` carries out what is no event, once it has been written down, and returns the answer: a
    Reply, or a response as it is.
    """

    status: int
    body: Any
    event: Event | None = None
    then: Callable[[], Any] | None = None


def received(command: str, **more: Any) -> dict[str, Any]:
    """Return the SDK's body for a command that was taken."""
    return {"message": f"Received cmd: {command}", **more}


def plan_verb(
    state: ServiceState, plan: str, word: str, phase: str | None, step: str | None
) -> Reply:
    """Steer a plan. ``phase`` and ``step`` are names or ids.

    Raises BadRequest for a step without its phase, ElementNotFound for what does not exist.
    """
    if step and not phase:
        raise BadRequest("a step needs its phase")
    command = _resolved(state, plan, PLAN_VERBS[word], phase or "", step or "")
    ruling = plan_control.rule(state, command)
    if ruling.answer is CommandAnswer.UNKNOWN:
        raise ElementNotFound(plan)
    status = _STATUS[ruling.answer]
    if ruling.answer is CommandAnswer.RECEIVED:
        return Reply(status, received(word, why=ruling.why), command)
    return Reply(status, {"message": ruling.why})


def _resolved(state: ServiceState, plan: str, verb: PlanVerb, phase: str, step: str) -> PlanCommand:
    """Return the command with names in place of ids. Raises ElementNotFound."""
    found = plans(state.view()).get(plan)
    if found is None:
        raise ElementNotFound(plan)
    if not phase:
        return PlanCommand(plan, verb)
    part = next((p for p in found.phases if phase in (p.name, p.id)), None)
    if part is None:
        raise ElementNotFound(phase)
    if not step:
        return PlanCommand(plan, verb, part.name)
    member = next((s for s in part.steps if step in (s.name, s.id)), None)
    if member is None:
        raise ElementNotFound(step)
    return PlanCommand(plan, verb, part.name, member.name)


def check_plan_parameters(body: bytes) -> None:
    """Check the body of ``start``: the SDK's map of variables for the tasks. Raises BadRequest.

    The tasks of our plans are launched from the options alone.
    """
    plain = parsed(body, "nothing, or {}") if body.strip() else {}
    if not isinstance(plain, dict):
        raise BadRequest("the body must be nothing, or {}")
    if plain:
        raise BadRequest(
            f"plans have no parameters here, and {', '.join(map(str, plain))} would reach no task:"
            " set env in the options, and update"
        )


def pod_verb(state: ServiceState, name: str, word: str, body: bytes) -> Reply:
    """Restart, replace, pause or resume a pod instance, which is one task.

    ``body`` may list task names for pause and resume, as the SDK has it. Raises BadRequest,
    ElementNotFound.
    """
    verb = POD_VERBS[word]
    if verb in (PodVerb.PAUSE, PodVerb.RESUME):
        wrong = [task for task in _listed_tasks(body) if task not in (name, "node")]
        if wrong:
            return Reply(404, {"message": f"{name} has no task {', '.join(wrong)}", "tasks": wrong})
    command = PodCommand(verb, (name,))
    ruling = plan_control.rule(state, command)
    if ruling.answer is CommandAnswer.UNKNOWN:
        raise ElementNotFound(name)
    if ruling.answer is CommandAnswer.REFUSED:
        return Reply(409, {"message": ruling.why})
    event = command if ruling.answer is CommandAnswer.RECEIVED else None
    return Reply(200, {"pod": name, "tasks": [name]}, event)


def _listed_tasks(body: bytes) -> list[str]:
    if not body.strip():
        return []
    plain = parsed(body, "nothing, or a list of task names")
    if not isinstance(plain, list) or not all(isinstance(item, str) for item in plain):
        raise BadRequest("the body must be nothing, or a list of task names")
    return plain


def parsed(body: bytes, allowed: str) -> Any:
    """Return a body's JSON. Raises BadRequest naming what is ``allowed``."""
    try:
        return read_json(body)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}; allowed: {allowed}") from None


def reason_in(body: bytes) -> str:
    """Return why, from an optional ``{"why": "..."}``; one line. Raises BadRequest."""
    if not body.strip():
        return "asked for by the API"
    plain = parsed(body, 'nothing, or {"why": "..."}')
    if not isinstance(plain, dict) or set(plain) - {"why"}:
        raise BadRequest('the body must be nothing, or {"why": "..."} alone')
    why = plain.get("why", "")
    if not isinstance(why, str) or len(why) > _MAX_WHY:
        raise BadRequest(f"why must be a text of at most {_MAX_WHY} characters")
    return " ".join(why.split()) or "asked for by the API"


def notes_in(body: bytes) -> Notes:
    """Return what a person says of a run. Raises BadRequest."""
    try:
        return notes_of(parsed(body, ALLOWED))
    except ValueError as error:
        raise BadRequest(str(error)) from None


def stop(state: ServiceState, why: str) -> Reply:
    """End the job, and what has outlived it."""
    if state.job.phase in (JobPhase.ENDING, JobPhase.DONE) and not sidecars.staying(state.view()):
        return Reply(208, {"message": "the job has ended or is being ended"})
    return Reply(200, received("stop"), StopRequested(why))


def release_machines(state: ServiceState, why: str) -> Reply:
    """Give idle machines back. Raises ElementNotFound where none are bought for the service."""
    if state.spec.capacity is None:
        raise ElementNotFound("capacity")
    return Reply(200, received("release"), ReleaseRequested(why))


def uninstall(state: ServiceState, why: str) -> Reply:
    """End everything and leave nothing behind. It cannot be taken back."""
    if state.uninstall.asked:
        return Reply(208, {"message": "the service is being uninstalled, or was"})
    return Reply(200, received("uninstall"), UninstallRequested(why))


def update(state: ServiceState, spec: ServiceSpec, word: str = "update") -> Reply:
    """Make ``spec`` the target configuration; 417 when the running service cannot become it.

    ``restarts`` are the running tasks whose containers are replaced for it, ``along`` those whose
    processes start again with them or for new members, ``joining`` and ``leaving`` the members.
    """
    identifier = configuration_id(spec)
    if identifier == configuration_id(state.spec):
        # Who asks for what is in force asks no more for what was refused.
        event = ConfigurationChanged(spec) if state.told.refused_configuration else None
        return Reply(208, {"message": "this is the target already", "id": identifier}, event)
    refusal = requests.refusal(state, spec)
    if refusal:
        return _not_changed(refusal)
    found = planned_changes.announced(state.view(), spec)
    body = received(
        word,
        id=identifier,
        restarts=list(found.replaced),
        along=list(found.along),
        joining=list(found.joining),
        leaving=list(found.leaving),
    )
    return Reply(200, body, ConfigurationChanged(spec))


def check_update(state: ServiceState, spec: ServiceSpec, *, restarted: bool = False) -> Reply:
    """Answer as ``update`` would, and change nothing.

    With ``restarted`` a scheduler is started with ``spec``: where the job is done, it begins the
    next run with it.
    """
    reply = update(state, spec, "check")
    if restarted and reply.status == 417 and state.job.phase is JobPhase.DONE:
        reply = _check_next_run(state, spec)
    return Reply(reply.status, reply.body)


def _check_next_run(state: ServiceState, spec: ServiceSpec) -> Reply:
    refusal = renewal.refusal(state, spec)
    if refusal:
        return _not_changed(refusal)
    body = received(
        "check",
        id=configuration_id(spec),
        restarts=[],
        along=[],
        joining=list(spec.task_names()),
        leaving=[],
    )
    return Reply(200, body)


def _not_changed(refusal: str) -> Reply:
    return Reply(417, {"message": f"the configuration is not changed: {refusal}"})


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Say whether a parameter is true; without it, it is not. Raises BadRequest."""
    word = query.get(name, "false")
    if word not in ("true", "false"):
        raise BadRequest(f"{name} must be true or false, not {word[:50]!r}")
    return word == "true"


def options_not_known() -> Reply:
    """Answer that there is nothing to lay options over."""
    why = "this scheduler does not know the options in force as they were given: give all of them"
    return Reply(409, {"message": why})


def options_in(body: bytes) -> Mapping[str, Any]:
    """Return the options in a body. Raises BadRequest when they are no JSON object."""
    plain = parsed(body, "the options, a JSON object")
    if not isinstance(plain, dict):
        raise BadRequest("the options must be a JSON object")
    return plain


def rollback(state: ServiceState, stored: Mapping[str, ServiceSpec], body: bytes) -> Reply:
    """Make a stored configuration the target again: the one with the ``id`` in the body.

    Without one it is the only other that there is. Raises BadRequest, ElementNotFound.
    """
    others = [key for key in stored if key != configuration_id(state.spec)]
    wanted = _wanted_id(body)
    if not wanted:
        if len(others) != 1:
            known = ", ".join(others) or "none"
            raise BadRequest(
                f"which configuration is meant must be said by its id; others: {known}"
            )
        wanted = others[0]
    if wanted not in stored:
        raise ElementNotFound(wanted)
    return update(state, stored[wanted], "rollback")


def _wanted_id(body: bytes) -> str:
    if not body.strip():
        return ""
    plain = parsed(body, 'nothing, or {"id": "..."}')
    if not isinstance(plain, dict) or set(plain) - {"id"} or not isinstance(plain.get("id"), str):
        raise BadRequest('the body must be nothing, or {"id": "..."} alone')
    try:
        return str(uuid.UUID(plain["id"]))
    except ValueError:
        raise BadRequest(f"{plain['id']!r} is not the id of a configuration: not a UUID") from None
