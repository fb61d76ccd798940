"""How a request becomes an answer: rights, errors on the way, the audit log.

Used by ``api.app``, which has the views and the verbs. ``Answering`` lets no caller past without
the right; every exception behind it becomes an answer, too; every order is in the audit log before
it is carried out.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from dcos_tensorflow.api.answers import (
    json_answer,
    message_answer,
    not_found_answer,
    options_answer,
    refused_answer,
)
from dcos_tensorflow.api.audit import AuditEntry, AuditLog, changed
from dcos_tensorflow.api.callers.access import (
    Access,
    AccessRefused,
    Caller,
    Refusal,
    Right,
    is_foreign,
)
from dcos_tensorflow.api.errors import BadRequest, ElementNotFound
from dcos_tensorflow.api.live import TooManyViewers
from dcos_tensorflow.api.redaction import redact_text, secret_values
from dcos_tensorflow.api.source import StateSource
from dcos_tensorflow.api.tasks.commands import NotRunning
from dcos_tensorflow.api.tasks.files import FileRefused, NothingThere
from dcos_tensorflow.api.verbs import Reply
from dcos_tensorflow.core.model.events import ConfigurationChanged, Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.mesos.agent_files import AgentFilesError, FileNotFound, SandboxNotFound
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.scheduler.runners.runner_request import RunnerRefused, RunnerSilent
from untrusted_input.bounded_body import BodyTooLong, body_of

log = logging.getLogger(__name__)

_MAX_BODY_BYTES = 65536
#: How many views are made at once. They wait for nothing, and Python runs one thread at a time:
#: more of them make no view sooner, and the server's and the scheduler's own threads wait for each.
_VIEWERS = 2

ShownView = Callable[[ServiceState, Request], Any]
OrderHandler = Callable[[ServiceState, Request, bytes], Reply]
Handler = Callable[[Request], Awaitable[Response] | Response]


class Answering:
    """Makes endpoints of views and verbs over one source."""

    def __init__(self, source: StateSource, access: Access, audit: AuditLog) -> None:
        self._source = source
        self._access = access
        self._audit = audit
        self._viewers = CapacityLimiter(_VIEWERS)

    # What is shown.

    def show(self, view: ShownView) -> Handler:
        """Let a view answer with JSON."""

        def answer(state: ServiceState, request: Request) -> Response:
            return json_answer(view(state, request), secrets=self.secrets(state))

        return self.guarded(answer)

    def guarded(
        self, answer: Callable[[ServiceState, Request], Response], most_at_once: int = 0
    ) -> Handler:
        """Let only those in who may ask, and only while there is a state to show.

        What waits for others has threads of its own: so many at once.
        """
        limiter = CapacityLimiter(most_at_once) if most_at_once else self._viewers

        async def endpoint(request: Request) -> Response:
            try:
                await self._admitted(request, Right.READ)
                state = self._source.state()
                if state is None:
                    return self._starting()
                return await to_thread.run_sync(answer, state, request, limiter=limiter)
            except Exception as error:
                return self._told(request, error)

        return endpoint

    def caught(self, answer: Callable[[Request], Response]) -> Handler:
        """Turn every failure of a view into an answer; none reaches the server."""

        async def endpoint(request: Request) -> Response:
            try:
                return await to_thread.run_sync(answer, request, limiter=self._viewers)
            except Exception as error:
                return self._told(request, error)

        return endpoint

    # What is ordered.

    def ordering(self, verb: OrderHandler, most_bytes: int = _MAX_BODY_BYTES) -> Handler:
        """Let a verb answer a caller with the right; what it orders is submitted first."""

        def ordered(state: ServiceState, request: Request, body: bytes, who: str) -> Response:
            reply = verb(state, request, body)
            told = reply.body.get("message", "") if isinstance(reply.body, dict) else ""
            # First: what is done has been written down, whatever happens in between.
            self._note(request, who, (reply.status, str(told)), state, reply.event)
            if reply.event is not None:
                self._source.submit(reply.event)
            if reply.then is not None:
                carried_out = reply.then()
                if isinstance(carried_out, Response):
                    return carried_out
                reply = carried_out
            return json_answer(reply.body, reply.status, self.secrets(state))

        async def endpoint(request: Request) -> Response:
            who = ""
            try:
                who = (await self._admitted(request, Right.OPERATE)).name
                body = await body_of(request, most_bytes)
                state = self._source.state()
                if state is None:
                    return self._starting()
                return await run_in_threadpool(ordered, state, request, body, who)
            except Exception as error:
                return self._told(request, error, who)

        return endpoint

    # Rights, and what no caller is shown.

    def admit(self, request: Request, right: Right) -> Caller:
        """Return who asks, and may do that from where it comes. Raises Refused."""
        caller = self._access.admit(request, right)
        if is_foreign(request, asks=self._access.asks):
            why = "a page of another site may read and order nothing here"
            raise AccessRefused(Refusal(403, why, caller.name, is_a_try=right is Right.OPERATE))
        return caller

    async def _admitted(self, request: Request, right: Right) -> Caller:
        """Do the same in the event loop: a refused client costs no other thread anything."""
        if self._access.waits:
            return await run_in_threadpool(self.admit, request, right)
        return self.admit(request, right)

    def may_read(self, request: Request) -> bool:
        """Say whether the caller may read."""
        try:
            self.admit(request, Right.READ)
        except AccessRefused:
            return False
        return True

    def secrets(self, state: ServiceState | None) -> frozenset[str]:
        """Return the texts that are in no answer."""
        if state is None:
            return self._access.secrets
        return secret_values(state, self._source.secret_texts()) | self._access.secrets

    # What else is answered, and what is written down.

    def _starting(self) -> Response:
        leader = self._source.leader()
        message = "the service is starting: its state is not loaded yet"
        if leader:
            message = f"this scheduler is a standby: the service is led by {leader}"
        return json_answer({"message": message}, 503, headers={"retry-after": "1"})

    def _told(self, request: Request, error: Exception, who: str = "") -> Response:
        """Return the answer to what was raised; write down an order, or a token, that was in vain.

        A caller without a token has tried none; the tries of one that waits were written down.
        """
        answer = _answer_to(request, error)
        refusal = error.refusal if isinstance(error, AccessRefused) else None
        if who or (refusal is not None and refusal.is_a_try):
            who = who or (refusal.caller if refusal is not None else "")
            self._note(request, who, (answer.status_code, str(error)), self._state_if_any())
        return answer

    def _state_if_any(self) -> ServiceState | None:
        try:
            return self._source.state()
        except Exception:
            # It is what failed, and was told.
            return None

    def _note(
        self,
        request: Request,
        who: str,
        answered: tuple[int, str],
        state: ServiceState | None,
        event: Event | None = None,
    ) -> None:
        """Write down what a caller asked for, what was answered, and what it changes."""
        secrets = self.secrets(state)
        client, (status, message) = request.client, answered
        asked = f"{request.url.path}?{request.url.query}".removesuffix("?")
        change = None
        if state is not None and isinstance(event, ConfigurationChanged):
            change = changed(state.spec, event.spec)
        self._audit.note(
            AuditEntry(
                who,
                f"{client.host}:{client.port}" if client is not None else "",
                redact_text(f"{request.method} {asked}", secrets),
                status,
                redact_text(message, secrets),
                change,
            )
        )


def _answer_to(request: Request, error: Exception) -> Response:
    match error:
        case AccessRefused():
            return refused_answer(error.refusal)
        case ElementNotFound():
            return not_found_answer()
        case BadRequest() | BodyTooLong():
            return message_answer(str(error), 400)
        case OptionsError():
            return options_answer(error)
        case ClientDisconnect():
            return message_answer("the request ended before its body was complete", 400)
        case FileRefused():
            return message_answer(str(error), 403)
        case NotRunning():
            return message_answer(str(error), 409)
        case RunnerRefused() if error.status in (404, 409):
            return message_answer(error.text, error.status)
        case RunnerRefused() | RunnerSilent():
            return json_answer({"message": str(error)}, 503, headers={"retry-after": "5"})
        case NothingThere() | FileNotFound() | SandboxNotFound():
            return message_answer(str(error), 404)
        case TooManyViewers():
            return json_answer({"message": str(error)}, 503, headers={"retry-after": "5"})
        case AgentFilesError():
            return json_answer({"message": str(error)}, 503, headers={"retry-after": "5"})
    return _broken(request, error)


def _broken(request: Request, error: Exception) -> Response:
    log.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    return message_answer(
        f"internal error ({type(error).__name__}); the scheduler's log has the details", 500
    )
