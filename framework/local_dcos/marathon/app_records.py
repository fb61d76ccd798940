"""Marathon's records of each app and each task, and their form on disk. Plain data.

``marathon`` owns them, ``app_schedule`` decides by them, ``marathon_views`` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

STAGING = "TASK_STAGING"
RUNNING = "TASK_RUNNING"
KILLING = "TASK_KILLING"


@dataclass(frozen=True)
class Deployment:
    """A change that is under way. ``action`` is Marathon's word for it."""

    deployment_id: str
    action: str
    version: str


@dataclass(frozen=True)
class AppRecord:
    """One app, whose ``definition`` is as ``app_definition.normalised`` returned it."""

    definition: Json
    #: Of the definition: an ISO time, unique for the app.
    version: str
    #: Since when more than the number of instances is the same; older tasks are replaced.
    config_version: str
    #: Version and definition of each earlier one, oldest first.
    history: tuple[tuple[str, Json], ...] = ()
    deployment: Deployment | None = None
    #: Seconds that the next launch waits after a failure, and its unix time.
    delay: float = 0.0
    not_before: float = 0.0
    #: How the last task that failed ended, as Marathon shows it.
    last_failure: Json | None = None
    last_scaling_at: str = ""
    deleting: bool = False

    @property
    def app_id(self) -> str:
        """Return the app's id."""
        return str(self.definition["id"])

    def to_json(self) -> Json:
        """Return it as it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> AppRecord:
        """Return what ``to_json`` stored."""
        deployment = stored["deployment"]
        return cls(
            **{
                **stored,
                "history": tuple((version, one) for version, one in stored["history"]),
                "deployment": None if deployment is None else Deployment(**deployment),
            }
        )


@dataclass(frozen=True)
class TaskRecord:
    """One run of an app. Times are unix seconds; without an ``agent_id`` it waits for a place."""

    task_id: str
    app_id: str
    config_version: str
    staged_at: float
    agent_id: str = ""
    ports: tuple[int, ...] = ()
    state: str = STAGING
    started_at: float = 0.0
    healthy: bool | None = None

    def to_json(self) -> Json:
        """Return it as it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TaskRecord:
        """Return what ``to_json`` stored."""
        return cls(**{**stored, "ports": tuple(stored["ports"])})


def timestamp(seconds: float) -> str:
    """Return a unix time as Marathon writes it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def failure(task: TaskRecord, state: str, message: str, version: str, now: float) -> Json:
    """Return how a task failed, as Marathon shows it with the app."""
    return {
        "appId": task.app_id,
        "host": "127.0.0.1",
        "message": message,
        "slaveId": task.agent_id,
        "state": state,
        "taskId": task.task_id,
        "timestamp": timestamp(now),
        "version": version,
    }
