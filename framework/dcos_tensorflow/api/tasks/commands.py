"""Commands that an operator runs in a task: the request to the task's runner, and the answer.

Used by ``api.app``, which hands over how the runner is asked. The command is in the audit log
before the runner hears of it. Nothing of it is an event: the state of the service is not touched.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

from dcos_tensorflow.api.errors import BadRequest
from dcos_tensorflow.api.verbs import Reply, parsed, received
from dcos_tensorflow.api.views.pods import record_of
from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.scheduler.runners.runner_request import RunnerRefused

#: How long a command may run where nothing is said.
SECONDS = 300.0
#: How long an answer waits for what a command prints next.
_WAIT_SECONDS = 5.0
_ALLOWED = '{"command": ["PROGRAM", "ARGUMENT", ...], "timeout_seconds": SECONDS}'
_ID = re.compile(r"[0-9a-f]{32}")


class AskRunner(Protocol):
    """How the runner of a live task is asked (``api.source.StateSource.ask_runner``)."""

    def __call__(
        self, record: TaskRecord, method: str, path: str, body: bytes = b"", held_back: float = 0.0
    ) -> Mapping[str, Any]:
        """Return the answer. Raises RunnerSilent and RunnerRefused."""


class NotRunning(Exception):
    """The task has no container in which a command could run; the text says so."""


def begin(state: ServiceState, name: str, body: bytes, ask: AskRunner) -> Reply:
    """Start a command. Raises BadRequest, ElementNotFound, NotRunning."""
    words, seconds = _command(parsed(body, _ALLOWED))
    record = _running(state, name)
    told, identifier = received(f"exec {shlex.join(words)}"), os.urandom(16).hex()
    sent = json.dumps({"id": identifier, "command": words, "seconds": seconds}).encode()

    def carry_out() -> Reply:
        try:
            ask(record, "POST", contract.COMMAND_PATH, sent)
        except RunnerRefused as refused:
            if refused.status != 404:
                raise
            raise NotRunning(
                f"the task runner of {name} is of an earlier release, which runs no commands: pod"
                " replace gives the task a new one"
            ) from refused
        return Reply(200, {**told, "id": identifier})

    return Reply(200, told, then=carry_out)


def output(
    state: ServiceState, name: str, identifier: str, query: Mapping[str, str], ask: AskRunner
) -> Mapping[str, Any]:
    """Return what a command has printed behind part number ``after``, and how it has ended.

    Raises BadRequest, ElementNotFound, NotRunning.
    """
    after = query.get("after", "0")
    if not (after.isascii() and after.isdigit() and len(after) <= 15):
        raise BadRequest(f"after must be the number of a part from 0, not {after[:50]!r}")
    asked = {"id": _checked(identifier), "after": after, "wait": f"{_WAIT_SECONDS:g}"}
    path = f"{contract.COMMAND_OUTPUT_PATH}?{urlencode(asked)}"
    return ask(_running(state, name), "GET", path, held_back=_WAIT_SECONDS)


def end(state: ServiceState, name: str, identifier: str, ask: AskRunner) -> Reply:
    """Kill a command. Raises BadRequest, ElementNotFound, NotRunning."""
    record = _running(state, name)
    path = f"{contract.COMMAND_END_PATH}?{urlencode({'id': _checked(identifier)})}"
    told = received("exec stop")

    def carry_out() -> Reply:
        ask(record, "POST", path)
        return Reply(200, told)

    return Reply(200, told, then=carry_out)


def _running(state: ServiceState, name: str) -> TaskRecord:
    record = record_of(state, name)
    if record is None or record.state is not TaskState.RUNNING or not record.ports:
        now = f"is {record.state}" if record is not None else "was never launched"
        raise NotRunning(f"{name} {now}: a command runs in a task that runs")
    return record


def _command(plain: Any) -> tuple[list[str], float]:
    if not isinstance(plain, dict) or set(plain) - {"command", "timeout_seconds"}:
        raise BadRequest(f"the body must be {_ALLOWED}")
    words, seconds = plain.get("command"), plain.get("timeout_seconds", SECONDS)
    are_words = isinstance(words, list) and all(isinstance(word, str) for word in words)
    if not are_words or not words or not words[0] or any("\0" in word for word in words):
        raise BadRequest("command must be a list of texts without zero bytes: a program first")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= contract.COMMAND_SECONDS:
        raise BadRequest(
            f"timeout_seconds must be a number above 0 up to {contract.COMMAND_SECONDS:g}"
        )
    return words, float(seconds)


def _checked(identifier: str) -> str:
    if not _ID.fullmatch(identifier):
        raise BadRequest(f"{identifier[:50]!r} is not the id of a command")
    return identifier
