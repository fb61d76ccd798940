"""Launches, resources as offers name them, and the TaskInfos that become of both in one ACCEPT."""

from collections.abc import Mapping, Sequence
from typing import Any

from dcos_tensorflow.core.model.actions import LaunchTask
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.mesos.wire.convert import launch_operations


def a_launch(**fields: Any) -> LaunchTask:
    """Return the launch of a small task without ports."""
    usual = {
        "task_id": "svc__worker-0__1",
        "name": "worker-0",
        "agent_id": "S1",
        "resources": Resources(1.0, 128.0),
        "ports": (),
        "command": "true",
        "env": {},
    }
    return LaunchTask(**{**usual, **fields})


def scalar(name: str, value: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "SCALAR", "scalar": {"value": value}, **more}


def port_ranges(*ranges: tuple[int, int], **more: Any) -> dict[str, Any]:
    listed = [{"begin": first, "end": last} for first, last in ranges]
    return {"name": "ports", "type": "RANGES", "ranges": {"range": listed}, **more}


def task_infos(
    launches: Sequence[LaunchTask], raw_offers: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    infos: list[dict[str, Any]] = launch_operations(launches, raw_offers)[-1]["launch"][
        "task_infos"
    ]
    return infos


def task_info(launch: LaunchTask, raw_offers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return task_infos([launch], raw_offers)[0]
