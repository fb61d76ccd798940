"""One signed request to a task runner, for a client that has a thousand of them under way.

Used by ``scheduler.runners.runner_client``. The runner's side is ``task.report.server``; what both
agree on is in ``core.contract`` and docs/task-runner.md. It never tries anything twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.report.authentication import signed_headers
from untrusted_input.json_text import read_json

_MAX_ANSWER_BYTES = 1_000_000


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
