"""Updates on their way from an agent to a scheduler, sent again until they are acknowledged.

Owned by ``agent``; filled by it and by ``containerizer``. One stream for each task: only its first
update is on its way, later ones wait behind it (Mesos: status update manager). Outcomes of
operations have streams of one. Pure: it sends nothing, it returns the updates to send.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from embedded_mesos import messages
from embedded_mesos.agent.containers import UpdateStream
from embedded_mesos.configuration import Timing
from embedded_mesos.messages import TERMINAL_STATES

Json = dict[str, Any]
_Key = tuple[str, str]


class UpdateStreams:
    """See the module. ``emit`` takes each message to the master as an effect of the agent."""

    def __init__(self, timing: Timing, emit: Callable[[object], None]) -> None:
        self._timing = timing
        self._emit = emit
        self._tasks: dict[_Key, UpdateStream] = {}
        self._operations: dict[str, UpdateStream] = {}
        self._paused = True

    def pause(self) -> None:
        """Send nothing: there is no master."""
        self._paused = True

    def resume(self, now: float) -> None:
        """Send the first update of every stream, and go on."""
        self._paused = False
        for stream in self._all():
            stream.interval = self._timing.update_retry
            self._send(stream, now)

    def _all(self) -> list[UpdateStream]:
        streams = [*self._tasks.values(), *self._operations.values()]
        return [stream for stream in streams if stream.pending]

    def deadline(self) -> float:
        """Return when something is to be sent again."""
        return min((stream.next_retry for stream in self._all()), default=float("inf"))

    def tick(self, now: float) -> None:
        """Send again what was not acknowledged; the waits double."""
        for stream in self._all():
            if now >= stream.next_retry:
                stream.interval = min(stream.interval * 2, self._timing.update_retry_max)
                self._send(stream, now)

    def put(self, framework_id: str, status: Json, now: float) -> None:
        """Add an update to its task's stream."""
        key = (framework_id, status["task_id"]["value"])
        stream = self._tasks.setdefault(key, UpdateStream(framework_id))
        stream.latest_state = status["state"]
        stream.pending.append(status)
        if len(stream.pending) == 1:
            stream.interval = self._timing.update_retry
            self._send(stream, now)

    def put_operation(self, framework_id: str, status: Json, now: float) -> None:
        """Add the outcome of an operation."""
        stream = UpdateStream(framework_id, [status], operation=True)
        stream.interval = self._timing.update_retry
        self._operations[status["uuid"]["value"]] = stream
        self._send(stream, now)

    def _send(self, stream: UpdateStream, now: float) -> None:
        stream.next_retry = now + stream.interval
        first = stream.pending[0]
        stream.sent = first
        if self._paused:
            return
        update: object = messages.StatusUpdate(stream.framework_id, first, stream.latest_state)
        if stream.operation:
            update = messages.OperationUpdate(stream.framework_id, first)
        self._emit(messages.ToMaster(update))

    def acknowledge(self, framework_id: str, task_id: str, uid: str, now: float) -> None:
        """Take an acknowledgement; one that does not fit the first update is ignored."""
        key = (framework_id, task_id)
        stream = self._tasks.get(key)
        if stream is None or not stream.pending:
            return
        if base64.b64decode(stream.pending[0]["uuid"]) != base64.b64decode(uid):
            return
        acknowledged = stream.pending.pop(0)
        if stream.pending:
            stream.interval = self._timing.update_retry
            self._send(stream, now)
        elif acknowledged["state"] in TERMINAL_STATES:
            del self._tasks[key]

    def acknowledge_operation(self, uid: str) -> None:
        """Take the acknowledgement of an operation's outcome."""
        self._operations.pop(uid, None)

    def last_sent(self, framework_id: str, task_id: str) -> Json | None:
        """Return the newest update of a task that was sent; None when all is acknowledged."""
        stream = self._tasks.get((framework_id, task_id))
        return None if stream is None else stream.sent

    def has(self, framework_id: str, task_id: str) -> bool:
        """Say whether a task's stream is still open."""
        return (framework_id, task_id) in self._tasks

    def forget(self, framework_id: str | None = None) -> None:
        """Drop the streams of a framework, or all."""
        self._tasks = {
            key: stream
            for key, stream in self._tasks.items()
            if framework_id is not None and stream.framework_id != framework_id
        }
        self._operations = {
            uid: stream
            for uid, stream in self._operations.items()
            if framework_id is not None and stream.framework_id != framework_id
        }
