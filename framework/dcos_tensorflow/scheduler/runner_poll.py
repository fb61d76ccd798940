"""Asking the task runners how far they are.

Used by ``scheduler.Scheduler``. Only the running tasks are asked; what they answer becomes
RunnerReported events. Training never depends on it: a runner that cannot be reached is asked again.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.events import RunnerReported
from dcos_tensorflow.core.launch import task_token
from dcos_tensorflow.core.service_state import ServiceState
from dcos_tensorflow.core.task import TaskRecord, TaskState

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 2.0
_PERIOD_SECONDS = 1.0
#: So many runners are asked at once, and no more than this many in a second.
_THREADS = 8
_RATE = 200.0
_MAX_REPORT_BYTES = 1_000_000


def signed_headers(token: str, method: str, path: str, body: bytes, now: float) -> dict[str, str]:
    """Return the headers that prove to a runner that we share its token (core.contract)."""
    seconds = str(int(now))
    text = f"{method} {path}\n{seconds}\n".encode() + body
    signature = hmac.new(token.encode(), text, hashlib.sha256).hexdigest()
    return {contract.TOKEN_HEADER: signature, contract.TIME_HEADER: seconds}


def ask_status(record: TaskRecord, token: str) -> Mapping[str, Any]:
    """Return a runner's status. Raises OSError or ValueError when there is none to be had."""
    connection = http.client.HTTPConnection(
        record.address, record.ports[-1], timeout=_TIMEOUT_SECONDS
    )
    try:
        headers = signed_headers(token, "GET", contract.STATUS_PATH, b"", time.time())
        connection.request("GET", contract.STATUS_PATH, headers=headers)
        answer = connection.getresponse()
        body = answer.read(_MAX_REPORT_BYTES)
    except http.client.HTTPException as error:
        raise ValueError(f"not a task runner: {error!r}") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise ValueError(f"the task runner answered {answer.status}")
    report = json.loads(body)
    if not isinstance(report, dict):
        raise ValueError("the task runner's status is not an object")
    return report


class RunnerPoll:
    """A thread that asks every running task's runner, again and again."""

    def __init__(
        self, state: Callable[[], ServiceState], emit: Callable[[RunnerReported], None]
    ) -> None:
        self._state = state
        self._emit = emit
        self._known: dict[str, Mapping[str, Any]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="runner-poll", daemon=True)

    def start(self) -> None:
        """Start asking."""
        self._thread.start()

    def stop(self) -> None:
        """Stop asking; returns when no question is under way."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="runner-poll") as pool:
            while not self._stopping.wait(self._round(pool)):
                pass

    def _round(self, pool: ThreadPoolExecutor) -> float:
        state = self._state()
        running = [r for r in state.tasks.values() if r.state is TaskState.RUNNING]
        ids = {r.task_id for r in running}
        self._known = {k: v for k, v in self._known.items() if k in ids}
        key = state.settings.token_key
        # ``map`` is lazy in its results only: consume it, so that a round ends before the next.
        for _ in pool.map(lambda record: self._ask(record, key), running):
            if self._stopping.is_set():
                break
        return max(_PERIOD_SECONDS, len(running) / _RATE)

    def _ask(self, record: TaskRecord, key: str) -> None:
        try:
            report = ask_status(record, task_token(key, record.task_id))
        except (OSError, ValueError) as error:
            log.debug("no status of %s: %s", record.name, error)
            return
        if self._known.get(record.task_id) != report:
            self._known[record.task_id] = report
            self._emit(RunnerReported(record.task_id, report))
