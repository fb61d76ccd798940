"""The first format of the store (release 0.1.0), and its way to the present one.

In it the service and its only gang were one record, ``Properties/job``, and the ClusterSpec was at
``Epoch``. Called by ``core.kept.restore``; the scheduler commits what comes out before anything
else happens, so a crash in between only leads here again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.codec import RecordError
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.gang import MAIN
from dcos_tensorflow.core.model.job import COLLATERAL_NAMES

JOB = "Properties/job"
EPOCH = "Epoch"

#: Where each field of the old record is now: a path below the job's, or the service's, record.
_OF_JOB = {
    "restarting": "restart.members",
    "planned": "restart.planned",
    "replacing": "restart.replacing",
    "restore_step": "restart.restore_step",
    "restart_at": "restart.due_at",
    "restarts": "restart.count",
    "absent": "membership.absent",
    "joining": "membership.joining",
    "canary": "update.canary",
    "updating": "update.updating",
}
_OF_SERVICE = {
    "attempt": "attempt",
    "agent_failures": "agent_failures",
    "leaving": "maintenance.starts",
    "leaving_told": "maintenance.told_at",
    "uninstalling": "uninstall.asked",
    "given_up": "uninstall.given_up",
}


def changes(values: Mapping[str, bytes]) -> tuple[Write, ...]:
    """Return what brings a store of the first format to the present one; nothing for any other.

    Raises RecordError when what it holds cannot be read.
    """
    writes: list[Write] = []
    if JOB in values:
        job, service = _split(values[JOB])
        writes += (
            Write(paths.SERVICE, codec.encode(service)),
            Write(paths.job(MAIN), codec.encode(job)),
        )
    if EPOCH in values:
        writes += (Write(paths.epoch(MAIN), values[EPOCH]), Write(EPOCH, None))
    if JOB in values:
        writes.append(Write(JOB, None))
    return tuple(writes)


def _split(record: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        plain = json.loads(record)
    except ValueError as error:
        raise RecordError(f"{JOB}: not JSON: {error}") from error
    if not isinstance(plain, dict):
        raise RecordError(f"{JOB}: expected an object, found {plain!r}")
    job: dict[str, Any] = {}
    service: dict[str, Any] = {}
    for name, value in plain.items():
        if name in _OF_SERVICE:
            _set(service, _OF_SERVICE[name], value)
        else:
            _set(job, str(_OF_JOB.get(name, name)), value)
    for incident in job.get("incidents", ()):
        _bound(incident)
    return job, service


def _set(record: dict[str, Any], path: str, value: Any) -> None:
    *folders, last = path.split(".")
    for folder in folders:
        record = record.setdefault(folder, {})
    record[last] = value


def _bound(incident: Any) -> None:
    """Keep the first names of an incident's collateral, and how many more there were."""
    collateral = incident.get("collateral") if isinstance(incident, dict) else None
    if isinstance(collateral, list) and len(collateral) > COLLATERAL_NAMES:
        incident["collateral"] = collateral[:COLLATERAL_NAMES]
        incident["more_collateral"] = len(collateral) - COLLATERAL_NAMES
