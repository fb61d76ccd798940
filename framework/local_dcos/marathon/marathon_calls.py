"""Marathon over HTTP, below ``/service/marathon``: the calls of the ``dcos`` CLI and of Cosmos.

``application`` puts the table behind a server. Other calls are refused by name.
"""

from __future__ import annotations

import time
from typing import Any

from local_dcos.errors import MarathonError
from local_dcos.http_calls import Answer, Call, Table, json_answer, text_answer
from local_dcos.marathon import marathon_views as views
from local_dcos.marathon.app_records import AppRecord, TaskRecord, timestamp
from local_dcos.marathon.marathon import Marathon

Json = dict[str, Any]

_VERSION = "1.11.0"
#: The second is the alias that clusters have had since before there were services.
_BASE = "(?:/service/marathon|/marathon)"
_APP = f"{_BASE}/v2/apps/(.+?)"


class MarathonCalls:
    """Answers the requests of Marathon's clients."""

    def __init__(self, marathon: Marathon, address: str) -> None:
        """``address`` is ours."""
        self._marathon = marathon
        self._address = address

    def table(self) -> Table:
        """Return what is answered. Longer paths come first: an app's id may hold slashes."""
        table = Table()
        for methods, path, handler in (
            ("GET", f"{_BASE}/ping", lambda call: text_answer("pong\n")),
            ("GET", f"{_BASE}/v2/info", self._info),
            ("GET", f"{_BASE}/v2/leader", lambda call: json_answer({"leader": self._address})),
            ("GET", f"{_BASE}/v2/apps/?", self._apps),
            ("POST", f"{_BASE}/v2/apps/?", self._create),
            ("GET", f"{_APP}/versions/([^/]+)", self._version),
            ("GET", f"{_APP}/versions/?", self._versions),
            ("GET", f"{_APP}/tasks/?", self._tasks_of),
            ("DELETE", f"{_APP}/tasks/([^/]+)", self._kill),
            ("DELETE", f"{_APP}/tasks/?", self._kill),
            ("POST", f"{_APP}/restart/?", self._restart),
            ("GET", _APP, self._app),
            ("PUT PATCH", _APP, self._update),
            ("DELETE", _APP, self._delete),
            ("GET", f"{_BASE}/v2/tasks/?", self._tasks),
            ("GET", f"{_BASE}/v2/deployments/?", self._deployments),
            ("GET", f"{_BASE}/v2/queue/?", self._queue),
            ("DELETE", f"{_BASE}/v2/queue/(.+)/delay", self._reset_delay),
            ("GET", f"{_BASE}/v2/groups/?(.*)", self._groups),
            ("GET", f"{_BASE}/v2/pods/?(?:::status)?", lambda call: json_answer([])),
            ("*", f"{_BASE}(/.*)?", _refuse),
        ):
            table.add(methods, path, handler)
        return table

    # -- looking -------------------------------------------------------------------------------

    def _info(self, call: Call) -> Answer:
        return json_answer(
            {
                "name": "marathon",
                "version": _VERSION,
                "frameworkId": self._marathon.framework_id,
                "leader": self._address,
                "elected": True,
            }
        )

    def _apps(self, call: Call) -> Answer:
        wanted = call.query.get("id", "")
        found = [one for one in self._views() if wanted in one["id"]]
        for selector in filter(None, call.query.get("label", "").split(",")):
            name, _, value = selector.partition("==")
            found = [
                one for one in found if name in one["labels"] and value in ("", one["labels"][name])
            ]
        return json_answer({"apps": found})

    def _app(self, call: Call, given: str) -> Answer:
        return json_answer({"app": self._view(self._marathon.app(_id(given)))})

    def _versions(self, call: Call, given: str) -> Answer:
        record = self._marathon.app(_id(given))
        earlier = [version for version, _ in reversed(record.history)]
        return json_answer({"versions": [record.version, *earlier]})

    def _version(self, call: Call, given: str, version: str) -> Answer:
        record = self._marathon.app(_id(given))
        known = {**dict(record.history), record.version: record.definition}
        if version not in known:
            text = f"App '{record.app_id}' does not exist in version {version}"
            raise MarathonError(404, text)
        return json_answer({**known[version], "version": version})

    def _tasks_of(self, call: Call, given: str) -> Answer:
        record = self._marathon.app(_id(given))
        return json_answer({"tasks": self._shown(self._marathon.tasks(record.app_id))})

    def _tasks(self, call: Call) -> Answer:
        return json_answer({"tasks": self._shown(self._marathon.tasks())})

    def _deployments(self, call: Call) -> Answer:
        return json_answer(views.deployments(self._marathon.apps()))

    def _queue(self, call: Call) -> Answer:
        return json_answer(views.queue(self._marathon.apps(), self._marathon.tasks(), time.time()))

    def _groups(self, call: Call, given: str) -> Answer:
        apps = self._views()
        path = "/" + given.strip("/")
        if path != "/" and not any(one["id"].startswith(path + "/") for one in apps):
            raise MarathonError(404, f"Group '{path}' does not exist")
        return json_answer(views.group(path, apps, timestamp(time.time())))

    def _view(self, record: AppRecord) -> Json:
        return views.app(record, self._marathon.tasks(record.app_id))

    def _views(self) -> list[Json]:
        return [self._view(one) for one in self._marathon.apps()]

    def _shown(self, tasks: list[TaskRecord]) -> list[Json]:
        return [views.task(one) for one in tasks]

    # -- changing ------------------------------------------------------------------------------

    def _create(self, call: Call) -> Answer:
        return json_answer(self._view(self._marathon.create(_body(call))), 201)

    def _update(self, call: Call, given: str) -> Answer:
        body = _body(call)
        if not isinstance(body, dict):
            raise MarathonError(400, "The body is no JSON object")
        whole = not call.flag("partialUpdate", default=True)
        app_id, force = _id(given), call.flag("force")
        known = {one.app_id for one in self._marathon.apps()}
        if app_id not in known and call.method == "PUT":
            record = self._marathon.create({**body, "id": app_id})
            return json_answer(_deployment(record), 201)
        record = self._marathon.update(app_id, body, whole=whole, force=force)
        return json_answer(_deployment(record))

    def _restart(self, call: Call, given: str) -> Answer:
        return json_answer(
            _deployment(self._marathon.restart(_id(given), force=call.flag("force")))
        )

    def _delete(self, call: Call, given: str) -> Answer:
        found = self._marathon.delete(_id(given), force=call.flag("force"))
        return json_answer({"version": found.version, "deploymentId": found.deployment_id})

    def _kill(self, call: Call, given: str, task_id: str | None = None) -> Answer:
        app_id = _id(given)
        ids = None if task_id is None else [task_id]
        if call.flag("scale"):
            raise MarathonError(501, "Not supported by the local DC/OS: killing with scale=true")
        killed = self._marathon.kill(app_id, ids)
        if ids is not None and not killed:
            raise MarathonError(404, f"Task '{task_id}' does not exist")
        shown = self._shown(killed)
        return json_answer({"task": shown[0]} if ids is not None else {"tasks": shown})

    def _reset_delay(self, call: Call, given: str) -> Answer:
        self._marathon.reset_delay(_id(given))
        return Answer(204)


def _id(given: str) -> str:
    return "/" + given.strip("/")


def _body(call: Call) -> Any:
    try:
        return call.json()
    except ValueError as error:
        raise MarathonError(400, f"Invalid JSON: {error}") from error


def _deployment(record: AppRecord) -> Json:
    found = record.deployment
    return {
        "version": record.version,
        "deploymentId": "" if found is None else found.deployment_id,
    }


def _refuse(call: Call, path: str | None) -> Answer:
    raise MarathonError(501, f"Not supported by the local DC/OS: {call.method} {path or '/'}")
