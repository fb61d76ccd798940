"""The working copy of one step: the state so far, the actions so far, and the reasons.

Private to the modules behind ``core.step.step``. A draft lives for one step and never leaves it;
from outside the step is a pure function.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dcos_tensorflow.core.model.actions import Acknowledge, Action
from dcos_tensorflow.core.model.job import JobPhase, JobState
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord


@dataclass
class Draft:
    """One step in the making. ``now`` is the only clock there is."""

    state: ServiceState
    now: float
    actions: list[Action] = field(default_factory=list)
    acknowledgements: list[Acknowledge] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def job(self) -> JobState:
        """Return the job as it stands in this step."""
        return self.state.job

    def waited(self, since: float) -> float:
        """Return the seconds since then for which somebody could have answered us.

        Without a subscription nobody is late: no update can come, and nothing can be killed.
        """
        if not self.state.registered:
            return 0.0
        return self.now - max(since, self.state.registered_at, self.state.awake_since)

    def set(self, **changes: Any) -> None:
        """Replace fields of the state."""
        self.state = replace(self.state, **changes)

    def set_job(self, **changes: Any) -> None:
        """Replace fields of the job."""
        self.state = replace(self.state, job=replace(self.state.job, **changes))

    def enter(self, phase: JobPhase, why: str, **changes: Any) -> None:
        """Move the job to ``phase``, and say why in one sentence."""
        since = self.now if phase is not self.job.phase else self.job.phase_since
        self.set_job(**{"phase": phase, "why": why, "phase_since": since, **changes})
        self.reasons.append(why)

    def put(self, record: TaskRecord) -> None:
        """Store a task's record."""
        self.state = self.state.with_task(record)

    def act(self, action: Action, why: str) -> None:
        """Ask for an action, and say why in one sentence."""
        self.actions.append(action)
        self.reasons.append(why)
