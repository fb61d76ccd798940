"""Apps, tasks and deployments as Marathon's API shows them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from local_dcos.marathon.app_definition import app_of
from local_dcos.marathon.app_records import KILLING, RUNNING, STAGING, AppRecord, TaskRecord
from local_dcos.marathon.app_records import timestamp as shown_time

Json = dict[str, Any]


def app(record: AppRecord, tasks: Sequence[TaskRecord]) -> Json:
    """Return an app with its tasks."""
    running = [one for one in tasks if one.state == RUNNING]
    found: Json = {
        **record.definition,
        "ports": [one["port"] for one in record.definition["portDefinitions"] if "port" in one],
        "version": record.version,
        "versionInfo": {
            "lastScalingAt": record.last_scaling_at,
            "lastConfigChangeAt": record.config_version,
        },
        "tasksStaged": sum(one.state == STAGING for one in tasks),
        "tasksRunning": len(running),
        "tasksHealthy": sum(_counts_as_healthy(record, one) for one in running),
        "tasksUnhealthy": sum(one.healthy is False for one in running),
        "deployments": [] if record.deployment is None else [{"id": _deployment_id(record)}],
        "tasks": [task(one) for one in tasks],
    }
    if record.last_failure is not None:
        found["lastTaskFailure"] = record.last_failure
    return found


def _counts_as_healthy(record: AppRecord, one: TaskRecord) -> bool:
    return one.healthy is True or (one.healthy is None and not record.definition["healthChecks"])


def _deployment_id(record: AppRecord) -> str:
    return "" if record.deployment is None else record.deployment.deployment_id


def task(one: TaskRecord) -> Json:
    """Return a task."""
    found: Json = {
        "id": one.task_id,
        "appId": one.app_id,
        "host": "127.0.0.1",
        "slaveId": one.agent_id,
        "state": one.state,
        "ports": list(one.ports),
        "servicePorts": [],
        "stagedAt": shown_time(one.staged_at),
        "version": one.config_version,
        "ipAddresses": [{"ipAddress": "127.0.0.1", "protocol": "IPv4"}],
    }
    if one.started_at:
        found["startedAt"] = shown_time(one.started_at)
    if one.healthy is not None:
        found["healthCheckResults"] = [{"alive": one.healthy, "taskId": one.task_id}]
    return found


def deployments(records: Sequence[AppRecord]) -> list[Json]:
    """Return the deployments that are under way."""
    found = []
    for record in records:
        one = record.deployment
        if one is not None:
            action = {"action": one.action, "app": record.app_id}
            found.append(
                {
                    "id": one.deployment_id,
                    "version": one.version,
                    "affectedApps": [record.app_id],
                    "affectedPods": [],
                    "steps": [{"actions": [action]}],
                    "currentActions": [action],
                    "currentStep": 1,
                    "totalSteps": 1,
                }
            )
    return found


def queue(records: Sequence[AppRecord], tasks: Sequence[TaskRecord], now: float) -> Json:
    """Return what waits to be launched, and for how long."""
    found = []
    for record in records:
        alive = [one for one in tasks if one.app_id == record.app_id and one.state != KILLING]
        missing = app_of(record.definition).instances - len(alive)
        if missing > 0 and not record.deleting:
            left = max(0.0, record.not_before - now)
            found.append(
                {
                    "app": record.definition,
                    "count": missing,
                    "delay": {"timeLeftSeconds": round(left), "overdue": left == 0},
                    "since": record.version,
                }
            )
    return {"queue": found}


def group(path: str, apps: Sequence[Json], version: str) -> Json:
    """Return a group with all apps and groups below it."""
    prefix = "" if path == "/" else path
    own, below = [], {}
    for one in apps:
        rest = one["id"].removeprefix(prefix + "/")
        if rest == one["id"]:
            continue
        name, slash, _ = rest.partition("/")
        if slash:
            below[f"{prefix}/{name}"] = True
        else:
            own.append(one)
    return {
        "id": path,
        "apps": own,
        "groups": [group(name, apps, version) for name in below],
        "pods": [],
        "dependencies": [],
        "version": version,
    }
