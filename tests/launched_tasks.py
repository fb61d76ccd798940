"""The TaskInfos that launches become, cut out of the operations of one ACCEPT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dcos_tensorflow.core.model.actions import LaunchTask
from dcos_tensorflow.mesos.convert import launch_operations


def task_infos(
    launches: Sequence[LaunchTask], raw_offers: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    infos: list[dict[str, Any]] = launch_operations(launches, raw_offers)[-1]["launch"][
        "task_infos"
    ]
    return infos


def task_info(launch: LaunchTask, raw_offers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return task_infos([launch], raw_offers)[0]
