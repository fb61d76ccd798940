"""The order for a task runner: the wanted start of the user's process, and its cluster.

The scheduler's runner client compares ``order`` with the report of each runner, and sends it again
until the two agree (``docs/task-runner.md``): level-triggered, so nothing is lost when either side
restarts. The order is derived from the state; only ``TaskRecord.start`` and ``held`` are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.cluster.rendering import recovery_strategy, runner_cluster
from dcos_tensorflow.core.cluster.serving import grace_of
from dcos_tensorflow.core.contract import NOTHING_TO_SAVE_SECONDS
from dcos_tensorflow.core.model.job import STOPPED_PHASES
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, Strategy


def order(view: GangView, record: TaskRecord) -> Mapping[str, Any] | None:
    """Return the body of ``PUT /v1/cluster`` that ``record``'s runner should be under.

    None when there is no ClusterSpec yet, for a member that the newest one goes without, and for
    one that is to be stopped first: its agent may have been away while it was told to start.
    """
    if view.epoch is None or not has_order(view, record):
        return None
    body: dict[str, Any] = {
        **runner_cluster(view.spec, view.epoch, record.name),
        "start": record.start,
        "run": not record.held,
        "grace_seconds": grace_seconds(view, record.name),
    }
    if view.gang.unit is not None and not record.held:
        body["unit"] = unit(view)
    elif record.role.is_in_gang and must_agree(view.spec, view.job.strategy_seen):
        body["expects_restore_step"] = True
        body["restore_step"] = view.job.restart.restore_step
    if record.data_service:
        body["data_service"] = record.data_service
    return body


def unit(view: GangView) -> Mapping[str, Any] | None:
    """Return what a slot's runners are told of the unit that they run; None for none."""
    run = view.gang.unit
    if run is None:
        return None
    payload = view.service.units.payload(run.number)
    return {"number": run.number, "attempt": run.attempt, "payload": payload}


def _is_to_stop(view: GangView, record: TaskRecord) -> bool:
    """Say whether a restart under way has yet to stop this member."""
    return (
        record.role.is_in_gang
        and not record.held
        and view.job.phase in STOPPED_PHASES
        and view.job.restart.concerns(record.name)
    )


def has_order(view: GangView, record: TaskRecord) -> bool:
    """Say whether there is an ``order`` for ``record``'s runner, without making it."""
    if view.epoch is None or _is_to_stop(view, record):
        return False
    return not record.role.is_in_gang or record.name in view.epoch.addresses


def grace_seconds(view: GangView, name: str) -> float:
    """Return how long a member's process may take to end when it is stopped for a restart.

    A member that stops because a peer failed has nothing to save: its sessions are broken. So are
    those of MultiWorkerMirrored members when the decider, who saves, has stopped before them.
    """
    spec, seen = view.spec, view.job.strategy_seen
    broken = not view.job.restart.planned or (
        recovery_strategy(spec, seen) is Strategy.MULTI_WORKER and name != view.roster.decider
    )
    grace = grace_of(spec, seen, name)
    return min(grace, NOTHING_TO_SAVE_SECONDS) if broken else grace


def must_agree(spec: ServiceSpec, strategy_seen: str) -> bool:
    """Say whether all members must restore the same checkpoint step, each from its own disk.

    MultiWorkerMirrored members that restore different steps train on without any error, with
    different weights (measured). With parameter servers only the chief restores.
    """
    strategy = recovery_strategy(spec, strategy_seen)
    return strategy is Strategy.MULTI_WORKER and len(spec.gang_members) > 1
