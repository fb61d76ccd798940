"""One signed request to a task runner: of a client with a thousand under way, or of an operator.

Used by ``scheduler.runners.runner_client`` and, by ``RunnerCalls``, on threads of the API. The
runner's side is ``task.report.server``; both agree on ``core.contract`` and docs/task-runner.md.
It never tries anything twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from dcos_tensorflow.core.cluster.launch import task_token
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.report.authentication import signed_headers
from untrusted_input.json_text import read_json

_MAX_ANSWER_BYTES = 1_000_000
#: How long a runner has for an answer that it does not hold back.
ANSWER_SECONDS = 10.0


class NotARunner(ValueError):
    """What answers at this address does not speak as a task runner does."""


class RunnerRefused(Exception):
    """The runner answered, and not with 200. ``text`` is its own reason."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status
        self.text = text


@dataclass(frozen=True)
class RunnerRequest:
    """What is sent, but for the address."""

    method: str
    path: str
    body: bytes
    headers: Mapping[str, str]


def signed(token: str, method: str, path: str, body: bytes, now: float) -> RunnerRequest:
    """Return a request that proves to a runner that we share its token (core.contract)."""
    return RunnerRequest(method, path, body, signed_headers(token, method, path, int(now), body))


async def ask(host: str, port: int, request: RunnerRequest) -> Mapping[str, Any]:
    """Send a request; return the JSON object that answers it. The caller bounds the time.

    Raises OSError without an answer, Refused, and NotARunner.
    """
    reader, writer = await asyncio.open_connection(host, port, limit=_MAX_ANSWER_BYTES)
    try:
        lines = [
            f"{request.method} {request.path} HTTP/1.1",
            f"Host: {host}:{port}",
            "Connection: close",
            "Content-Type: application/json",
            f"Content-Length: {len(request.body)}",
            *(f"{name}: {value}" for name, value in request.headers.items()),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + request.body)
        status, answer = await _answer(reader)
    finally:
        # Nothing is on its way any more, or the time is up: either way nothing to wait for.
        writer.transport.abort()
    document = _object(answer)
    if status != 200:
        raise RunnerRefused(status, str(document.get("error") or "without a reason"))
    return document


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        status = int(first.split(" ", 2)[1])
        lengths = [
            int(value)
            for name, _, value in (field.partition(":") for field in fields)
            if name.strip().lower() == "content-length"
        ]
        if not 0 <= lengths[0] <= _MAX_ANSWER_BYTES:
            raise NotARunner(f"its answer has {lengths[0]} bytes")
        return status, await reader.readexactly(lengths[0])
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("the connection ended before the answer did") from error
    except (asyncio.LimitOverrunError, IndexError, ValueError) as error:
        raise NotARunner(f"not a task runner: {error}") from error


def _object(answer: bytes) -> dict[str, Any]:
    try:
        document = read_json(answer)
    except ValueError as error:
        raise NotARunner("its answer is not JSON") from error
    if not isinstance(document, dict):
        raise NotARunner("its answer is not a JSON object")
    return document


class RunnerSilent(Exception):
    """A task runner does not answer; the text says which, and why."""


class RunnerCalls:
    """Asks the runners of one service. ``state`` returns the newest state."""

    def __init__(self, state: Callable[[], ServiceState | None]) -> None:
        self._state = state

    def ask(
        self, record: TaskRecord, method: str, path: str, body: bytes = b"", held_back: float = 0.0
    ) -> Mapping[str, Any]:
        """Return what the runner of a live task answers. Raises RunnerSilent and RunnerRefused.

        ``held_back`` is how long it may wait with the answer, in seconds.
        """
        state = self._state()
        if state is None:
            raise RunnerSilent("this scheduler leads the service no more")
        token = task_token(state.settings.token_key, record.task_id)
        request = signed(token, method, path, body, time.time())

        async def answer() -> Mapping[str, Any]:
            async with asyncio.timeout(ANSWER_SECONDS + held_back):
                return await ask(record.address, record.ports[-1], request)

        try:
            return asyncio.run(answer())
        except (OSError, NotARunner) as error:
            why = str(error) or "no answer in time"
            raise RunnerSilent(
                f"the task runner of {record.name} does not answer: {why}"
            ) from error
