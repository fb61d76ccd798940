"""The ASGI application: paths, methods and statuses; the content comes from ``api.views``.

Made by ``scheduler.scheduler`` with itself as the ``StateSource``; served by ``api.server``. Paths
are those of ``api.operations``: the DC/OS SDK's, with more beside them (docs/api.md).
Every answer is one view of one state; nothing is kept between requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from dcos_tensorflow.api import openapi, pages, recorded, schemas, verbs
from dcos_tensorflow.api.answering import Answering, Handler, OrderHandler, ShownView
from dcos_tensorflow.api.answers import json_answer
from dcos_tensorflow.api.audit import AuditLog
from dcos_tensorflow.api.callers.access import Access, Right
from dcos_tensorflow.api.errors import ElementNotFound
from dcos_tensorflow.api.live import Live
from dcos_tensorflow.api.metrics import Metrics, dropwizard_body, prometheus_text
from dcos_tensorflow.api.operations import OPERATIONS
from dcos_tensorflow.api.redaction import redact, redact_text
from dcos_tensorflow.api.source import StateSource, Usages
from dcos_tensorflow.api.tasks import archive, commands, files
from dcos_tensorflow.api.verbs import PLAN_VERBS, POD_VERBS, Reply
from dcos_tensorflow.api.views import (
    cluster,
    configurations,
    curves,
    debug,
    health,
    job,
    plans,
    pods,
)
from dcos_tensorflow.api.views import machines as capacity
from dcos_tensorflow.api.views import unit_views as units
from dcos_tensorflow.core.model.controls import DEPLOY
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.keeper import Keeper
from dcos_tensorflow.history.points import Points
from dcos_tensorflow.records import dataclass
from untrusted_input.package_options import merge

#: No value of the state store may be larger: larger options could not be kept.
_MAX_OPTIONS_BYTES = 1_000_000
#: How many files are read at once: agents that do not answer must not take all threads.
_READERS = 8

#: The names of files that tasks fetch: no separator, no leading dot.
_ARTIFACT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")

#: What errors name, for a caller that has mistyped one.
_VERBS = [f"{found.method} {found.path}" for found in OPERATIONS if found.is_verb]


def create_app(
    source: StateSource,
    *,
    access: Access | None = None,
    metrics: Metrics | None = None,
    audit: AuditLog | None = None,
    curves: Curves | None = None,
    history: Keeper | None = None,
) -> Starlette:
    """Return the application. ``access`` says who may ask for all but health and artifacts.

    ``metrics`` and ``curves`` are what the scheduler feeds; without it they stay as they begin.
    ``history`` knows the runs that are kept.
    Orders, and who was refused, are written to ``audit``.
    """
    fed = _Fed(metrics or Metrics(), curves or Curves(), history)
    api = _Api(source, access or Access(), audit or AuditLog(), fed)
    app = Starlette(
        routes=[*pages.routes(), *api.routes()],
        exception_handlers={404: api.no_route, 405: api.no_route},
    )
    app.router.redirect_slashes = False
    return app


def watched(state: ServiceState, usages: Usages = MappingProxyType({})) -> schemas.Watched:
    """Return what the dashboard follows (``/v1/events``), with whatever secrets the state has."""
    return {
        "job": job.job(state, usages),
        "why": job.why(state),
        "plans": {name: plans.plan_body(plan) for name, plan in plans.known(state).items()},
    }


@dataclass(frozen=True)
class _Fed:
    """What the scheduler feeds beside the state."""

    metrics: Metrics
    #: The curves of the present run.
    curves: Curves
    #: The runs that are kept; None where none are.
    history: Keeper | None


class _Api:
    def __init__(self, source: StateSource, access: Access, audit: AuditLog, fed: _Fed) -> None:
        self._source = source
        self._answering = Answering(source, access, audit)
        self._metrics = fed.metrics
        self._curves = fed.curves
        self._history = fed.history
        self._live = Live(source.state, self._watched)
        self._units = units.UnitsView()

    def routes(self) -> list[Route]:
        """Return the route of every operation. Raises ValueError when table and code differ."""
        endpoints = {**self._views(), **self._others(), **self._orders()}
        unknown = {operation.id for operation in OPERATIONS} ^ set(endpoints)
        if unknown:
            raise ValueError(f"operations and endpoints differ in {', '.join(sorted(unknown))}")
        return [
            Route(
                # A file's path may have slashes in it.
                operation.path.replace("{file}", "{file:path}"),
                endpoints[operation.id],
                methods=[operation.method],
            )
            for operation in OPERATIONS
        ]

    def _views(self) -> dict[str, Handler]:
        """Return what shows a part of the state, by the operation's id."""
        options, stored = self._source.configuration, self._source.configurations
        refused = self._source.refused_options
        views: dict[str, ShownView] = {
            "plans": lambda s, r: plans.plan_names(s),
            "pods": lambda s, r: pods.pod_names(s),
            "pods_status": lambda s, r: pods.pods_status(s),
            "pod_status": lambda s, r: pods.pod_status(s, _part(r, "name")),
            "pod_info": lambda s, r: pods.pod_info(s, _part(r, "name")),
            "endpoints": lambda s, r: cluster.endpoint_names(s),
            "endpoint": lambda s, r: cluster.endpoint(s, _part(r, "name")),
            "framework_id": lambda s, r: configurations.framework_id(s),
            "properties": lambda s, r: sorted(configurations.properties(s)),
            "property": lambda s, r: configurations.property_value(s, _part(r, "name")),
            "configurations": lambda s, r: configurations.configuration_ids(s, stored()),
            "target_id": lambda s, r: configurations.target_id(s),
            "target": lambda s, r: configurations.target(s, options(), refused()),
            "configuration": lambda s, r: configurations.configuration(
                s, options(), refused(), stored(), _part(r, "id")
            ),
            "offers": lambda s, r: debug.offers(s),
            "offers_v1": lambda s, r: debug.offers(s),
            "debug_plans": lambda s, r: debug.debug_plans(s, *_selection(r)),
            "debug_task_statuses": lambda s, r: debug.task_statuses(s, *_selection(r)),
            "debug_reservations": lambda s, r: debug.reservations(s),
            "cluster": lambda s, r: cluster.cluster(s),
            "cluster_of_task": lambda s, r: cluster.cluster_of_task(s, _part(r, "name")),
            "job": lambda s, r: job.job(s, self._source.usages()),
            "why": lambda s, r: job.why(s),
            "capacity": lambda s, r: capacity.capacity(s),
            "units": lambda s, r: self._units.shown(s, r.query_params.get("state", "")),
            "metrics": lambda s, r: dropwizard_body(
                s, self._metrics.measured(), self._source.usages()
            ),
        }
        return {name: self._answering.show(view) for name, view in views.items()}

    def _others(self) -> dict[str, Handler]:
        """Return what answers in a way of its own, by the operation's id."""
        guarded, caught = self._answering.guarded, self._answering.caught
        return {
            "plan": guarded(self._plan),
            "deploy_plan": guarded(self._plan),
            "prometheus": guarded(self._prometheus),
            "health": caught(self._health),
            "artifact": caught(self._artifact),
            "openapi": caught(self._openapi),
            "pod_file": guarded(self._read, _READERS),
            "pod_exec_output": guarded(self._command_output, _READERS),
            "curves": guarded(self._told_points, _READERS),
            "runs": guarded(self._kept_runs, _READERS),
            "events": guarded(self._events),
        }

    def _orders(self) -> dict[str, Handler]:
        ordering, source = self._answering.ordering, self._source
        found: dict[str, Handler] = {
            "stop": ordering(lambda s, r, b: verbs.stop(s, self._why(s, b))),
            "update": ordering(self._update, _MAX_OPTIONS_BYTES),
            "check_update": ordering(self._check_update, _MAX_OPTIONS_BYTES),
            "rollback": ordering(
                lambda s, r, b: verbs.rollback(s, self._source.configurations(), b)
            ),
            "release_machines": ordering(
                lambda s, r, b: verbs.release_machines(s, self._why(s, b))
            ),
            "note_run": ordering(self._note_run),
            "record": ordering(
                lambda s, r, b: recorded.record(s, source.recording(), self._answering.secrets(s))
            ),
            "uninstall": ordering(lambda s, r, b: verbs.uninstall(s, self._why(s, b))),
            "refresh": ordering(_refresh),
            "pod_exec": ordering(
                lambda s, r, b: commands.begin(s, _part(r, "name"), b, source.ask_runner)
            ),
            "pod_exec_stop": ordering(
                lambda s, r, b: commands.end(s, _part(r, "name"), _part(r, "id"), source.ask_runner)
            ),
            "pod_copy": ordering(
                lambda s, r, b: archive.copy(
                    s, _part(r, "name"), b, source, self._answering.secrets(s)
                )
            ),
        }
        for word in PLAN_VERBS:
            found[f"plan_{word}"] = ordering(_plan_verb(word))
            found[f"deploy_plan_{word}"] = ordering(_plan_verb(word))
        for word in POD_VERBS:
            found[f"pod_{word}"] = ordering(_pod_verb(word))
        return found

    def _plan(self, state: ServiceState, request: Request) -> Response:
        name = request.path_params.get("plan", DEPLOY)
        body, status = plans.plan_and_status(state, name)
        return json_answer(body, status, self._answering.secrets(state))

    def _prometheus(self, state: ServiceState, request: Request) -> Response:
        text = prometheus_text(state, self._metrics.measured(), self._source.usages())
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    def _events(self, state: ServiceState, request: Request) -> Response:
        return self._live.stream()

    def _watched(self, state: ServiceState) -> dict[str, Any]:
        found: dict[str, Any] = redact(
            watched(state, self._source.usages()), self._answering.secrets(state)
        )
        return found

    def _health(self, request: Request) -> Response:
        # Open without the token, for Marathon's health checks; the reasons are not.
        state = self._source.state()
        value, reasons = health.health(state, self._source.leader())
        body: dict[str, Any] = {"value": int(value)}
        if "verbose" in request.query_params and self._answering.may_read(request):
            body["reasons"] = reasons
        return json_answer(body, int(value), self._answering.secrets(state))

    def _artifact(self, request: Request) -> Response:
        # Open without the token: Mesos' fetcher has none. There is no listing, and the names that
        # ``scheduler.artifacts`` gives carry a hash of the content: it cannot be guessed.
        name = _part(request, "name")
        path = self._source.artifact(name) if _ARTIFACT.fullmatch(name) else None
        if path is None or not path.is_file():
            raise ElementNotFound(name)
        return FileResponse(
            path, media_type="application/octet-stream", stat_result=path.stat(), filename=name
        )

    def _openapi(self, request: Request) -> Response:
        self._answering.admit(request, Right.READ)
        return Response(openapi.text(), media_type="application/json")

    def _read(self, state: ServiceState, request: Request) -> Response:
        asked = files.wanted(
            state,
            self._source.configurations().values(),
            _part(request, "name"),
            _part(request, "file"),
            request.query_params,
        )
        part = self._source.read_file(
            asked.agent_id,
            asked.task_id,
            asked.file,
            asked.begin,
            asked.length + asked.offset - asked.begin,
        )
        secrets = self._answering.secrets(state)
        return json_answer(files.body(asked, part.data, part.size, secrets), secrets=secrets)

    def _command_output(self, state: ServiceState, request: Request) -> Response:
        name, identifier = _part(request, "name"), _part(request, "id")
        news = commands.output(
            state, name, identifier, request.query_params, self._source.ask_runner
        )
        return json_answer(news, secrets=self._answering.secrets(state))

    def _told_points(self, state: ServiceState, request: Request) -> Response:
        run, history = request.query_params.get("run", ""), self._history
        points: Points | None = None
        if run:
            points = history.points_of(run) if history is not None else None
        else:
            if history is not None:
                history.wait_for_earlier()
            points = self._curves.points()
        if points is None:
            raise ElementNotFound(run)
        return json_answer(curves.curves(points), secrets=self._answering.secrets(state))

    def _kept_runs(self, state: ServiceState, request: Request) -> Response:
        history = self._history
        if history is not None:
            history.wait_for_earlier()
        records = history.records() if history is not None else []
        return json_answer(curves.runs(records), secrets=self._answering.secrets(state))

    def _note_run(self, state: ServiceState, request: Request, body: bytes) -> Reply:
        notes, run = verbs.notes_in(body), _part(request, "id")
        if self._history is None or not self._history.note(run, notes):
            raise ElementNotFound(run)
        return Reply(200, dict(notes))

    def _why(self, state: ServiceState, body: bytes) -> str:
        return redact_text(verbs.reason_in(body), self._answering.secrets(state))

    def _update(self, state: ServiceState, request: Request, body: bytes) -> Reply:
        return self._changed(request, body, lambda spec: verbs.update(state, spec))

    def _check_update(self, state: ServiceState, request: Request, body: bytes) -> Reply:
        restarted = verbs.is_true(request.query_params, "restart")
        return self._changed(
            request,
            body,
            lambda spec: verbs.check_update(state, spec, restarted=restarted),
            restarted=restarted,
        )

    def _changed(
        self,
        request: Request,
        body: bytes,
        answer: Callable[[ServiceSpec], Reply],
        *,
        restarted: bool = False,
    ) -> Reply:
        """Answer for the service that it would be with the options in a body."""
        options = verbs.options_in(body)
        if verbs.is_true(request.query_params, "merge"):
            in_force = self._source.options_in_force()
            if in_force is None:
                return verbs.options_not_known()
            options = merge(in_force, options)
        return answer(self._source.change_configuration(options, restarted=restarted))

    async def no_route(self, request: Request, error: Exception) -> Response:
        """Answer a path or method that does not exist, and say what there is to order."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        what = "no such path" if status == 404 else "this path has no such method"
        message = f"{what}: {request.method} {request.url.path}"
        return json_answer({"message": message, "verbs": _VERBS}, status, headers=headers)


def _part(request: Request, name: str) -> str:
    return str(request.path_params[name])


def _selection(request: Request) -> tuple[str | None, str | None, str | None]:
    query = request.query_params
    return query.get("plan"), query.get("phase"), query.get("step")


def _plan_verb(word: str) -> OrderHandler:
    def verb(state: ServiceState, request: Request, body: bytes) -> Reply:
        if word == "start":
            verbs.check_plan_parameters(body)
        plan = request.path_params.get("plan", DEPLOY)
        _, phase, step = _selection(request)
        return verbs.plan_verb(state, plan, word, phase, step)

    return verb


def _pod_verb(word: str) -> OrderHandler:
    return lambda state, request, body: verbs.pod_verb(state, _part(request, "name"), word, body)


def _refresh(state: ServiceState, request: Request, body: bytes) -> Reply:
    # What is shown is what the one writer holds: nothing can have changed behind its back.
    return Reply(409, {"message": "there is no cache that could be refreshed"})
