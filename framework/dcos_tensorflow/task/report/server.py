"""The task runner's HTTP interface: status, order, stop, commands. Every request must be signed.

``main`` starts it; ``runner`` answers. Requests come in on threads of their own, so this module
only reads the request, checks it, and hands it on. It never touches the user's process.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple
from urllib.parse import parse_qs

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.report import authentication
from dcos_tensorflow.task.report.authentication import is_count
from dcos_tensorflow.task.report.listening import MAX_CONNECTIONS
from dcos_tensorflow.task.report.operator_commands import CommandBusy, CommandUnknown, parse_command
from dcos_tensorflow.task.runner import NotAnswering, Runner
from dcos_tensorflow.task.spec import parse_order
from dcos_tensorflow.task.spec_fields import SpecError
from dcos_tensorflow.task.supervise.lifecycle import StaleOrder, TaskEnding

MAX_BODY_BYTES = 1024 * 1024
#: A client that says nothing for so long is let go.
IDLE_SECONDS = 15
#: With ``MAX_CONNECTIONS`` at once the oldest is closed, and none is held longer than this: clients
#: without the token must neither use up the task's threads nor keep others out.
CONNECTION_SECONDS = 60.0
#: How often that is looked at.
LOOK_SECONDS = 1.0
#: Every client of the port can break connections: they are told of no more often than this.
QUIET_SECONDS = 60.0
#: How long an answer is held back at most, until there is something new in it.
MAX_WAIT_SECONDS = 30.0
#: How long the end waits for answers that are under way.
LAST_ANSWERS_SECONDS = 1.0

_METHODS: Dict[str, str] = {
    contract.STATUS_PATH: "GET",
    contract.CLUSTER_PATH: "PUT",
    contract.STOP_PATH: "POST",
    contract.COMMAND_PATH: "POST",
    contract.COMMAND_OUTPUT_PATH: "GET",
    contract.COMMAND_END_PATH: "POST",
}


class RequestError(Exception):
    """The request is refused with this HTTP status; the message goes to the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def start(runner: Runner, token: str, listener: socket.socket) -> "RunnerServer":
    """Serve the clients of ``listener``, in the background."""
    server = RunnerServer(runner, token, listener)
    threading.Thread(
        target=server.serve_forever, args=(LOOK_SECONDS,), name="http", daemon=True
    ).start()
    return server


class RunnerServer(ThreadingHTTPServer):
    """One listening socket; knows the runner and the token."""

    daemon_threads = True

    def __init__(self, runner: Runner, token: str, listener: socket.socket) -> None:
        self.runner = runner
        self.token = token
        self._lock = threading.Lock()
        self._let_go_at: Dict[Any, float] = {}
        self._quiet_until = 0.0
        self._answering = 0
        self._answered = threading.Condition()
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Count a request that was read whole, until it is answered."""
        with self._answered:
            self._answering += 1
        try:
            yield
        finally:
            with self._answered:
                self._answering -= 1
                self._answered.notify_all()

    def end(self) -> None:
        """Listen no more. A client that has asked for the task's end still gets the answer."""
        # Its loop looks up at once.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.shutdown()
        self.server_close()
        with self._answered:
            self._answered.wait_for(lambda: self._answering == 0, LAST_ANSWERS_SECONDS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own; close the oldest when there are too many."""
        with self._lock:
            full = len(self._let_go_at) >= MAX_CONNECTIONS
            oldest = next(iter(self._let_go_at)) if full else None
            self._let_go_at.pop(oldest, None)
            self._let_go_at[request] = time.monotonic() + CONNECTION_SECONDS
        if oldest is not None:
            _cut(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been served."""
        with self._lock:
            self._let_go_at.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that take too long; the serving loop calls it every ``LOOK_SECONDS``."""
        now = time.monotonic()
        with self._lock:
            late = [request for request, end in self._let_go_at.items() if now > end]
        for request in late:
            _cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a broken connection in one line, and one a minute, in the job's log."""
        now = time.monotonic()
        with self._lock:
            if now < self._quiet_until:
                return
            self._quiet_until = now + QUIET_SECONDS
        self.runner.log(f"request from {client_address[0]} failed: {sys.exc_info()[1]}")


def _cut(connection: socket.socket) -> None:
    """End a connection under the thread that serves it; that one then closes it."""
    # It may have ended by itself just now.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: RunnerServer
    protocol_version = "HTTP/1.1"
    server_version = "task-runner"
    sys_version = ""
    timeout = IDLE_SECONDS

    def _serve(self) -> None:
        try:
            body = self._body()
        except RequestError as error:
            self._refuse(error)
            return
        with self.server.answering():
            try:
                self._send(*self._answer(body))
            except RequestError as error:
                self._refuse(error)

    def _refuse(self, error: RequestError) -> None:
        self.close_connection = True
        self._send(error.status, {"error": str(error)})

    def _send(self, status: int, document: Mapping[str, Any]) -> None:
        payload = json.dumps(document).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the access log out of the job's log; what changes anything is logged by name."""

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if self.headers.get("Transfer-Encoding") or not is_count(length):
            raise RequestError(400, "a body must come with its Content-Length")
        if int(length) > MAX_BODY_BYTES:
            raise RequestError(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
        return self.rfile.read(int(length))

    def _answer(self, body: bytes) -> Tuple[int, Mapping[str, Any]]:
        try:
            headers = {name: self.headers.get(name, "") for name in _AUTHENTICATION_HEADERS}
            authentication.check(
                self.server.token, self.command, self.path, headers, body, now=time.time()
            )
        except authentication.NotAuthentic as error:
            raise RequestError(401, str(error)) from None
        path = self.path.partition("?")[0]
        if path not in _METHODS:
            raise RequestError(404, f"there is no {path}; there are {', '.join(_METHODS)}")
        if self.command != _METHODS[path]:
            raise RequestError(405, f"{path} takes {_METHODS[path]} only")
        if path == contract.STATUS_PATH:
            return self._get_status()
        if path == contract.CLUSTER_PATH:
            return self._put_cluster(body)
        if path == contract.STOP_PATH:
            return self._post_stop(body)
        try:
            return self._command(path, body)
        except CommandUnknown as error:
            raise RequestError(404, str(error)) from None
        except CommandBusy as error:
            raise RequestError(409, str(error)) from None

    def _command(self, path: str, body: bytes) -> Tuple[int, Mapping[str, Any]]:
        commands = self.server.runner.commands
        if path == contract.COMMAND_PATH:
            try:
                command = parse_command(_json(_text(body)))
            except ValueError as error:
                raise RequestError(400, str(error)) from None
            commands.begin(*command)
            return 200, {}
        wanted = parse_qs(self.path.partition("?")[2])
        if path == contract.COMMAND_END_PATH:
            commands.end(_one(wanted, "id"))
            return 200, {}
        after, seconds = _waiting(wanted, "a part's number")
        return 200, commands.news(_one(wanted, "id"), after, seconds)

    def _get_status(self) -> Tuple[int, Mapping[str, Any]]:
        wanted = parse_qs(self.path.partition("?")[2])
        if wanted:
            self.server.runner.wait_for_news(*_waiting(wanted, "a revision"))
        return 200, self.server.runner.status()

    def _put_cluster(self, body: bytes) -> Tuple[int, Mapping[str, Any]]:
        try:
            changed = self.server.runner.order(parse_order(_text(body)))
        except SpecError as error:
            raise RequestError(400, str(error)) from None
        except (StaleOrder, TaskEnding) as error:
            raise RequestError(409, str(error)) from None
        except NotAnswering as error:
            raise RequestError(503, str(error)) from None
        return 200, {**self.server.runner.status(), "changed": changed}

    def _post_stop(self, body: bytes) -> Tuple[int, Mapping[str, Any]]:
        grace = _grace_seconds(_text(body))
        self.server.runner.stop("the scheduler asked for it", grace)
        return 202, self.server.runner.status()


_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?\Z", re.ASCII)


def _one(query: Mapping[str, List[str]], name: str) -> str:
    return query.get(name, [""])[-1]


def _waiting(query: Mapping[str, List[str]], what: str) -> Tuple[int, float]:
    """Return after what news are wanted, and how long they are waited for. Raises RequestError."""
    after, seconds = _one(query, "after"), _one(query, "wait")
    if not is_count(after) or not _SECONDS.match(seconds):
        raise RequestError(400, f"after must be {what}, and wait a number of seconds")
    return int(after), min(float(seconds), MAX_WAIT_SECONDS)


_AUTHENTICATION_HEADERS = (contract.TOKEN_HEADER, contract.TIME_HEADER)


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(400, "the body is not UTF-8") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the body is not JSON: {error}") from None


def _grace_seconds(text: str) -> Optional[float]:
    if not text.strip():
        return None
    document = _json(text)
    grace = document.get("grace_seconds") if isinstance(document, dict) else document
    if grace is None and isinstance(document, dict):
        return None
    if isinstance(grace, bool) or not isinstance(grace, (int, float)) or not 0 <= grace < 1e6:
        raise RequestError(400, "grace_seconds must be a number of at least 0")
    return float(grace)
