"""The queue's HTTP API: paths, statuses and rights over one ``QueueService``.

A team says its token and sees and touches its own jobs; the token of the queue is the operator's.
Code comes first, under its SHA-256, then the job that names it. Orders are in the audit log before
they are carried out. Nothing is kept between requests.
"""

from __future__ import annotations

import http.client
import logging
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dcos_tensorflow.api.audit import AuditEntry, AuditLog
from dcos_tensorflow.api.callers.access import Access, AccessRefused, Right, is_foreign
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.queue_service.code_store import CodeRefused, CodeStore
from dcos_tensorflow.queue_service.jobs import Asker, Refused, Request
from dcos_tensorflow.queue_service.members import Members
from dcos_tensorflow.queue_service.rights import Rights
from dcos_tensorflow.queue_service.scheduler_tasks import Installed
from dcos_tensorflow.queue_service.service import QueueService
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.errors import StateError
from dcos_tensorflow.window.forwarding import forwarded
from untrusted_input.bounded_body import BodyTooLong, body_of

log = logging.getLogger(__name__)

_MOST_BODY = 1_000_000
#: Behind so many slashes of a path stands what the scheduler of a job is asked.
_OF_JOB = 4

Handler = Callable[[HttpRequest, Asker], Awaitable[Response]]


class _Refusal(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    why: str


@dataclass(frozen=True)
class Schedulers:
    """What the API has to know of the jobs' schedulers."""

    rights: Rights
    installed: Installed


class QueueApi:
    """The routes over one queue."""

    def __init__(
        self,
        service: QueueService,
        access: Access,
        members: Members,
        audit: AuditLog,
        *,
        code: CodeStore,
        schedulers: Schedulers,
    ) -> None:
        self._members = members
        self._schedulers = schedulers
        self._service = service
        self._access = access
        self._audit = audit
        self._code = code

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/v1/health", self._health),
                Route("/v1/jobs", self._guarded(self._jobs, Right.READ), methods=["GET"]),
                Route("/v1/jobs", self._guarded(self._submit), methods=["POST"]),
                *(
                    Route(
                        f"/v1/jobs/{{job:path}}/{verb}",
                        self._guarded(self._verb(act)),
                        methods=["POST"],
                    )
                    for verb, act in (
                        ("cancel", self._service.cancel),
                        ("hold", self._service.hold),
                        ("release", self._service.release),
                    )
                ),
                Route("/v1/jobs/{job:path}", self._guarded(self._job, Right.READ)),
                Route(
                    "/v1/services/{job}/{path:path}",
                    self._guarded(self._of_job),
                    methods=["GET", "POST", "PUT", "DELETE"],
                ),
                Route("/v1/plans/deploy", self._guarded(self._deployed, Right.READ)),
                Route("/v1/state/frameworkId", self._guarded(self._framework, Right.READ)),
                Route("/v1/history", self._guarded(self._history, Right.READ)),
                Route("/v1/teams", self._guarded(self._teams, Right.READ)),
                Route("/v1/code/{name}", self._guarded(self._has_code), methods=["GET"]),
                Route("/v1/code/{name}", self._guarded(self._put_code), methods=["PUT"]),
                *(
                    Route(
                        f"/v1/schedulers/{{job:path}}{part}",
                        self._of_scheduler(answer),
                        methods=[method],
                    )
                    for part, answer, method in (
                        ("/code", self._code_of, "GET"),
                        ("/refused", self._cannot_run, "POST"),
                        ("", self._attended, "GET"),
                    )
                ),
            ]
        )

    def _guarded(self, handler: Handler, right: Right = Right.OPERATE) -> Any:
        async def endpoint(request: HttpRequest) -> Response:
            who = ""
            try:
                caller = await run_in_threadpool(self._access.admit, request, right)
                who = caller.name
                if is_foreign(request, asks=self._access.asks):
                    return self._answer(request, who, 403, "a page of another site may not ask")
                answer = await handler(request, self._members.asker(caller))
            except Exception as error:
                return self._told(request, who, error)
            if request.method != "GET":
                self._note(request, who, answer.status_code, "")
            return answer

        return endpoint

    def _of_scheduler(self, handler: Callable[[HttpRequest], Awaitable[Response]]) -> Any:
        """Return an endpoint for the schedulers of a job's team alone, by their token."""

        async def endpoint(request: HttpRequest) -> Response:
            said = request.headers.get("authorization", "").removeprefix("Bearer ")
            team = await run_in_threadpool(self._service.team_of, request.path_params["job"])
            teams = self._service.team_names() if team is None else (team,)
            if not self._schedulers.rights.are_said(said, teams):
                return self._answer(request, "", 401, "this is for the schedulers of its team")
            try:
                return await handler(request)
            except Exception as error:
                return self._told(request, "a scheduler", error)

        return endpoint

    async def _attended(self, request: HttpRequest) -> Response:
        job = request.path_params["job"]
        return JSONResponse(await run_in_threadpool(self._service.attended, job))

    async def _code_of(self, request: HttpRequest) -> Response:
        return FileResponse(self._service.code_of(request.path_params["job"]))

    async def _cannot_run(self, request: HttpRequest) -> Response:
        told = _Refusal.model_validate_json(await body_of(request, _MOST_BODY))
        await run_in_threadpool(self._service.cannot_run, request.path_params["job"], told.why)
        return JSONResponse({})

    def _told(self, request: HttpRequest, who: str, error: Exception) -> Response:
        match error:
            case AccessRefused():
                refusal = error.refusal
                return self._answer(request, refusal.caller, refusal.status, refusal.why)
            case Refused():
                return self._answer(request, who, error.status, str(error))
            case BodyTooLong():
                return self._answer(request, who, 413, str(error))
            case OptionsError() | CodeRefused():
                return self._answer(request, who, 400, str(error))
            case ValidationError():
                problems = (
                    f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()
                )
                return self._answer(request, who, 400, "; ".join(problems))
            case ClientDisconnect():
                return self._answer(request, who, 400, "the body is not complete")
            case StateError():
                return self._answer(request, who, 503, f"it is not stored yet: {error}")
        log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
        return self._answer(request, who, 500, "internal error; the queue's log has the details")

    def _answer(self, request: HttpRequest, who: str, status: int, message: str) -> Response:
        if request.method != "GET" or status in (401, 403):
            self._note(request, who, status, message)
        return JSONResponse({"message": message}, status)

    def _note(self, request: HttpRequest, who: str, status: int, message: str) -> None:
        client = request.client
        peer = f"{client.host}:{client.port}" if client is not None else ""
        verb = f"{request.method} {request.url.path}"
        self._audit.note(AuditEntry(who, peer, verb, status, message))

    async def _health(self, request: HttpRequest) -> Response:
        return JSONResponse({"service": "queue", "name": self._service.name})

    async def _deployed(self, request: HttpRequest, asker: Asker) -> Response:
        """Answer as a service of the DC/OS SDK: of an uninstall, whether nothing is left."""
        installed = self._schedulers.installed
        done = installed.is_gone or not installed.ends
        plan = {"phases": [], "errors": [], "strategy": "serial"}
        return JSONResponse(
            {**plan, "status": "COMPLETE" if done else "IN_PROGRESS"}, 200 if done else 202
        )

    async def _framework(self, request: HttpRequest, asker: Asker) -> Response:
        found = self._schedulers.installed.framework_id
        if not found:
            return PlainTextResponse("Element not found", 404)
        return JSONResponse([found])

    async def _jobs(self, request: HttpRequest, asker: Asker) -> Response:
        return JSONResponse(await run_in_threadpool(self._service.lines, asker))

    async def _job(self, request: HttpRequest, asker: Asker) -> Response:
        job = request.path_params["job"]
        return JSONResponse(await run_in_threadpool(self._service.line_of, asker, job))

    async def _history(self, request: HttpRequest, asker: Asker) -> Response:
        given = request.query_params.get("since", "0")
        since = float(given) if given.replace(".", "", 1).isdecimal() else 0.0
        return JSONResponse(await run_in_threadpool(self._service.history, asker, since))

    async def _teams(self, request: HttpRequest, asker: Asker) -> Response:
        return JSONResponse(await run_in_threadpool(self._service.teams))

    async def _of_job(self, request: HttpRequest, asker: Asker) -> Response:
        """Pass a request on to the scheduler of a job.

        A team reads: what it may run was looked at when the job was submitted.
        """
        if asker.team and request.method != "GET":
            raise Refused("a team may read of its job's scheduler; cancel ends a job", 403)
        job = request.path_params["job"]
        api = await run_in_threadpool(self._service.api_of, asker, job)
        body = await body_of(request, _MOST_BODY)
        try:
            return await forwarded(request, api, body, _OF_JOB)
        except (OSError, http.client.HTTPException) as error:
            raise Refused(f"the scheduler of {job} does not answer: {error}", 503) from error

    async def _submit(self, request: HttpRequest, asker: Asker) -> Response:
        asked = Request.model_validate_json(await body_of(request, _MOST_BODY))
        job = await run_in_threadpool(self._service.submit, asker, asked)
        return JSONResponse({"job": job}, 201)

    def _verb(self, act: Callable[[Asker, str], None]) -> Handler:
        async def verb(request: HttpRequest, asker: Asker) -> Response:
            job = request.path_params["job"]
            await run_in_threadpool(act, asker, job)
            return JSONResponse({"job": job})

        return verb

    async def _has_code(self, request: HttpRequest, asker: Asker) -> Response:
        if self._code.place(str(request.path_params["name"])).is_file():
            return JSONResponse({"there": True})
        raise Refused("this code is not here", 404)

    async def _put_code(self, request: HttpRequest, asker: Asker) -> Response:
        with closing(self._code.receiving(str(request.path_params["name"]))) as coming:
            async for piece in request.stream():
                await run_in_threadpool(coming.add, piece)
            await run_in_threadpool(coming.whole)
        return JSONResponse({"there": True}, 201)
