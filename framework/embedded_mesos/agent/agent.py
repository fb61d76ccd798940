"""A Mesos agent: its life, its registration, and the master's messages to it.

Called by ``cluster``, which brings it messages and carries its effects: messages to the master,
processes to start, to tell, to destroy. Its tasks are kept by ``containerizer``. How it dies and
comes back is for the tests that order faults. Pure, as ``master`` is: no I/O, no clock.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from embedded_mesos import messages
from embedded_mesos.agent.containerizer import Containerizer
from embedded_mesos.agent.containers import AgentIdentity, volume_path
from embedded_mesos.agent.update_streams import UpdateStreams
from embedded_mesos.configuration import Timing

Json = dict[str, Any]


class Agent:
    """See the module. ``now`` is unix seconds everywhere."""

    def __init__(
        self,
        identity: AgentIdentity,
        timing: Timing,
        now: float,
        *,
        machine_environment: Mapping[str, str],
        gpus: int = 0,
        new_uuid: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        """Start unknown to any master."""
        self.identity = identity
        self.timing = timing
        self.started_at = now
        self.agent_id: str | None = None
        self.registered = False
        self.running = True
        self.total: tuple[Json, ...] | None = None
        self._new_uuid = new_uuid
        self._effects: list[object] = []
        self.updates = UpdateStreams(timing, self._emit)
        self.containerizer = Containerizer(
            identity,
            timing,
            self.updates,
            self._emit,
            machine_environment=machine_environment,
            gpus=gpus,
            new_uuid=new_uuid,
        )
        self._next_registration = now
        self._last_ping = now
        #: It left in order: the next start of it is a new agent.
        self.left = False

    # -- effects and time ----------------------------------------------------------------------

    def take_effects(self) -> list[object]:
        """Return what is to be done since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def _emit(self, effect: object) -> None:
        self._effects.append(effect)

    def send(self, message: object) -> None:
        """Have a message carried to the master."""
        self._emit(messages.ToMaster(message))

    def deadline(self) -> float:
        """Return when ``tick`` has something to do next."""
        if not self.running:
            return float("inf")
        if not self.registered:
            return self._next_registration
        return min(self._last_ping + self.timing.agent_timeout, self.updates.deadline())

    def tick(self, now: float) -> None:
        """Register, notice a silent master, send updates again."""
        if not self.running:
            return
        if self.registered and now >= self._last_ping + self.timing.agent_timeout:
            self.master_changed(now)
        if not self.registered:
            if now >= self._next_registration:
                self._next_registration = now + self.timing.agent_registration
                self.send(self._registration())
            return
        self.updates.tick(now)

    # -- life ----------------------------------------------------------------------------------

    def leave(self, now: float) -> None:
        """End for good, and every task without updates."""
        self.containerizer.kill_all(now)
        self.updates.forget()
        self.left = True
        self.running = False
        self.registered = False
        self.updates.pause()

    def start_anew(self, now: float) -> None:
        """Start again after ``leave``: with an empty work directory, so as another agent."""
        held = self.containerizer
        held.groups.clear()
        kept = {one.framework_id for one in (*held.containers.values(), *held.completed)}
        held.frameworks = {name: held.frameworks[name] for name in kept}
        self.agent_id = None
        self.total = None
        self.updates.forget()
        self.left = False
        self.running = True
        self.started_at = now
        self.master_changed(now)

    def master_changed(self, now: float) -> None:
        """Note that another master leads: register with it."""
        self.registered = False
        self.updates.pause()
        self._next_registration = now
        self._last_ping = now

    def _registration(self) -> messages.RegisterAgent:
        tasks = []
        held = self.containerizer
        for container in held.containers.values():
            open_stream = self.updates.has(container.framework_id, container.task_id)
            if container.silent or (container.terminal and not open_stream):
                continue
            entry: Json = {
                "framework_id": container.framework_id,
                "info": container.task,
                "state": container.state,
                "status": self.updates.last_sent(container.framework_id, container.task_id),
            }
            if container.parent is not None and container.parent in held.groups:
                entry["executor"] = held.groups[container.parent]
                entry["group_executor_id"] = container.executor_id
            tasks.append(entry)
        framework_ids = sorted({entry["framework_id"] for entry in tasks})
        return messages.RegisterAgent(
            agent_id=self.agent_id,
            info=self.identity.info,
            tasks=tuple(tasks),
            frameworks=tuple(held.frameworks[framework_id] for framework_id in framework_ids),
            total=self.total,
        )

    # -- messages of the master ----------------------------------------------------------------

    def master_message(self, message: object, now: float) -> None:
        """Take a message of the master."""
        if not self.running:
            return
        if isinstance(message, messages.AgentRegistered):
            self._registered(message, now)
        elif isinstance(message, messages.Ping):
            self._last_ping = now
            self.send(messages.Pong())
        elif isinstance(message, messages.RunTasks):
            assert self.agent_id is not None, "the master runs tasks on registered agents only"
            self.containerizer.run(message, self.agent_id, now)
        elif isinstance(message, messages.KillTask):
            self.containerizer.kill_task(message, now)
        elif isinstance(message, messages.AcknowledgeUpdate):
            self._acknowledged(message, now)
        elif isinstance(message, messages.ApplyOperation):
            self._apply(message, now)
        elif isinstance(message, messages.AcknowledgeOperation):
            self.updates.acknowledge_operation(message.uuid)
        elif isinstance(message, messages.ShutdownExecutor):
            self.containerizer.shut_down_executor(message, now)
        elif isinstance(message, messages.ShutdownFramework):
            self.containerizer.shut_down_framework(message.framework_id, now)
        elif isinstance(message, messages.ShutdownAgent):
            self.leave(now)

    def _registered(self, message: messages.AgentRegistered, now: float) -> None:
        self.agent_id = message.agent_id
        self.registered = True
        self._last_ping = now
        self.updates.resume(now)

    def _acknowledged(self, message: messages.AcknowledgeUpdate, now: float) -> None:
        framework_id, task_id = message.framework_id, message.task_id
        self.updates.acknowledge(framework_id, task_id, message.uuid, now)
        self.containerizer.acknowledged(framework_id, task_id)

    def executor_message(self, message: object, now: float) -> None:
        """Take a report of one of its processes."""
        self.containerizer.executor_message(message, now)

    # -- operations ----------------------------------------------------------------------------

    def _apply(self, message: messages.ApplyOperation, now: float) -> None:
        self.total = message.total
        for volume in message.destroyed:
            path = volume_path(self.identity, volume)
            self._emit(messages.RemoveDirectory(path))
        if message.status is None:
            return
        assert self.agent_id is not None
        uid = base64.b64encode(self._new_uuid().bytes).decode()
        status = {
            **message.status,
            "uuid": {"value": uid},
            "agent_id": {"value": self.agent_id},
        }
        self.updates.put_operation(message.framework_id, status, now)
