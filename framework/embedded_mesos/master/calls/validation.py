"""The refusals of Mesos, in its words; and those of this cluster, by name.

Pure checks, called by ``master``: of a FrameworkInfo, of the offers of an ACCEPT, of a TaskInfo.
Each returns the text of the error, None for none. Facts: ``src/master/validation.cpp``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embedded_mesos.machine import fetcher, limited_process
from embedded_mesos.master.records import ClusterState, Framework, Offer
from embedded_mesos.resources import InvalidResource, Resources

#: How errors about missing features start.
NOT_SUPPORTED = "Not supported by the embedded cluster"


def role_error(role: str) -> str | None:
    """Return why ``role`` is no role name."""
    if role == "*":
        return None
    for part in role.split("/"):
        if not part:
            return f"Role '{role}' contains an empty component or starts or ends with a slash"
        if part in (".", "..", "*") or part.startswith("-"):
            return f"Role '{role}' contains the invalid component '{part}'"
        if any(character in part for character in " \t\n\r\v\f\b\x7f\\"):
            return f"Role '{role}' contains invalid characters"
    return None


def framework_error(info: Mapping[str, Any]) -> str | None:
    """Return why a FrameworkInfo cannot subscribe."""
    capabilities = {one.get("type") for one in info.get("capabilities", [])}
    if "MULTI_ROLE" in capabilities:
        if "role" in info:
            return "'FrameworkInfo.role' must not be set when the framework is MULTI_ROLE capable"
        roles = info.get("roles", [])
        if len(set(roles)) != len(roles):
            return "'FrameworkInfo.roles' contains duplicate items"
    else:
        if info.get("roles"):
            return (
                "'FrameworkInfo.roles' must not be set when the framework is not MULTI_ROLE capable"
            )
        roles = [info.get("role", "*")]
    for role in roles:
        error = role_error(role)
        if error:
            return error
    if float(info.get("failover_timeout", 0)) < 0:
        return "'FrameworkInfo.failover_timeout' must not be negative"
    return None


def offers_error(state: ClusterState, framework: Framework, offer_ids: Sequence[str]) -> str | None:
    """Return why the offers of an ACCEPT cannot be used together."""
    if not offer_ids:
        return "No offers specified"
    for index, offer_id in enumerate(offer_ids):
        if offer_id in offer_ids[:index]:
            return f"Duplicate offer {offer_id} in offer list"
    offers: list[Offer] = []
    for offer_id in offer_ids:
        offer = state.offers.get(offer_id)
        if offer is None:
            return f"Offer {offer_id} is no longer valid"
        offers.append(offer)
    for offer in offers:
        if offer.framework_id != framework.framework_id:
            return (
                f"Offer {offer.offer_id} has invalid framework {offer.framework_id}"
                f" while framework {framework.framework_id} is expected"
            )
    first = offers[0]
    for offer in offers[1:]:
        if offer.mesos_role != first.mesos_role:
            return (
                "Aggregated offers must be allocated to the same role. Offer "
                f"{offer.offer_id} uses role '{offer.mesos_role} but another is using role"
                f" '{first.mesos_role}"
            )
    for offer in offers[1:]:
        if offer.agent_id != first.agent_id:
            return (
                "Aggregated offers must belong to one single agent. Offer "
                f"{offer.offer_id} uses agent {offer.agent_id} and agent {first.agent_id}"
            )
    return None


def identifier_error(value: str) -> str | None:
    """Return why ``value`` cannot be an id (``common::validation::validateID``)."""
    if not value:
        return "ID must not be empty"
    if len(value) > 255:
        return "ID must not be greater than 255 characters"
    if value in (".", ".."):
        return f"'{value}' is disallowed"
    if any(ord(c) < 32 or ord(c) == 127 or c in "/\\" for c in value):
        return f"'{value}' contains invalid characters"
    return None


def task_error(
    task: Mapping[str, Any],
    framework: Framework,
    agent_id: str,
    available: Resources,
    *,
    in_group: bool = False,
) -> str | None:
    """Return why ``task`` cannot be launched on ``agent_id`` with ``available`` left."""
    task_id = task["task_id"]["value"]
    error = identifier_error(task_id)
    if error:
        return error
    if task_id in framework.tasks or task_id in framework.unreachable_tasks:
        return f"Task has duplicate ID: {task_id}"
    if task["agent_id"]["value"] != agent_id:
        return (
            f"Task uses invalid agent {task['agent_id']['value']}"
            f" while agent {agent_id} is expected"
        )
    error = _policies_error(task) or _command_error(task, in_group)
    if error:
        return error
    error = unsupported(task)
    if error:
        return error
    return _resources_error(task, available)


def group_error(
    executor: Mapping[str, Any],
    tasks: Sequence[Mapping[str, Any]],
    framework: Framework,
    agent_id: str,
    available: Resources,
) -> str | None:
    """Return why a task group cannot be launched: all of it or nothing."""
    error = _group_executor_error(executor, framework)
    if error is not None:
        return error
    if not tasks:
        return "Task group cannot be empty"
    try:
        left = available - Resources.parse(executor["resources"])
        total = Resources.parse(executor["resources"])
        for task in tasks:
            error = task_error(task, framework, agent_id, left, in_group=True)
            if error is not None:
                return f"Task '{task['task_id']['value']}' is invalid: {error}"
            left -= Resources.parse(task["resources"])
            total += Resources.parse(task["resources"])
    except InvalidResource as invalid:
        return f"Executor uses invalid resources: {invalid}"
    identifiers = [task["task_id"]["value"] for task in tasks]
    if len(set(identifiers)) != len(identifiers):
        return "Task group contains duplicate task ids"
    if not available.contains(total):
        return f"Total resources {total} required by task group is more than available {available}"
    return None


def _group_executor_error(executor: Mapping[str, Any], framework: Framework) -> str | None:
    if executor.get("type") != "DEFAULT":
        return "'ExecutorInfo.type' must be 'DEFAULT' for task groups"
    error = identifier_error(executor["executor_id"]["value"])
    if error is not None:
        return error
    owner = executor.get("framework_id", {}).get("value", framework.framework_id)
    if owner != framework.framework_id:
        return f"ExecutorInfo has an invalid FrameworkID: {owner}"
    if executor.get("container"):
        return f"{NOT_SUPPORTED}: 'executor.container' of a task group"
    try:
        resources = Resources.parse(executor["resources"])
    except InvalidResource as invalid:
        return f"Executor uses invalid resources: {invalid}"
    if resources.thousandths("cpus") < 10 or resources.thousandths("mem") < 32_000:
        return "The executor of a task group needs at least 0.01 cpus and 32 MB of mem"
    if not resources.thousandths("disk"):
        return "The executor of a task group needs disk"
    return None


def _policies_error(task: Mapping[str, Any]) -> str | None:
    grace = task.get("kill_policy", {}).get("grace_period", {}).get("nanoseconds", 0)
    if grace < 0:
        return "Task's 'kill_policy.grace_period' must be non-negative"
    limit = task.get("max_completion_time", {}).get("nanoseconds", 0)
    if limit < 0:
        return "Task's `max_completion_time` must be non-negative"
    for name, label in (("health_check", "health check"), ("check", "check")):
        check = task.get(name)
        if check is None:
            continue
        error = _check_error(check, name)
        if error:
            return f"Task uses invalid {label}: {error}"
    return None


def _check_error(check: Mapping[str, Any], name: str) -> str | None:
    owner = "HealthCheck" if name == "health_check" else "CheckInfo"
    if "type" not in check:
        return f"{owner} must specify 'type'"
    kind = check["type"].lower()
    if kind not in check:
        return f"Expecting '{kind}' to be set for {check['type']} check"
    for number in ("delay_seconds", "interval_seconds", "timeout_seconds", "grace_period_seconds"):
        if check.get(number, 0) < 0:
            return f"Expecting '{number}' to be non-negative"
    return None


def _command_error(task: Mapping[str, Any], in_group: bool) -> str | None:
    if in_group:
        if "executor" in task:
            return "'TaskInfo.executor' must not be set"
    elif ("command" in task) == ("executor" in task):
        return "Task should have at least one (but not both) of CommandInfo or ExecutorInfo present"
    command = task.get("command", {})
    for variable in command.get("environment", {}).get("variables", []):
        if variable.get("type", "VALUE") == "SECRET":
            if "secret" not in variable:
                return (
                    "Task's `CommandInfo` is invalid: Environment variable "
                    f"'{variable['name']}' of type 'SECRET' must have a secret set"
                )
        elif "value" not in variable:
            return (
                "Task's `CommandInfo` is invalid: Environment variable "
                f"'{variable['name']}' of type 'VALUE' must have a value set"
            )
    return None


def unsupported(task: Mapping[str, Any]) -> str | None:
    """Return what ``task`` asks for that this cluster does not do."""
    if "executor" in task:
        return f"{NOT_SUPPORTED}: custom executors ('executor')"
    error = container_unsupported(task.get("container"))
    if error:
        return error
    command = task.get("command", {})
    for variable in command.get("environment", {}).get("variables", []):
        error = _secret_unsupported(variable.get("secret"), f"variable '{variable['name']}'")
        if error:
            return error
    for uri in command.get("uris", ()):
        scheme = fetcher.scheme_of(uri["value"])
        if scheme not in fetcher.SCHEMES:
            return f"{NOT_SUPPORTED}: fetching {scheme}:// ('{uri['value']}'); use http or file"
    return None


def _secret_unsupported(secret: Mapping[str, Any] | None, where: str) -> str | None:
    if secret is not None and secret.get("type") == "REFERENCE":
        return f"{NOT_SUPPORTED}: secrets of type REFERENCE ({where})"
    return None


def _volume_unsupported(volume: Mapping[str, Any]) -> str | None:
    path, source = volume["container_path"], volume.get("source", {})
    if source.get("type") != "SECRET" or "secret" not in source:
        return f"{NOT_SUPPORTED}: container volumes that are no secrets ('{path}')"
    if path.startswith("/") or ".." in path.split("/"):
        return f"{NOT_SUPPORTED}: secrets outside of the sandbox ('{path}')"
    return _secret_unsupported(source["secret"], f"volume '{path}'")


def _limit_unsupported(limit: Mapping[str, Any]) -> str | None:
    if limit.get("type") not in limited_process.KNOWN:
        return f"{NOT_SUPPORTED}: the limit {limit.get('type')}"
    if ("soft" in limit) != ("hard" in limit):
        return f"{NOT_SUPPORTED}: the limit {limit['type']} without both of 'soft' and 'hard'"
    return None


def container_unsupported(container: Mapping[str, Any] | None) -> str | None:
    """Return what ``container`` asks for that this cluster does not do."""
    if container is None:
        return None
    if container["type"] == "DOCKER":
        return f"{NOT_SUPPORTED}: containers of type DOCKER"
    image = container.get("mesos", {}).get("image")
    if image:
        name = image.get("docker", image.get("appc", {})).get("name", "")
        return (
            f"{NOT_SUPPORTED}: container images ('{name}'); a task runs with a Python of this"
            " machine, which service.python names"
        )
    for network in container.get("network_infos", ()):
        return f"{NOT_SUPPORTED}: container networks ('{network.get('name', '')}')"
    for field in ("linux_info", "tty_info"):
        if container.get(field):
            return f"{NOT_SUPPORTED}: 'container.{field}'"
    volumes = (_volume_unsupported(volume) for volume in container.get("volumes", ()))
    limits = container.get("rlimit_info", {}).get("rlimits", ())
    return next(
        (error for error in (*volumes, *map(_limit_unsupported, limits)) if error is not None), None
    )


def _resources_error(task: Mapping[str, Any], available: Resources) -> str | None:
    try:
        wanted = Resources.parse(task.get("resources", []))
    except InvalidResource as error:
        return f"Task uses invalid resources: {error}"
    if not wanted:
        return "Task uses no resources"
    if len(wanted.roles()) > 1:
        return "Task uses resources allocated to more than one role"
    if not available.contains(wanted):
        return (
            f"Total resources {wanted} required by task and its executor is more than available"
            f" {available}"
        )
    return _limits_error(task, wanted)


def _limits_error(task: Mapping[str, Any], wanted: Resources) -> str | None:
    for name, limit in task.get("limits", {}).items():
        if name not in ("cpus", "mem"):
            return f"Resource limits may only be set for 'cpus' and 'mem', not '{name}'"
        value = limit.get("value", 0) if isinstance(limit, dict) else limit
        if value not in ("Infinity", "infinity") and float(value) < wanted.scalar(name):
            return f"Task's '{name}' limit is less than its '{name}' request"
    return None
