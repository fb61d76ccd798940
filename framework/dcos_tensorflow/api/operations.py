"""Every path of the HTTP API: its purpose, its arguments, its answers. One table.

``api.app`` serves exactly these, and ``api.openapi`` describes them; neither has a path of its own.
``openapi`` adds the statuses that several operations share (401, 403, 500, 503). Pure data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from dcos_tensorflow.api.verbs import PLAN_VERBS, POD_VERBS
from dcos_tensorflow.api.views.health import Health
from dcos_tensorflow.records import dataclass

#: Answers that are no JSON: the media type in the place of a schema's name.
TEXT = "text/plain"
BYTES = "application/octet-stream"
EVENTS = "text/event-stream"
TAR = "application/x-tar"


@dataclass(frozen=True)
class Response:
    """What a status means, and the name of its body's type in ``api.schemas``.

    A name with a slash is a media type; no name is no body.
    """

    meaning: str
    schema: str = ""


@dataclass(frozen=True)
class Operation:
    """One method of one path. ``id`` is what ``api.app`` finds its endpoint by.

    ``tag`` is the part of the API that it belongs to, by the first part of the path.
    ``query`` are the names of the parameters in the query and what they mean, ``body`` the schema
    of what may be sent. ``is_open`` says that it is answered without the token. ``needs_state``
    says that it is answered 503 while this scheduler has no state to show.
    """

    id: str
    method: str
    path: str
    summary: str
    answers: Mapping[int, Response]
    query: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    body_is_required: bool = False
    is_open: bool = False
    needs_state: bool = True

    @property
    def tag(self) -> str:
        """Return the name of the part of the API that it belongs to."""
        first = self.path.split("/")[2]
        return _TAGS.get(first, first)

    @property
    def is_verb(self) -> bool:
        """Say whether it orders something; the others only show."""
        return self.method != "GET"


#: What paths belong to that do not begin with the name of their tag.
_TAGS = {
    "plan": "plans",
    "pod": "pods",
    "cluster": "job",
    "why": "job",
    "units": "job",
    "events": "job",
    "curves": "job",
    "runs": "job",
    "uninstall": "job",
    "capacity": "job",
    "health": "state",
    "openapi.json": "state",
}

_NOT_FOUND = Response("there is none of this name: the text `Element not found`", TEXT)
_NONSENSE = Response("the request makes no sense; the message says why", "Message")
_SELECTION = {
    "plan": "only this plan",
    "phase": "only this phase of the plan, by name or id",
    "step": "only this step of the phase, by name or id",
}
_PLAN = {
    200: Response("the plan is complete", "Plan"),
    202: Response("the plan is in progress", "Plan"),
    417: Response("the plan has errors", "Plan"),
}
_CONFIGURATION = {
    200: Response("the configuration", "Configuration"),
    400: Response("that is no UUID", "Message"),
    404: _NOT_FOUND,
}
_FRAMEWORK_ID = {
    200: Response("as it is now", "Names"),
    404: Response("not registered yet, or not any more: `Element not found`", TEXT),
}
_PART = {
    200: Response("whole lines while there is more; `next_offset` is where to go on", "Part"),
    400: _NONSENSE,
    403: Response("the file holds a secret", "Message"),
    404: Response(
        "no such task: the text `Element not found`; no such file, or not yet: the message",
        "Message",
    ),
    503: Response(
        "the agent cannot be asked, this scheduler does not lead, or its state is not"
        " loaded; the message says which",
        "Message",
    ),
}
_PART_QUERY = {
    "offset": "first byte; 0 if it is not said",
    "length": "most bytes; 65536 if it is not said, and never more",
    "task_id": "an earlier attempt by its Mesos task id, together with its agent_id",
    "agent_id": "id of the agent on which that attempt ran",
}
_IN_TASK = {
    400: _NONSENSE,
    404: Response(
        "no such task: the text `Element not found`; no such command or file: the message",
        "Message",
    ),
    503: Response(
        "task runner or agent cannot be asked, this scheduler does not lead, or its state is not"
        " loaded; the message says which",
        "Message",
    ),
}
_NO_CONTAINER = {409: Response("the task does not run, or a command runs in it already", "Message")}
_COMMAND_OUTPUT = {
    200: Response(
        "at once, or after 5 s; `exit_code` is null while it runs or more is to be told",
        "CommandOutput",
    ),
    **_IN_TASK,
    **_NO_CONTAINER,
}
_HEALTH = {
    int(health): Response(
        health.name.lower().replace("_", " "), "" if health in (204, 205) else "Health"
    )
    for health in sorted(Health)
}
_ARTIFACT = {200: Response("the file", BYTES), 404: _NOT_FOUND}
_DOCUMENT = {200: Response("an OpenAPI 3.1 document", "Any")}


def _show(
    identifier: str, path: str, summary: str, schema: str, query: Mapping[str, str] | None = None
) -> Operation:
    """Return what answers 200 with what it shows, and nothing else of its own."""
    answers = {200: Response("as it is now", schema)} | ({404: _NOT_FOUND} if "{" in path else {})
    return _get(identifier, path, summary, answers, query=query or {})


def _get(
    identifier: str, path: str, summary: str, answers: Mapping[int, Response], **more: Any
) -> Operation:
    return Operation(identifier, "GET", path, summary, answers, **more)


_OPEN: Mapping[str, bool] = {"is_open": True, "needs_state": False}

_SHOWN = (
    _show("plans", "/v1/plans", "The names of all plans", "Names"),
    _get("plan", "/v1/plans/{plan}", "A plan with its phases and steps", _PLAN | {404: _NOT_FOUND}),
    _get("deploy_plan", "/v1/plan", "The plan `deploy`; older than `/v1/plans`", _PLAN),
    _show("pods", "/v1/pod", "The names of all tasks, launched or not", "Names"),
    _show("pods_status", "/v1/pod/status", "All tasks by role", "PodsStatus"),
    _show("pod_status", "/v1/pod/{name}/status", "Id and state of a task", "PodInstance"),
    _show(
        "pod_info",
        "/v1/pod/{name}/info",
        "TaskInfo and TaskStatus of a task, without command and environment",
        "TaskInfos",
    ),
    _get(
        "pod_file",
        "/v1/pod/{name}/files/{file}",
        "A part of a file of a task's sandbox, such as `stdout`",
        _PART,
        query=_PART_QUERY,
    ),
    _get(
        "pod_exec_output",
        "/v1/pod/{name}/exec/{id}",
        "The output of a command in a task, and its exit code",
        _COMMAND_OUTPUT,
        query={"after": "the number of the part to go on behind: `next` of the answer before"},
    ),
    _show("endpoints", "/v1/endpoints", "The roles that listen", "Names"),
    _show("endpoint", "/v1/endpoints/{name}", "Where the live tasks of a role listen", "Endpoint"),
    _get("framework_id", "/v1/state/frameworkId", "The framework id, in a list", _FRAMEWORK_ID),
    _show("properties", "/v1/state/properties", "The names of all properties", "Names"),
    _show("property", "/v1/state/properties/{name}", "The value of a property", "Any"),
    _show(
        "configurations",
        "/v1/configurations",
        "The ids of all configurations that are kept, the target's first",
        "Names",
    ),
    _show("target_id", "/v1/configurations/targetId", "The target's id", "Names"),
    _show(
        "target",
        "/v1/configurations/target",
        "The target: its outline, the whole spec, the options as they were given",
        "Configuration",
    ),
    _get("configuration", "/v1/configurations/{id}", "A configuration by its id", _CONFIGURATION),
    _show(
        "offers", "/v2/debug/offers", "The outcome of the newest 100 offers, with reasons", "Offers"
    ),
    _show("offers_v1", "/v1/debug/offers", "The same as `/v2/debug/offers`", "Offers"),
    _show(
        "debug_plans",
        "/v1/debug/plans",
        "Outline of the plans and counts of steps",
        "DebugPlans",
        _SELECTION,
    ),
    _show(
        "debug_task_statuses",
        "/v1/debug/taskStatuses",
        "Mesos state of each task, by plan, phase and step",
        "TaskStatuses",
        _SELECTION,
    ),
    _show(
        "debug_reservations",
        "/v1/debug/reservations",
        "The ids of reserved resources, by host",
        "Reservations",
    ),
    _show(
        "cluster", "/v1/cluster", "The current ClusterSpec, and each task's view of it", "Cluster"
    ),
    _show(
        "cluster_of_task",
        "/v1/cluster/{name}",
        "One task's view of the ClusterSpec",
        "TaskOfCluster",
    ),
    _show("job", "/v1/job", "Where the job stands, how it ended, each task's part", "Job"),
    _show("why", "/v1/why", "Why the job is not further: per task, per offer", "Why"),
    _get(
        "units",
        "/v1/units",
        "The units of work of a sweep or a batch, and the outcome of each",
        {
            200: Response("as they are now", "Units"),
            400: _NONSENSE,
            404: Response("the service is one job: the text `Element not found`", TEXT),
        },
        query={"state": "only those: running, waiting, succeeded, failed or pruned"},
    ),
    _get(
        "capacity",
        "/v1/capacity",
        "The machines of the service, their cost, and the reasons for missing machines",
        {
            200: Response("as they are now", "Capacity"),
            404: Response("no machines are bought for it: the text `Element not found`", TEXT),
        },
    ),
    _get(
        "curves",
        "/v1/curves",
        "The metrics of the training over time, by task",
        {
            200: Response("as it is now", "Curves"),
            404: Response("no such run is kept: the text `Element not found`", TEXT),
        },
        query={"run": "of a former run, by its number or id"},
    ),
    _show("runs", "/v1/runs", "The service's runs that are kept, the newest first", "Runs"),
    _get(
        "events",
        "/v1/events",
        "Job, why and plans as they are, and their changes: server-sent events",
        {
            200: Response("first an event `whole`, then `patch`, a JSON merge patch", EVENTS),
            503: Response("the state is not loaded, or too many watch", "Message"),
        },
    ),
    _show("metrics", "/v1/metrics", "All metrics as Dropwizard's JSON", "Metrics"),
    _show("prometheus", "/v1/metrics/prometheus", "All metrics as Prometheus' text", TEXT),
    _get(
        "health",
        "/v1/health",
        "The health: the HTTP status is the number",
        _HEALTH,
        query={"verbose": "give the reasons too; they need the token"},
        **_OPEN,
    ),
    _get("artifact", "/v1/artifacts/{name}", "A file that tasks fetch", _ARTIFACT, **_OPEN),
    _get("openapi", "/v1/openapi.json", "This document", _DOCUMENT, needs_state=False),
)

_PLAN_SUMMARIES = {
    "start": "Resume {}; one that is complete starts its tasks again",
    "stop": "Pause {} and withdraw its forced steps and approvals",
    "continue": "Resume {}; approves of a canary",
    "interrupt": "Pause {}",
    "forceComplete": "Take {} for complete",
    "restart": "Start the tasks of {} again",
}
_POD_SUMMARIES = {
    "restart": "Start a task's process anew in its container",
    "replace": "Give a task a new container, on another agent where there is one",
    "pause": "Stop a task's process and keep its container",
    "resume": "Start a paused task's process again",
}
_VERB_PARAMETERS = {
    "phase": "only this phase, by name or id",
    "step": "only this step of the phase",
}


_RECEIVED = {
    200: Response("received; it is carried out afterwards", "Received"),
    208: Response("it is so already", "Message"),
    400: _NONSENSE,
}
_STEERED = {
    **_RECEIVED,
    404: _NOT_FOUND,
    409: Response("it cannot be done; the message says why", "Message"),
}
_POD_STEERED = {
    200: Response("received, or so already", "PodAnswer"),
    404: Response(
        "no such task: the text `Element not found`, or which of the body's names are none",
        "NoSuchTasks",
    ),
    409: _STEERED[409],
}
_MERGE = {
    "merge": "true: the options are laid over those in force, objects by their parts; false, as if"
    " it is not said: they are all options"
}
_RESTART = {
    "restart": "true: for a scheduler that is started with these options, as DC/OS does: code and "
    "data on its machine may be others, and of a job that is done it begins the next run"
}
_CHANGED = {
    200: Response(
        "received: the id of the new target, the tasks that get a new container", "Changed"
    ),
    208: Response("it is the target already", "Unchanged"),
    417: Response("the running service cannot become that; nothing changes", "Message"),
}
_GIVEN = {
    **_CHANGED,
    409: Response("with `merge`: the options in force are not known as they were given", "Message"),
}


def _post(
    identifier: str, path: str, summary: str, answers: Mapping[int, Response], **more: Any
) -> Operation:
    return Operation(identifier, "POST", path, summary, answers, **more)


def _plan_verb(word: str, path: str, identifier: str, what: str) -> Operation:
    summary, body = _PLAN_SUMMARIES[word].format(what), "NoParameters" if word == "start" else ""
    return _post(identifier, path, summary, _STEERED, query=_VERB_PARAMETERS, body=body)


def _pod_verb(word: str) -> Operation:
    path, summary = f"/v1/pod/{{name}}/{word}", _POD_SUMMARIES[word]
    if word not in ("pause", "resume"):
        return _post(f"pod_{word}", path, summary, _POD_STEERED)
    # These take the names of tasks, which can be nonsense.
    return _post(f"pod_{word}", path, summary, _POD_STEERED | {400: _NONSENSE}, body="Names")


_VERBS = (
    *(
        _plan_verb(word, f"/v1/plans/{{plan}}/{word}", f"plan_{word}", "a plan")
        for word in PLAN_VERBS
    ),
    *(
        _plan_verb(word, f"/v1/plan/{word}", f"deploy_plan_{word}", "the plan `deploy`")
        for word in PLAN_VERBS
    ),
    *(_pod_verb(word) for word in POD_VERBS),
    _post(
        "pod_exec",
        "/v1/pod/{name}/exec",
        "Run a command in a task's container, one at a time",
        {200: Response("it was started", "CommandBegun"), **_IN_TASK, **_NO_CONTAINER},
        body="Command",
        body_is_required=True,
    ),
    _post(
        "pod_exec_stop",
        "/v1/pod/{name}/exec/{id}/stop",
        "Kill a command that runs in a task",
        {200: Response("it was killed, or had ended", "Message"), **_IN_TASK, **_NO_CONTAINER},
    ),
    _post(
        "pod_copy",
        "/v1/pod/{name}/copy",
        "A file or folder of a task's sandbox as a tar archive",
        {
            200: Response("the archive, without links and files of secrets", TAR),
            403: Response("the file holds a secret", "Message"),
            **_IN_TASK,
        },
        body="CopiedPath",
        body_is_required=True,
    ),
    _post(
        "note_run",
        "/v1/runs/{id}/notes",
        "Keep tags and a note of a run, by its number or id, in place of those before",
        {200: Response("kept", "Notes"), 400: _NONSENSE, 404: _NOT_FOUND},
        body="Notes",
        body_is_required=True,
    ),
    _post("stop", "/v1/job/stop", "End the job", _RECEIVED, body="Reason"),
    _post(
        "update",
        "/v1/job/update",
        "Change the options: the body is the options document",
        _GIVEN | {400: Response("the options are wrong; nothing changes", "Problems")},
        body="Options",
        query=_MERGE,
        body_is_required=True,
    ),
    _post(
        "check_update",
        "/v1/job/check",
        "Return the changes that an update to these options would make, and change nothing",
        _GIVEN | {400: Response("the options are wrong", "Problems")},
        body="Options",
        query=_MERGE | _RESTART,
        body_is_required=True,
    ),
    _post(
        "rollback",
        "/v1/job/rollback",
        "Go back to an earlier configuration; without a body to the only other one",
        _CHANGED | {400: _NONSENSE, 404: _NOT_FOUND},
        body="WantedConfiguration",
    ),
    _post(
        "release_machines",
        "/v1/capacity/release",
        "Give back the machines that were bought and on which nothing runs",
        _RECEIVED | {404: Response("no machines are bought for it", TEXT)},
        body="Reason",
    ),
    _post(
        "uninstall",
        "/v1/uninstall",
        "End everything, leave nothing behind; cannot be taken back",
        _RECEIVED,
        body="Reason",
    ),
    _post(
        "record",
        "/v1/state/record",
        "The last turns of the scheduler, without secrets, to be played again",
        {
            200: Response("as they are now", "Any"),
            409: Response("nothing is recorded yet", "Message"),
        },
    ),
    Operation(
        "refresh",
        "PUT",
        "/v1/state/refresh",
        "Refresh the cache of the state, of which there is none",
        {409: Response("there is no cache", "Message")},
    ),
)

#: All operations; where two paths fit a request the first one is meant.
OPERATIONS: tuple[Operation, ...] = (*_SHOWN, *_VERBS)
