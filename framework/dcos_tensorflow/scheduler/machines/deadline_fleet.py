"""The progress of a job with a deadline, and the fleet that it should have by that.

Used by ``scheduler.machines.buying``, once a look. The pace is in memory alone: after a crash it is
measured anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dcos_tensorflow.capacity.by_deadline import Pace, Way, boot_seconds, fleet_of
from dcos_tensorflow.capacity.deadline import Fleet, Memory, RestartCost
from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.capacity.market import Pool
from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.restarts.gang_queries import known_step
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec

#: From the order to start again until the next step, as reckoned; docs/recovery.md measures less.
_RESTART_SECONDS = 60.0


class DeadlineWatch:
    """Remembers what was seen of one job and of its markets."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._memory = Memory()

    def fleet(
        self,
        state: ServiceState,
        spec: CapacitySpec,
        ledger: Ledger,
        *,
        demands: Sequence[GangDemand],
        pools: Sequence[Pool] | None,
        now: float,
        next_look: float,
    ) -> Fleet | None:
        """Return the fleet that the gang is to have; None where no deadline says anything."""
        began = ledger.account.began_at
        if not (spec.deadline_at or spec.deadline_seconds) or not began or pools is None:
            return None
        view = state.view()
        trains = state.job.phase is JobPhase.RUNNING
        self._pace = self._pace.seen(now, known_step(view), trains=trains)
        lost = state.spec.storage.checkpoints.interval_seconds + _RESTART_SECONDS
        way = Way(
            now=now,
            began=began,
            deadline=spec.deadline_at or began + spec.deadline_seconds,
            pace=self._pace,
            total_steps=spec.total_steps or _told_steps(state),
            trains=trains,
            cost=RestartCost(boot_seconds(ledger, spec.register_seconds), _RESTART_SECONDS, lost),
        )
        demand = demands[0] if demands else None
        fleet, self._memory = fleet_of(
            way,
            demand,
            ledger,
            pools=pools,
            spec=spec,
            memory=self._memory,
            next_look=max(next_look, 1.0),
        )
        return fleet


def _told_steps(state: ServiceState) -> int:
    """Return how many steps the job makes by the epochs that it tells; 0 where it tells none."""
    most = 0
    for record in state.live_tasks:
        report = state.told.reports.get(record.task_id, {})
        told = report.get("progress")
        if not isinstance(told, Mapping):
            continue
        step, epoch, epochs = told.get("step"), told.get("epoch"), told.get("epochs")
        if not (isinstance(step, int) and isinstance(epoch, int) and isinstance(epochs, int)):
            continue
        if epoch > 0:
            # Within an epoch that is too much by a part of it, so nothing is begun too late.
            most = max(most, round(step / max(epoch - 1, 1) * epochs))
    return most
