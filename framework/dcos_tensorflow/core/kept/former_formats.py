"""The former formats of the store, and their way to the present one.

* Format 1 (release 0.1.0): the service and its only gang are one record, ``Properties/job``, and
  the ClusterSpec is at ``Epoch``.
* Format 2: a page has 200 units, so a unit that changed wrote all of them; and all attempts that
  were given up are one value, which is too small for those of 10,000 tasks.

Called by ``core.kept.restore``; the scheduler commits the result before anything else happens.
Pages of format 3 are written before those of format 2 go, the first of them at first: a commit that
is cut short leaves the whole former state or the whole present one, and leads here again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.codec import RecordError
from dcos_tensorflow.core.kept.writes import abandoned
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.gang import MAIN
from dcos_tensorflow.core.model.job import COLLATERAL_NAMES
from dcos_tensorflow.core.model.units import PAGE

_JOB = "Properties/job"
_EPOCH = "Epoch"

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

_UNITS = "Units"
_ABANDONED = "Properties/abandoned"


def changes(values: Mapping[str, bytes]) -> tuple[Write, ...]:
    """Return what brings a store of a former format to the present one; nothing for the present.

    Raises RecordError when what it holds cannot be read.
    """
    return (*_from_format_1(values), *_units(values), *_abandoned(values))


def _from_format_1(values: Mapping[str, bytes]) -> tuple[Write, ...]:
    writes: list[Write] = []
    if _JOB in values:
        job, service = _job_and_service(values[_JOB])
        writes += (
            Write(paths.SERVICE, codec.encode(service)),
            Write(paths.job(MAIN), codec.encode(job)),
        )
    if _EPOCH in values:
        writes += (Write(paths.epoch(MAIN), values[_EPOCH]), Write(_EPOCH, None))
    if _JOB in values:
        writes.append(Write(_JOB, None))
    return tuple(writes)


def _job_and_service(record: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        plain = json.loads(record)
    except ValueError as error:
        raise RecordError(f"{_JOB}: not JSON: {error}") from error
    if not isinstance(plain, dict):
        raise RecordError(f"{_JOB}: expected an object, found {plain!r}")
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


def _abandoned(values: Mapping[str, bytes]) -> tuple[Write, ...]:
    if _ABANDONED not in values:
        return ()
    found: dict[str, str] = codec.decode(dict, values[_ABANDONED])
    return (*abandoned({}, found), Write(_ABANDONED, None))


def _units(values: Mapping[str, bytes]) -> tuple[Write, ...]:
    given: list[Any] = []
    states: list[Any] = []
    # A page whose state a split commit did not reach was never asked for anything.
    number = 0
    while (path := f"{_UNITS}/{number:04}/State") in values:
        states += _list(values, path)
        given += _list(values, f"{_UNITS}/{number:04}/Given")
        number += 1
    if len(states) != len(given):
        raise RecordError(f"{_UNITS}: {len(given)} units were given, and {len(states)} are kept")
    if not states:
        return ()
    writes = []
    for page, first in enumerate(range(0, len(states), PAGE)):
        part = slice(first, first + PAGE)
        writes.append(Write(paths.units_given(page), codec.encode(given[part])))
        writes.append(Write(paths.units_state(page), codec.encode(states[part])))
    old = sorted(path for path in values if path.partition("/")[0] == _UNITS)
    old.sort(key=lambda path: path != f"{_UNITS}/0000/State")
    return (*writes, *(Write(path, None) for path in old))


def _list(values: Mapping[str, bytes], path: str) -> list[Any]:
    try:
        found = json.loads(values[path])
    except (KeyError, ValueError) as error:
        raise RecordError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, list):
        raise RecordError(f"{path}: expected a list")
    return found
