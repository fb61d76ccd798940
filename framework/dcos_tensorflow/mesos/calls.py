"""Calls to the master: everything but SUBSCRIBE.

Used by the driver from whichever thread makes a call; each thread has a connection of its own, so
no call waits for another's answer and no lock is held during I/O.

A call is sent twice only if that can do no harm. ACCEPT is never repeated once bytes of it were
written: the master answers the second ACCEPT of an offer with TASK_DROPPED for the
very task ids that may be running. Its failure is reported as ambiguous instead.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.connection import Authentication, ConnectionFactory, HttpConnection
from dcos_tensorflow.mesos.stream import REDIRECTS, SCHEDULER_PATH
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

#: Acting twice on it is not the same as acting once.
NOT_IDEMPOTENT = frozenset({"ACCEPT"})
#: Answers that a proxy or a dying master gives after the call may have been handled.
#: 503 is not one of them: Mesos gives it before it looks at a call.
_UNDECIDED = frozenset({500, 502, 504})


class CallError(Exception):
    """A call did not succeed. ``ambiguous``: the master may have acted on it all the same."""

    def __init__(self, call: str, message: str, ambiguous: bool = False) -> None:
        super().__init__(f"{call}: {message}")
        self.call = call
        self.message = message
        self.ambiguous = ambiguous


class NotConnected(CallError):
    """There is no subscription, so the call was not sent."""


class CallRefused(CallError):
    """The master answered with an error; ``status`` is its HTTP status."""

    def __init__(self, call: str, status: int, message: str) -> None:
        super().__init__(call, f"HTTP {status}: {message}", status in _UNDECIDED)
        self.status = status


class NotLeading(CallError):
    """The master does not lead any more and did nothing; ``location`` says who does."""

    def __init__(self, call: str, location: str) -> None:
        super().__init__(call, f"the master does not lead any more, {location} does")
        self.location = location


class CallUnanswered(CallError):
    """The connection failed or the answer did not come in time."""


@dataclass(frozen=True)
class Session:
    """What a call needs to know of the current subscription."""

    address: Address
    stream_id: str
    epoch: int


class CallConnections:
    """Sends calls, one kept-alive connection per calling thread."""

    def __init__(self, connect: ConnectionFactory, authentication: Authentication) -> None:
        self._connect = connect
        self._authentication = authentication
        self._lock = threading.Lock()
        self._closed = False
        self._idle: dict[threading.Thread, _Kept] = {}

    def send(self, session: Session, body: Mapping[str, Any], path: str = SCHEDULER_PATH) -> Any:
        """Send one call and return the answer's JSON; {} when it has no body.

        A call that is refused with 401 was not looked at: it goes again when there is another
        login. Raises CallRefused, NotLeading or CallUnanswered.
        """
        call = str(body.get("type", ""))
        data = json.dumps(body).encode()
        header = self._login(call)
        try:
            return self._send(session, call, path, data, header)
        except CallRefused as refused:
            if refused.status != 401 or not self._authentication.refused(header):
                raise
        return self._send(session, call, path, data, self._login(call))

    def _login(self, call: str) -> Mapping[str, str]:
        try:
            return self._authentication.header()
        except OSError as error:
            raise CallUnanswered(call, str(error)) from error

    def _send(
        self, session: Session, call: str, path: str, data: bytes, login: Mapping[str, str]
    ) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **login}
        if session.stream_id:
            headers["Mesos-Stream-Id"] = session.stream_id
        connection = self._take(session)
        try:
            request = _Request(call, path, data, headers)
            return self._exchange(connection, request, may_repeat=True)
        except BaseException:
            connection.close()
            raise
        finally:
            self._keep(session, connection)

    def close(self) -> None:
        """Close all idle connections for good; one in use is closed after its answer."""
        with self._lock:
            self._closed = True
            kept = list(self._idle.values())
            self._idle.clear()
        for each in kept:
            each.connection.close()

    def _exchange(self, connection: HttpConnection, request: _Request, may_repeat: bool) -> Any:
        call = request.call
        writing = False
        try:
            if connection.stale():
                connection.close()
                connection.connect()
            writing = True
            connection.request("POST", request.path, body=request.data, headers=request.headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, HTTPException) as error:
            connection.close()
            timed_out = isinstance(error, TimeoutError)
            repeatable = writing and not timed_out and call not in NOT_IDEMPOTENT
            if may_repeat and repeatable:
                return self._exchange(connection, request, may_repeat=False)
            what = "no answer in time" if timed_out else str(error) or type(error).__name__
            raise CallUnanswered(call, f"{connection.address}: {what}", writing) from error
        location = response.headers.get("Location", "")
        if response.status in REDIRECTS and location:
            raise NotLeading(call, location)
        text = answer.decode("utf-8", "replace").strip()
        if not 200 <= response.status < 300:
            raise CallRefused(call, response.status, text or response.reason)
        return _json_or_nothing(text)

    def _take(self, session: Session) -> HttpConnection:
        thread = threading.current_thread()
        with self._lock:
            kept = self._idle.pop(thread, None)
            dead = [each for each in self._idle if not each.is_alive()]
            orphans = [self._idle.pop(each) for each in dead]
        for orphan in orphans:
            orphan.connection.close()
        if kept is not None and kept.session == session:
            return kept.connection
        if kept is not None:
            kept.connection.close()
        return self._connect(session.address)

    def _keep(self, session: Session, connection: HttpConnection) -> None:
        with self._lock:
            if not self._closed:
                self._idle[threading.current_thread()] = _Kept(session, connection)
                return
        connection.close()


@dataclass(frozen=True)
class _Request:
    call: str
    path: str
    data: bytes
    headers: dict[str, str]


@dataclass(frozen=True)
class _Kept:
    session: Session
    connection: HttpConnection


def _json_or_nothing(text: str) -> Any:
    try:
        return read_json(text) if text else {}
    except ValueError:
        return {}
