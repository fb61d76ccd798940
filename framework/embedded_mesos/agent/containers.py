"""The containers of an agent, and the messages that it sends their processes.

Used by ``containerizer`` (which decides) and ``agent_views`` (which shows). Pure: the environment
of a task is composed here, nothing is started.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from embedded_mesos.machine import secret_files
from embedded_mesos.messages import TERMINAL_STATES
from embedded_mesos.resources import Resources

Json = dict[str, Any]


@dataclass(frozen=True)
class AgentIdentity:
    """The unchanging facts of an agent."""

    link: int
    ip: str
    port: int
    hostname: str
    work_dir: str
    #: As AgentInfo; ``offered_resources`` is the total in the order in which offers list it.
    info: Json
    kept_tasks: int

    @property
    def pid(self) -> str:
        """Return the libprocess id that Mesos shows."""
        return f"slave(1)@{self.ip}:{self.port}"


@dataclass
class Container:
    """One task in its own process. The members of a group share ``parent``."""

    container_id: str
    agent_id: str
    framework_id: str
    executor_id: str
    task: Json
    sandbox: str
    parent: str | None = None
    gpus: tuple[int, ...] = ()
    pid: int | None = None
    #: The task was handed to its executor: from now on the executor speaks for it.
    delivered: bool = False
    #: The task has ended, or its process is being destroyed.
    ended: bool = False
    #: The process is gone.
    gone: bool = False
    #: No framework wants updates any more (framework or agent shut down).
    silent: bool = False
    kill_asked: bool = False
    #: The agent is drained; with the second, never to come back.
    draining: bool = False
    draining_for_good: bool = False
    healthy: bool | None = None
    check_status: Json | None = None
    statuses: list[Json] = field(default_factory=list)

    @property
    def task_id(self) -> str:
        """Return the id of the task."""
        return str(self.task["task_id"]["value"])

    @property
    def state(self) -> str:
        """Return the newest state."""
        return self.statuses[-1]["state"] if self.statuses else "TASK_STAGING"

    @property
    def terminal(self) -> bool:
        """Say whether the task has ended."""
        return self.state in TERMINAL_STATES

    @property
    def resources(self) -> Resources:
        """Return what the task holds."""
        return Resources.parse(self.task["resources"])


@dataclass
class UpdateStream:
    """The updates of one task that wait for acknowledgement; only the first is on its way."""

    framework_id: str
    pending: list[Json] = field(default_factory=list)
    operation: bool = False
    #: The newest update that was sent at all.
    sent: Json | None = None
    latest_state: str = "TASK_STAGING"
    next_retry: float = 0.0
    interval: float = 0.0


def sandbox_path(
    identity: AgentIdentity, agent_id: str, framework_id: str, executor_id: str, container_id: str
) -> str:
    """Return the sandbox directory of a container: Mesos' own layout."""
    return str(
        PurePosixPath(identity.work_dir)
        / "slaves"
        / agent_id
        / "frameworks"
        / framework_id
        / "executors"
        / executor_id
        / "runs"
        / container_id
    )


def volume_path(identity: AgentIdentity, volume: Mapping[str, Any]) -> str:
    """Return the directory behind a persistent volume: Mesos' own layout, or its own disk's."""
    source = volume["disk"].get("source", {})
    if source.get("type") == "MOUNT":
        return str(source["mount"]["root"])
    role = volume["reservations"][-1]["role"]
    persistence_id = volume["disk"]["persistence"]["id"]
    return str(PurePosixPath(identity.work_dir) / "volumes" / "roles" / role / persistence_id)


def task_environment(
    identity: AgentIdentity,
    container: Container,
    *,
    checkpoint: bool,
    machine: Mapping[str, str],
    shutdown_grace: float,
) -> dict[str, str]:
    """Return a task's whole environment.

    ``machine`` is what it inherits (PATH and the like); the task's own variables win over it, and
    Mesos' variables over nothing of the task's.
    """
    roles = [role for role in container.resources.roles() if role is not None]
    found = {
        **machine,
        **_gpu_variables(container),
        "LIBPROCESS_IP": identity.ip,
        "LIBPROCESS_PORT": "0",
        "MESOS_AGENT_ENDPOINT": f"{identity.ip}:{identity.port}",
        "MESOS_CHECKPOINT": "1" if checkpoint else "0",
        "MESOS_DIRECTORY": container.sandbox,
        "MESOS_EXECUTOR_ID": container.executor_id,
        "MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD": f"{shutdown_grace:g}secs",
        "MESOS_FRAMEWORK_ID": container.framework_id,
        "MESOS_HTTP_COMMAND_EXECUTOR": "0",
        "MESOS_SANDBOX": container.sandbox,
        "MESOS_SLAVE_ID": container.agent_id,
        "MESOS_SLAVE_PID": identity.pid,
    }
    if roles:
        found["MESOS_ALLOCATION_ROLE"] = roles[0]
    if checkpoint:
        found["MESOS_RECOVERY_TIMEOUT"] = "15mins"
        found["MESOS_SUBSCRIPTION_BACKOFF_MAX"] = "2secs"
    if container.parent is not None:
        # The default executor names the task; the command executor's only task does not need it.
        found["MESOS_TASK_ID"] = container.task_id
    variables = container.task.get("command", {}).get("environment", {}).get("variables", [])
    for variable in variables:
        found[variable["name"]] = _value(variable)
    return found


def _value(variable: Mapping[str, Any]) -> str:
    if variable.get("type") == "SECRET":
        data = variable["secret"]["value"]["data"]
        return base64.b64decode(data).decode("utf-8", "surrogateescape")
    return str(variable["value"])


def _gpu_variables(container: Container) -> dict[str, str]:
    # The cluster cannot hide devices as Mesos' isolator does, so it says which ones are meant.
    # A task without gpus is told that there are none: TensorFlow takes every GPU that it sees.
    if not container.gpus:
        return {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    indices = ",".join(str(index) for index in container.gpus)
    return {"CUDA_VISIBLE_DEVICES": indices, "NVIDIA_VISIBLE_DEVICES": indices}


def launch_problem(container: Container, free_gpus: int) -> tuple[str, str, str] | None:
    """Return state, reason and message of a task that this agent cannot start."""
    limits = container.task.get("limits", {})
    for name, label, isolator in (
        ("mem", "Memory", "cgroups/mem"),
        ("cpus", "CPU", "cgroups/cpu"),
    ):
        if name in limits:
            text = (
                f"{label} limits can only be set on tasks launched in Mesos containers when"
                f" the agent has loaded the '{isolator}' isolator"
            )
            return "TASK_DROPPED", "REASON_GC_ERROR", text
    wanted = container.resources.thousandths("gpus") // 1000
    if wanted > free_gpus:
        # Those of a removed framework are free when its processes have ended.
        text = f"Failed to launch container: Requested {wanted} gpus but only {free_gpus} available"
        return "TASK_FAILED", "REASON_CONTAINER_LAUNCH_FAILED", text
    return None


def executor_spec(
    identity: AgentIdentity,
    container: Container,
    *,
    environment: Mapping[str, str],
    kill_grace_seconds: float,
) -> Json:
    """Return what the executor of ``container`` is told (``executor`` reads it)."""
    task = container.task
    command = task.get("command", {})
    spec: Json = {
        "sandbox": container.sandbox,
        "command": {
            "shell": command.get("shell", True),
            "value": command.get("value", ""),
            "arguments": command.get("arguments", []),
        },
        "uris": command.get("uris", []),
        "environment": dict(environment),
        "address": identity.ip,
        "kill_grace_seconds": kill_grace_seconds,
        "volumes": [
            {
                "source": volume_path(identity, resource),
                "container_path": resource["disk"]["volume"]["container_path"],
            }
            for resource in task["resources"]
            if "persistence" in resource.get("disk", {})
        ],
    }
    secrets = secret_files.wanted(identity.work_dir, container.container_id, task)
    if secrets is not None:
        spec["secrets"] = secrets
    limits = task.get("container", {}).get("rlimit_info", {}).get("rlimits", [])
    if limits:
        spec["limits"] = limits
    for name in ("health_check", "check"):
        if name in task:
            spec[name] = task[name]
    if "max_completion_time" in task:
        spec["max_completion_seconds"] = task["max_completion_time"]["nanoseconds"] / 1e9
    return spec


def container_status(identity: AgentIdentity, container: Container, state: str) -> Json:
    """Return the ContainerStatus of an update."""
    identifier: Json = {"value": container.container_id}
    found: Json = {"container_id": identifier}
    if container.parent is not None:
        identifier["parent"] = {"value": container.parent}
        if state in TERMINAL_STATES or state == "TASK_STARTING":
            # The default executor has no more to tell before RUNNING and after the end.
            return found
    found["network_infos"] = [{"ip_addresses": [{"protocol": "IPv4", "ip_address": identity.ip}]}]
    found["executor_pid"] = container.pid
    return found


def empty_check_status(check: Mapping[str, Any]) -> Json:
    """Return the status of a check that has no result."""
    kind = check["type"]
    return {"type": kind, kind.lower(): {}}
