"""A Mesos agent: messages and executor reports in, effects out. Pure, as ``master`` is.

``cluster`` carries its effects: messages to the master, processes to start, to tell, to destroy.
An agent keeps its containers and unacknowledged updates when it crashes (Mesos: the checkpoint in
its work directory); ``crash`` and ``restart`` are ordered by ``faults``.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from dcos_tensorflow.local import messages
from dcos_tensorflow.local.containers import (
    AgentIdentity,
    Container,
    container_status,
    empty_check_status,
    executor_spec,
    launch_problem,
    sandbox_path,
    task_environment,
    volume_path,
)
from dcos_tensorflow.local.timing import Timing
from dcos_tensorflow.local.update_streams import UpdateStreams

Json = dict[str, Any]

#: --max_completed_executors_per_framework, and so on: what /state remembers.
_MAX_COMPLETED = 150


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
        self.containers: dict[str, Container] = {}
        self.completed: list[Container] = []
        self.frameworks: dict[str, Json] = {}
        self.total: tuple[Json, ...] | None = None
        #: Task groups that live: parent container id -> its ExecutorInfo.
        self.groups: dict[str, Json] = {}
        self._machine_environment = dict(machine_environment)
        self._free_gpus = list(range(gpus))
        self._new_uuid = new_uuid
        self._updates = UpdateStreams(timing)
        self._effects: list[object] = []
        self._next_registration = now
        self._last_ping = now

    # -- effects and time ----------------------------------------------------------------------

    def take_effects(self) -> list[object]:
        """Return what is to be done since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def _send_updates(self) -> None:
        for message in self._updates.take():
            self._send(message)

    def _send(self, message: object) -> None:
        self._effects.append(messages.ToMaster(message))

    def deadline(self) -> float:
        """Return when ``tick`` has something to do next."""
        if not self.running:
            return float("inf")
        if not self.registered:
            return self._next_registration
        return min(self._last_ping + self.timing.agent_timeout, self._updates.deadline())

    def tick(self, now: float) -> None:
        """Register, notice a silent master, send updates again."""
        if not self.running:
            return
        if self.registered and now >= self._last_ping + self.timing.agent_timeout:
            self.master_changed(now)
        if not self.registered:
            if now >= self._next_registration:
                self._next_registration = now + self.timing.agent_registration
                self._send(self._registration())
            return
        self._updates.tick(now)
        self._send_updates()

    # -- life ----------------------------------------------------------------------------------

    def crash(self) -> None:
        """Stop as SIGKILL would: executors of frameworks without checkpointing die with it."""
        self.running = False
        self.registered = False
        self._updates.pause()
        for container in self._live():
            if not self.frameworks[container.framework_id].get("checkpoint", False):
                container.silent = True
                self._destroy(container)

    def restart(self, now: float) -> None:
        """Start again with the same work directory."""
        self.running = True
        self.started_at = now
        self.master_changed(now)

    def shut_down(self, now: float) -> None:
        """Leave for good (SIGUSR1 in Mesos): unregister, end every task without updates."""
        if self.registered:
            self._send(messages.UnregisterAgent())
        self._end(now)

    def _end(self, now: float) -> None:
        for container in self._live():
            container.silent = True
            self._kill(container, 0.0, now)
        self._updates.forget()
        self.running = False
        self.registered = False
        self._updates.pause()

    def forget(self, now: float) -> None:
        """Become a new agent on the same machine: new id, no containers (an empty work dir)."""
        for container in self._live():
            container.silent = True
            self._destroy(container)
        self.agent_id = None
        self.total = None
        self.groups.clear()
        self._updates.forget()
        self.frameworks = {c.framework_id: self.frameworks[c.framework_id] for c in self._live()}
        self.restart(now)

    def master_changed(self, now: float) -> None:
        """Note that another master leads: register with it."""
        self.registered = False
        self._updates.pause()
        self._next_registration = now
        self._last_ping = now

    def _registration(self) -> messages.RegisterAgent:
        tasks = []
        for container in self.containers.values():
            open_stream = self._updates.has(container.framework_id, container.task_id)
            if container.silent or (container.terminal and not open_stream):
                continue
            entry: Json = {
                "framework_id": container.framework_id,
                "info": container.task,
                "state": container.state,
                "status": self._updates.last_sent(container.framework_id, container.task_id),
            }
            if container.parent is not None and container.parent in self.groups:
                entry["executor"] = self.groups[container.parent]
                entry["group_executor_id"] = container.executor_id
            tasks.append(entry)
        held = {entry["framework_id"] for entry in tasks}
        return messages.RegisterAgent(
            agent_id=self.agent_id,
            info=self.identity.info,
            tasks=tuple(tasks),
            frameworks=tuple(self.frameworks[framework_id] for framework_id in sorted(held)),
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
            self._send(messages.Pong())
        elif isinstance(message, messages.RunTasks):
            self._run(message, now)
        elif isinstance(message, messages.KillTask):
            self._kill_task(message, now)
        elif isinstance(message, messages.AcknowledgeUpdate):
            self._acknowledged(message, now)
        elif isinstance(message, messages.ApplyOperation):
            self._apply(message, now)
        elif isinstance(message, messages.AcknowledgeOperation):
            self._updates.acknowledge_operation(message.uuid)
        elif isinstance(message, messages.ShutdownExecutor):
            self._shutdown_executor(message, now)
        elif isinstance(message, messages.ShutdownFramework):
            self._shutdown_framework(message.framework_id, now)
        elif isinstance(message, messages.ShutdownAgent):
            self._end(now)

    def _registered(self, message: messages.AgentRegistered, now: float) -> None:
        self.agent_id = message.agent_id
        self.registered = True
        self._last_ping = now
        self._updates.resume(now)
        self._send_updates()

    def _shutdown_executor(self, message: messages.ShutdownExecutor, now: float) -> None:
        wanted = (message.framework_id, message.executor_id)
        for container in self._live():
            if (container.framework_id, container.executor_id) == wanted:
                self._kill(container, self.timing.executor_shutdown_grace, now)

    def _shutdown_framework(self, framework_id: str, now: float) -> None:
        for container in self._live():
            if container.framework_id == framework_id:
                container.silent = True
                self._kill(container, self.timing.executor_shutdown_grace, now)
        self._updates.forget(framework_id)
        for container in list(self.containers.values()):
            if container.framework_id == framework_id:
                self._retire(container)

    # -- tasks ---------------------------------------------------------------------------------

    def _live(self) -> list[Container]:
        return [one for one in self.containers.values() if not one.ended]

    def _run(self, message: messages.RunTasks, now: float) -> None:
        assert self.agent_id is not None
        self.frameworks[message.framework_id] = message.framework_info
        parent = None
        if message.executor is not None:
            parent = str(self._new_uuid())
            self.groups[parent] = message.executor
        for task in message.tasks:
            self._run_one(message, task, parent, now)

    def _run_one(
        self, message: messages.RunTasks, task: Json, parent: str | None, now: float
    ) -> None:
        assert self.agent_id is not None
        container_id = str(self._new_uuid())
        executor = message.executor
        task_id = task["task_id"]["value"]
        executor_id = task_id if executor is None else executor["executor_id"]["value"]
        run = container_id if parent is None else parent
        sandbox = sandbox_path(self.identity, self.agent_id, message.framework_id, executor_id, run)
        if parent is not None:
            sandbox = f"{sandbox}/tasks/{task_id}"
        container = Container(
            container_id=container_id,
            framework_id=message.framework_id,
            executor_id=executor_id,
            task=task,
            sandbox=sandbox,
            parent=parent,
        )
        self.containers[container_id] = container
        problem = launch_problem(container, len(self._free_gpus))
        if problem is not None:
            container.ended = container.gone = True
            state, reason, text = problem
            self._update(
                container,
                state,
                now,
                source="SOURCE_AGENT",
                reason=reason,
                message=text,
                executor=False,
            )
            return
        wanted = container.resources.thousandths("gpus") // 1000
        container.gpus = tuple(self._free_gpus[:wanted])
        del self._free_gpus[:wanted]
        start = messages.StartExecutor(container_id, sandbox, self._spec(container))
        self._effects.append(start)

    def _spec(self, container: Container) -> Json:
        assert self.agent_id is not None
        framework = self.frameworks[container.framework_id]
        environment = task_environment(
            self.identity,
            self.agent_id,
            container,
            checkpoint=bool(framework.get("checkpoint", False)),
            machine=self._machine_environment,
            shutdown_grace=self.timing.executor_shutdown_grace,
        )
        return executor_spec(
            self.identity,
            container,
            framework,
            environment=environment,
            kill_grace_seconds=self._grace(container, None),
        )

    def _grace(self, container: Container, given: float | None) -> float:
        if given is not None:
            return given
        policy = container.task.get("kill_policy", {}).get("grace_period", {}).get("nanoseconds")
        return self.timing.kill_grace if policy is None else policy / 1e9

    def _kill_task(self, message: messages.KillTask, now: float) -> None:
        for container in self._live():
            if (container.framework_id, container.task_id) != (
                message.framework_id,
                message.task_id,
            ):
                continue
            container.draining = container.draining or message.draining
            grace = self._grace(container, message.grace_seconds)
            if message.max_grace_seconds is not None:
                grace = min(grace, message.max_grace_seconds)
            self._kill(container, grace, now)

    def _kill(self, container: Container, grace_seconds: float, now: float) -> None:
        container.kill_asked = True
        if not container.delivered:
            self._destroy(container)
            self._update(
                container,
                "TASK_KILLED",
                now,
                source="SOURCE_AGENT",
                reason="REASON_TASK_KILLED_DURING_LAUNCH",
                message="Killed before delivery to the executor",
            )
            self._end_group(container, now)
            return
        command = {"type": "kill", "grace_seconds": grace_seconds}
        self._effects.append(messages.TellExecutor(container.container_id, command))

    def _mark_ended(self, container: Container) -> None:
        # From the terminal update on the master offers the GPUs again: they must be free by then.
        container.ended = True
        self._free_gpus = sorted([*self._free_gpus, *container.gpus])
        container.gpus = ()

    def _destroy(self, container: Container) -> None:
        self._mark_ended(container)
        self._effects.append(messages.DestroyExecutor(container.container_id))

    # -- reports of executors ------------------------------------------------------------------

    def executor_message(self, message: object, now: float) -> None:
        """Take a report of one of its processes."""
        if isinstance(message, messages.ExecutorStarted):
            container = self.containers.get(message.container_id)
            if container is not None:
                container.pid = message.pid
        elif isinstance(message, messages.ExecutorReport):
            container = self.containers.get(message.container_id)
            if container is not None and not container.ended:
                self._report(container, message.report, now)
        elif isinstance(message, messages.ExecutorGone):
            self._executor_gone(message, now)

    def _report(self, container: Container, report: Mapping[str, Any], now: float) -> None:
        kind = report["type"]
        if kind == "ready":
            container.delivered = True
            if "check" in container.task:
                container.check_status = empty_check_status(container.task["check"])
            self._update(container, "TASK_STARTING", now)
        elif kind == "running":
            self._update(container, "TASK_RUNNING", now)
        elif kind == "fetch_failed":
            self._mark_ended(container)
            text = (
                "Failed to launch container: Failed to fetch all URIs for container"
                f" '{container.container_id}': exited with status 1"
            )
            self._update(
                container,
                "TASK_FAILED",
                now,
                source="SOURCE_AGENT",
                reason="REASON_CONTAINER_LAUNCH_FAILED",
                message=text,
            )
            self._end_group(container, now)
        elif kind == "health":
            container.healthy = bool(report["healthy"])
            reason = "REASON_TASK_HEALTH_CHECK_STATUS_UPDATED"
            self._update(container, "TASK_RUNNING", now, reason=reason)
        elif kind == "check":
            container.check_status = dict(report["status"])
            self._update(container, "TASK_RUNNING", now, reason="REASON_TASK_CHECK_STATUS_UPDATED")
        elif kind == "killing":
            framework = self.frameworks[container.framework_id]
            capabilities = framework.get("capabilities", [])
            if any(one.get("type") == "TASK_KILLING_STATE" for one in capabilities):
                self._update(container, "TASK_KILLING", now)
        elif kind == "exited":
            self._exited(container, report, now)

    def _exited(self, container: Container, report: Mapping[str, Any], now: float) -> None:
        self._mark_ended(container)
        if "check" in container.task:
            container.check_status = empty_check_status(container.task["check"])
        reason = None
        if report.get("timed_out"):
            state, reason = "TASK_FAILED", "REASON_MAX_COMPLETION_TIME_REACHED"
        elif report.get("killed"):
            state = "TASK_KILLED"
        else:
            state = "TASK_FINISHED" if report["message"].endswith("status 0") else "TASK_FAILED"
        self._update(container, state, now, reason=reason, message=report["message"])
        self._end_group(container, now)

    def _end_group(self, container: Container, now: float) -> None:
        # The default executor ends its group when a member fails or is killed.
        if container.parent is None:
            return
        members = [one for one in self._live() if one.parent == container.parent]
        if container.state != "TASK_FINISHED":
            for member in members:
                if not member.kill_asked:
                    self._kill(member, self._grace(member, None), now)
        if not members and self.groups.pop(container.parent, None) is not None:
            self._send(messages.ExecutorExited(container.framework_id, container.executor_id, 0))

    def _executor_gone(self, message: messages.ExecutorGone, now: float) -> None:
        container = self.containers.get(message.container_id)
        if container is None:
            return
        if not container.ended:
            self._mark_ended(container)
            self._update(
                container,
                "TASK_FAILED",
                now,
                source="SOURCE_AGENT",
                reason="REASON_EXECUTOR_TERMINATED",
                message="Executor terminated",
            )
            self._end_group(container, now)
        container.gone = True
        self._retire(container)

    def _retire(self, container: Container) -> None:
        # Known until its process is gone and its last update is acknowledged.
        waiting = self._updates.has(container.framework_id, container.task_id)
        if container.gone and not waiting:
            del self.containers[container.container_id]
            self.completed.append(container)
            del self.completed[:-_MAX_COMPLETED]

    # -- updates -------------------------------------------------------------------------------

    def _update(
        self,
        container: Container,
        state: str,
        now: float,
        *,
        source: str = "SOURCE_EXECUTOR",
        reason: str | None = None,
        message: str | None = None,
        executor: bool = True,
    ) -> None:
        if container.silent:
            return
        assert self.agent_id is not None
        status: Json = {
            "task_id": {"value": container.task_id},
            "state": state,
            "source": source,
            "agent_id": {"value": self.agent_id},
            "timestamp": now,
            "uuid": base64.b64encode(self._new_uuid().bytes).decode(),
        }
        if container.draining:
            reason = reason or "REASON_AGENT_DRAINING"
        for name, value in (("reason", reason), ("message", message)):
            if value is not None:
                status[name] = value
        if executor:
            status["executor_id"] = {"value": container.executor_id}
        if source == "SOURCE_EXECUTOR":
            status["container_status"] = container_status(self.identity, container, state)
            if container.healthy is not None:
                status["healthy"] = container.healthy
            if container.check_status is not None:
                status["check_status"] = container.check_status
        container.statuses = [*container.statuses[-9:], status]
        self._updates.put(container.framework_id, status, now)
        self._send_updates()

    def _acknowledged(self, message: messages.AcknowledgeUpdate, now: float) -> None:
        framework_id, task_id = message.framework_id, message.task_id
        self._updates.acknowledge(framework_id, task_id, message.uuid, now)
        self._send_updates()
        for container in list(self.containers.values()):
            if (container.framework_id, container.task_id) == (framework_id, task_id):
                self._retire(container)

    # -- operations ----------------------------------------------------------------------------

    def _apply(self, message: messages.ApplyOperation, now: float) -> None:
        self.total = message.total
        for volume in message.destroyed:
            path = volume_path(self.identity, volume)
            self._effects.append(messages.RemoveDirectory(path))
        if message.status is None:
            return
        assert self.agent_id is not None
        uid = base64.b64encode(self._new_uuid().bytes).decode()
        status = {
            **message.status,
            "uuid": {"value": uid},
            "agent_id": {"value": self.agent_id},
        }
        self._updates.put_operation(message.framework_id, status, now)
        self._send_updates()
