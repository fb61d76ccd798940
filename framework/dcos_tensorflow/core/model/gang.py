"""A gang: the tasks of one ClusterSpec, and everything that is true of them as one.

A service holds one of it; or one for each slot that takes units of work, and one beside them that
has no members and whose job is that of all units. Every function that works on a gang takes it as
an argument: as a :class:`~dcos_tensorflow.core.model.service_state.GangView` where it asks, as a
``core.draft.GangDraft`` where it changes something. The parts of the service (subscription, offers,
reservations, controls, reports) are beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field

from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.job import JobState
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.model.units import UnitRun
from dcos_tensorflow.core.spec.service_spec import MAIN
from dcos_tensorflow.records import dataclass

__all__ = ["MAIN", "QUOTA", "Gang", "Misfit", "Placing"]


@dataclass(frozen=True)
class Misfit:
    """A task that went nowhere."""

    task: str
    #: One sentence why.
    reason: str
    #: Reason -> how many agents it keeps out.
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Placing:
    """What is known of a gang's search for places; never kept: offers end with the subscription."""

    #: The tasks that fit nowhere.
    misfits: tuple[Misfit, ...] = ()
    #: What placement last looked at in vain: the desk's version, and the tasks as they were wanted.
    considered: tuple[int, tuple[str, ...]] = (-1, ())
    #: Since when offers are held for it, in unix seconds; 0 while none are.
    held_since: float = 0.0
    #: How often in a row it was not complete within ``gang.hold_seconds``.
    rounds: int = 0
    #: What of a quota is too small for the members that wait; empty when nothing is.
    short_of_quota: str = ""
    #: What keeps every task from being placed or started, whatever is offered; empty for nothing.
    blocked: str = ""

    @functools.cached_property
    def reasons(self) -> Mapping[str, str]:
        """Return task -> why it fits nowhere."""
        return {misfit.task: misfit.reason for misfit in self.misfits}


#: How a sentence about a quota begins, behind why the gang waits.
QUOTA = "; the quota of the Mesos role "


@dataclass(frozen=True)
class Gang:
    """One gang. Its tasks, its ClusterSpec and its job are kept, each in a place of its own."""

    name: str
    #: Members and the sidecars that follow them. They hold the roster.
    tasks: TaskTable
    #: The newest ClusterSpec; None before the first placement.
    epoch: ClusterSpec | None = None
    job: JobState = JobState()
    placing: Placing = Placing()
    #: Of a slot: the unit of work that it runs; None for none. It is kept.
    unit: UnitRun | None = None
    #: The one before, while what is told late may be of it; never kept.
    former_unit: UnitRun | None = None

    @property
    def why(self) -> str:
        """Return why the job is where it is, for people: with what holds all tasks up, if anything.

        What is not kept has its place here, not in ``JobState.why``.
        """
        why = self.placing.blocked or self.job.why
        short = self.placing.short_of_quota
        return f"{why}{QUOTA}{short}" if short else why
