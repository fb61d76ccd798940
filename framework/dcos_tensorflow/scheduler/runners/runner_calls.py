"""Single questions to a task runner, for clients of the API: an operator's command in a task.

Used by ``api.tasks.commands`` on threads that may wait. Statuses and orders are
``runner_client``'s: nothing here is repeated, and nothing of it reaches the state.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from dcos_tensorflow.core.cluster.launch import task_token
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.scheduler.runners.runner_request import NotARunner, ask, signed

#: How long a runner has for an answer that it does not hold back.
ANSWER_SECONDS = 10.0


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
