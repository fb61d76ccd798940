"""The tasks as the SDK's pods: ``/v1/pod``, ``/v1/pod/status``, ``/v1/pod/<name>/{status,info}``.

A pod is a role, a pod instance is a task, and each has one task of the same name. A task that was
never launched has no Mesos state; it is shown all the same, as PENDING and without an id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dcos_tensorflow.api.counters import MESOS_STATES
from dcos_tensorflow.api.errors import ElementNotFound
from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.plans.removal import unwanted
from dcos_tensorflow.core.spec.service_spec import RoleSpec, gang_named, split_task_name
from dcos_tensorflow.core.spec.volume_spec import Reservation, VolumeSpec

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas

NEVER_LAUNCHED = "PENDING"


def wanted_names(state: ServiceState) -> list[str]:
    """Return the names of the pod instances that the options ask for."""
    roles = state.spec.roles_in_start_order
    views = tuple(state.views())
    return [name for role in roles for view in views for name in view.roster.names_of(role)]


def pod_names(state: ServiceState) -> list[str]:
    """Return the names of all pod instances, those that are being removed last."""
    leaving = (record.name for view in state.views() for record in unwanted(view))
    return [*wanted_names(state), *leaving]


def pods_status(state: ServiceState) -> schemas.PodsStatus:
    """Return the status of every pod instance."""
    by_role: dict[str, list[str]] = {}
    for name in pod_names(state):
        by_role.setdefault(str(split_task_name(name)[0]), []).append(name)
    return {
        "service": state.spec.name,
        "pods": [
            {"name": role, "instances": [_instance(state, name) for name in names]}
            for role, names in by_role.items()
        ],
    }


def pod_status(state: ServiceState, name: str) -> schemas.PodInstance:
    """Return the status of one pod instance. Raises ElementNotFound."""
    _check(state, name)
    return _instance(state, name)


def pod_info(state: ServiceState, name: str) -> list[schemas.TaskInfo]:
    """Return TaskInfo and TaskStatus of a pod instance's task; empty when it was never launched.

    Command and environment are left out: what is shown must be safe to show.
    Raises ElementNotFound.
    """
    _check(state, name)
    record = state.tasks.get(name)
    return [] if record is None else [{"info": _info(state, record), "status": _status(record)}]


def record_of(state: ServiceState, name: str) -> TaskRecord | None:
    """Return a task's record; None when it was never launched. Raises ElementNotFound."""
    _check(state, name)
    return state.tasks.get(name)


def _check(state: ServiceState, name: str) -> None:
    if name in state.tasks:
        return
    try:
        role, index = split_task_name(name)
    except ValueError:
        raise ElementNotFound(name) from None
    spec = state.spec.role(role)
    # "worker-00" parses, and is no name of ours.
    if spec is None or not 0 <= index < spec.count or name != f"{role}-{index}":
        raise ElementNotFound(name)


def _instance(state: ServiceState, name: str) -> schemas.PodInstance:
    record = state.tasks.get(name)
    status = NEVER_LAUNCHED
    if record is not None:
        status = MESOS_STATES[record.state].removeprefix("TASK_")
        if name in state.controls.paused_tasks and not record.terminal:
            status = "PAUSED" if state.view().tasks.has(record.name, Fact.STOPPED) else "PAUSING"
    task_id = record.task_id if record is not None else ""
    return {"name": name, "tasks": [{"id": task_id, "name": name, "status": status}]}


def _info(state: ServiceState, record: TaskRecord) -> dict[str, Any]:
    role = state.view(gang_named(record.name)).spec.role(record.role)
    info: dict[str, Any] = {
        "name": record.name,
        "taskId": {"value": record.task_id},
        "slaveId": {"value": record.agent_id},
        "resources": _resources(state, role, record),
        "discovery": {"visibility": "CLUSTER", "name": record.name},
        "labels": {
            "labels": [
                {"key": contract.LABEL_FRAMEWORK_ID, "value": state.framework_id},
                {"key": contract.LABEL_SERVICE, "value": state.spec.name},
                {"key": contract.LABEL_TASK, "value": record.name},
                {"key": contract.LABEL_EPOCH, "value": str(record.epoch)},
            ]
        },
    }
    if role is not None and role.container is not None:
        kind = str(role.container.containerizer).upper()
        image = {"type": "DOCKER", "docker": {"name": role.container.image}}
        info["container"] = {"type": kind, kind.lower(): {"image": image}}
        if kind == "DOCKER":
            info["container"] = {"type": kind, "docker": {"image": role.container.image}}
    return info


def _resources(
    state: ServiceState, role: RoleSpec | None, record: TaskRecord
) -> list[dict[str, Any]]:
    mesos_role = state.spec.mesos_role
    found: list[dict[str, Any]] = []
    if role is not None:
        amounts = role.resources
        for name in ("cpus", "mem", "disk", "gpus"):
            amount = getattr(amounts, name)
            if amount:
                scalar = {"value": float(amount)}
                found.append({"name": name, "type": "SCALAR", "scalar": scalar, "role": mesos_role})
    reservation = state.reservation_of(record.name)
    if role is not None and role.volume is not None and reservation is not None:
        found.append(_volume(reservation, role.volume, mesos_role))
    if record.ports and not state.spec.has_own_addresses():
        ranges = {"range": [{"begin": port, "end": port} for port in record.ports]}
        found.append({"name": "ports", "type": "RANGES", "ranges": ranges, "role": mesos_role})
    return found


def _volume(reservation: Reservation, volume: VolumeSpec, mesos_role: str) -> dict[str, Any]:
    return {
        "name": "disk",
        "type": "SCALAR",
        "scalar": {"value": volume.size},
        "role": mesos_role,
        "disk": {
            "persistence": {"id": reservation.persistence_id},
            "volume": {"container_path": volume.path, "mode": "RW"},
        },
    }


def _status(record: TaskRecord) -> dict[str, Any]:
    status: dict[str, Any] = {
        "taskId": {"value": record.task_id},
        "slaveId": {"value": record.agent_id},
        "state": MESOS_STATES[record.state],
        "timestamp": record.changed_at,
        "containerStatus": {"networkInfos": [{"ipAddresses": [{"ipAddress": record.address}]}]},
    }
    said = {"source": record.source, "reason": record.reason, "message": record.message}
    return {**status, **{name: value for name, value in said.items() if value}}
