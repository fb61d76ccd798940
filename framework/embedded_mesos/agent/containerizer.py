"""The containers of an agent: each task from its launch to its last acknowledged update.

Owned by ``agent``, which hands it the master's orders (run, kill, shut down) and the executors'
reports; ``agent_views`` shows its containers. It decides which process is started, told or
destroyed, which GPUs a task gets, and which status follows from an event. Pure: it starts
nothing, and it never talks to the master but through the update streams and ``emit``.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from embedded_mesos import messages
from embedded_mesos.agent.containers import (
    AgentIdentity,
    Container,
    container_status,
    empty_check_status,
    executor_spec,
    launch_problem,
    sandbox_path,
    task_environment,
)
from embedded_mesos.agent.update_streams import UpdateStreams
from embedded_mesos.configuration import Timing

Json = dict[str, Any]


class Containerizer:
    """See the module. ``now`` is unix seconds everywhere; ``emit`` takes each effect in order."""

    def __init__(
        self,
        identity: AgentIdentity,
        timing: Timing,
        updates: UpdateStreams,
        emit: Callable[[object], None],
        *,
        machine_environment: Mapping[str, str],
        gpus: int,
        new_uuid: Callable[[], uuid.UUID],
    ) -> None:
        """Start without containers."""
        self.containers: dict[str, Container] = {}
        self.completed: list[Container] = []
        #: FrameworkInfo of every framework that ever ran something here.
        self.frameworks: dict[str, Json] = {}
        #: Task groups that live: parent container id -> its ExecutorInfo.
        self.groups: dict[str, Json] = {}
        self._identity = identity
        self._timing = timing
        self._updates = updates
        self._emit = emit
        self._machine_environment = dict(machine_environment)
        self._free_gpus = list(range(gpus))
        self._new_uuid = new_uuid

    def live(self) -> list[Container]:
        """Return the containers whose task has not ended."""
        return [one for one in self.containers.values() if not one.ended]

    # -- orders --------------------------------------------------------------------------------

    def run(self, message: messages.RunTasks, agent_id: str, now: float) -> None:
        """Start tasks: one alone, or the members of a group."""
        self.frameworks[message.framework_id] = message.framework_info
        parent = None
        if message.executor is not None:
            parent = str(self._new_uuid())
            self.groups[parent] = message.executor
        for task in message.tasks:
            self._run_one(message, task, agent_id, parent, now)

    def _run_one(
        self,
        message: messages.RunTasks,
        task: Json,
        agent_id: str,
        parent: str | None,
        now: float,
    ) -> None:
        container_id = str(self._new_uuid())
        executor = message.executor
        task_id = task["task_id"]["value"]
        executor_id = task_id if executor is None else executor["executor_id"]["value"]
        run = container_id if parent is None else parent
        sandbox = sandbox_path(self._identity, agent_id, message.framework_id, executor_id, run)
        if parent is not None:
            sandbox = f"{sandbox}/tasks/{task_id}"
        container = Container(
            container_id=container_id,
            agent_id=agent_id,
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
            self._update_by_agent(container, state, now, reason, text, executor=False)
            return
        wanted = container.resources.thousandths("gpus") // 1000
        container.gpus = tuple(self._free_gpus[:wanted])
        del self._free_gpus[:wanted]
        start = messages.StartExecutor(container_id, sandbox, self._spec(container))
        self._emit(start)

    def _spec(self, container: Container) -> Json:
        framework = self.frameworks[container.framework_id]
        environment = task_environment(
            self._identity,
            container,
            checkpoint=bool(framework.get("checkpoint", False)),
            machine=self._machine_environment,
            shutdown_grace=self._timing.executor_shutdown_grace,
        )
        return executor_spec(
            self._identity,
            container,
            environment=environment,
            kill_grace_seconds=self._grace(container, None),
        )

    def _grace(self, container: Container, given: float | None) -> float:
        if given is not None:
            return given
        policy = container.task.get("kill_policy", {}).get("grace_period", {}).get("nanoseconds")
        return self._timing.kill_grace if policy is None else policy / 1e9

    def kill_task(self, message: messages.KillTask, now: float) -> None:
        """Kill a task; the shortest of the graces that are known holds."""
        for container in self.live():
            if (container.framework_id, container.task_id) != (
                message.framework_id,
                message.task_id,
            ):
                continue
            container.draining = container.draining or message.draining
            container.draining_for_good = container.draining_for_good or message.mark_gone
            grace = self._grace(container, message.grace_seconds)
            if message.max_grace_seconds is not None:
                grace = min(grace, message.max_grace_seconds)
            self._kill(container, grace, now)

    def shut_down_executor(self, message: messages.ShutdownExecutor, now: float) -> None:
        """Kill an executor's tasks."""
        wanted = (message.framework_id, message.executor_id)
        for container in self.live():
            if (container.framework_id, container.executor_id) == wanted:
                self._kill(container, self._timing.executor_shutdown_grace, now)

    def shut_down_framework(self, framework_id: str, now: float) -> None:
        """Kill a framework's tasks; no framework wants their updates."""
        for container in self.live():
            if container.framework_id == framework_id:
                container.silent = True
                self._kill(container, self._timing.executor_shutdown_grace, now)
        self._updates.forget(framework_id)
        for container in list(self.containers.values()):
            if container.framework_id == framework_id:
                self._retire(container)

    def kill_all(self, now: float) -> None:
        """Kill every task without grace and without updates: the agent leaves."""
        for container in self.live():
            container.silent = True
            self._kill(container, 0.0, now)

    def acknowledged(self, framework_id: str, task_id: str) -> None:
        """Note that an update of a task was acknowledged: it may have been its last."""
        for container in list(self.containers.values()):
            if (container.framework_id, container.task_id) == (framework_id, task_id):
                self._retire(container)

    def _kill(self, container: Container, grace_seconds: float, now: float) -> None:
        container.kill_asked = True
        if not container.delivered:
            self.destroy(container)
            reason = "REASON_TASK_KILLED_DURING_LAUNCH"
            text = "Killed before delivery to the executor"
            self._update_by_agent(container, "TASK_KILLED", now, reason, text)
            self._end_group(container, now)
            return
        command = {"type": "kill", "grace_seconds": grace_seconds}
        self._emit(messages.TellExecutor(container.container_id, command))

    def _mark_ended(self, container: Container) -> None:
        # From the terminal update on the master offers the GPUs again: they must be free by then.
        container.ended = True
        self._free_gpus = sorted([*self._free_gpus, *container.gpus])
        container.gpus = ()

    def destroy(self, container: Container) -> None:
        """End a container at once."""
        self._mark_ended(container)
        self._emit(messages.DestroyExecutor(container.container_id))

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
            reason = "REASON_CONTAINER_LAUNCH_FAILED"
            self._update_by_agent(container, "TASK_FAILED", now, reason, text)
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
        members = [one for one in self.live() if one.parent == container.parent]
        if container.state != "TASK_FINISHED":
            for member in members:
                if not member.kill_asked:
                    self._kill(member, self._grace(member, None), now)
        if not members and self.groups.pop(container.parent, None) is not None:
            exited = messages.ExecutorExited(container.framework_id, container.executor_id, 0)
            self._emit(messages.ToMaster(exited))

    def _executor_gone(self, message: messages.ExecutorGone, now: float) -> None:
        container = self.containers.get(message.container_id)
        if container is None:
            return
        if not container.ended:
            self._mark_ended(container)
            reason, text = "REASON_EXECUTOR_TERMINATED", "Executor terminated"
            self._update_by_agent(container, "TASK_FAILED", now, reason, text)
            self._end_group(container, now)
        container.gone = True
        self._retire(container)

    def _retire(self, container: Container) -> None:
        # Known until its process is gone and its last update is acknowledged.
        waiting = self._updates.has(container.framework_id, container.task_id)
        if container.gone and not waiting:
            del self.containers[container.container_id]
            self.completed.append(container)
            kept = self._identity.kept_tasks
            for old in self.completed[:-kept]:
                self._emit(messages.RemoveDirectory(old.sandbox))
            del self.completed[:-kept]

    def _gone_by_operator(self, container: Container) -> bool:
        known = self.frameworks[container.framework_id].get("capabilities", [])
        aware = any(one.get("type") == "PARTITION_AWARE" for one in known)
        return container.draining_for_good and aware

    def _update_by_agent(  # noqa: PLR0917 - the parts of a status, in their order
        self,
        container: Container,
        state: str,
        now: float,
        reason: str,
        message: str,
        executor: bool = True,
    ) -> None:
        source = "SOURCE_AGENT"
        self._update(
            container, state, now, source=source, reason=reason, message=message, executor=executor
        )

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
        if container.draining and state in ("TASK_KILLING", "TASK_KILLED"):
            # Whatever the reason was (slave.cpp, statusUpdate()).
            reason = "REASON_AGENT_DRAINING"
            if state == "TASK_KILLED" and self._gone_by_operator(container):
                state = "TASK_GONE_BY_OPERATOR"
        status: Json = {
            "task_id": {"value": container.task_id},
            "state": state,
            "source": source,
            "agent_id": {"value": container.agent_id},
            "timestamp": now,
            "uuid": base64.b64encode(self._new_uuid().bytes).decode(),
        }
        for name, value in (("reason", reason), ("message", message)):
            if value is not None:
                status[name] = value
        if executor:
            status["executor_id"] = {"value": container.executor_id}
        if source == "SOURCE_EXECUTOR":
            status["container_status"] = container_status(self._identity, container, state)
            if container.healthy is not None:
                status["healthy"] = container.healthy
            if container.check_status is not None:
                status["check_status"] = container.check_status
        container.statuses = [*container.statuses[-9:], status]
        self._updates.put(container.framework_id, status, now)
