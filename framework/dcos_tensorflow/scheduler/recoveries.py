"""Restarts of a job that ran, each from its cause to the first step after it, as turns tell them.

``api.counters`` measures by it and ``tracing`` makes traces of it, each with one of its own. It
follows a service that runs one job: a slot that takes its next unit of work has recovered from
nothing. Pure; it decides nothing, and leaves out recoveries that began under a former scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from dcos_tensorflow.core.model.gang import MAIN, Gang
from dcos_tensorflow.core.model.job import ENDED_PHASES, RESTARTING_PHASES, Incident, JobPhase
from dcos_tensorflow.core.model.report import Report, step_of
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.restarts.outcome import deciding_tasks
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.loop.turn import Turn

#: The cause of a restart that no failure has caused: an update, an order, maintenance.
PLANNED = "planned"
#: Tasks whose first step is looked for.
_MOST_TASKS = 8
#: Phases that are kept: a gang may look for places for weeks.
_MOST_PHASES = 50


@dataclass(frozen=True)
class Passage:
    """One phase of a restart, in unix seconds."""

    phase: str
    began_at: float
    ended_at: float


@dataclass(frozen=True)
class Recovery:
    """One restart of members of a job that ran. Times are unix seconds."""

    #: The incident's word (``core.failures.causes``), or PLANNED.
    cause: str
    #: What has failed; None where it was planned.
    incident: Incident | None
    #: How many members were to start again when it began.
    members: int
    #: The turn that decided it.
    decision: Turn
    began_at: float
    #: What it went through until all ran, the first ones.
    phases: tuple[Passage, ...] = ()
    #: When all ran again; None when the job ended before.
    running_at: float | None = None
    #: When the first step after it was told; None: none was before the next restart or the end.
    first_step_at: float | None = None
    #: The highest step that was known before it, and the first one after it.
    step_before: int | None = None
    step_after: int | None = None

    @property
    def seconds(self) -> float | None:
        """Return how long it took from the cause until all ran; None when they never did."""
        return None if self.running_at is None else max(0.0, self.running_at - self.began_at)

    @property
    def lost_steps(self) -> int:
        """Return how many steps are trained once more, as the tasks tell their steps."""
        if self.step_before is None or self.step_after is None:
            return 0
        return max(0, self.step_before - self.step_after)


@dataclass(frozen=True)
class _Followed:
    """A restart that is under way, and what its tasks had told before."""

    recovery: Recovery
    #: Whose first step counts: those that restart and train.
    tasks: tuple[str, ...]
    #: Of each of them the attempt and what its progress was.
    told: Mapping[str, tuple[str, object]] = field(default_factory=dict)


class Recoveries:
    """Follows the restarts of one service. One thread calls ``follow``."""

    def __init__(self) -> None:
        self._followed: _Followed | None = None

    def follow(self, turn: Turn) -> Iterator[Recovery]:
        """Yield the restarts that this turn has shown to be over."""
        before, state = turn.before, turn.decision.state
        was, gang = before.gangs.get(MAIN), state.gangs.get(MAIN)
        if was is None or gang is None or state.spec.units is not None:
            return
        if self._stands_still(before, was, state, gang):
            return
        if gang.job.trained_until != was.job.trained_until:
            yield from self._end()
            self._followed = _begun(turn, before, was, gang)
        elif self._followed is not None:
            self._followed = _moved(self._followed, was, gang)
        if self._followed is not None and self._is_over(state, gang, turn):
            yield from self._end()

    def _stands_still(
        self, before: ServiceState, was: Gang, state: ServiceState, gang: Gang
    ) -> bool:
        same = gang.job is was.job
        return same and (self._followed is None or state.told.reports is before.told.reports)

    def _is_over(self, state: ServiceState, gang: Gang, turn: Turn) -> bool:
        followed = self._followed
        assert followed is not None
        if gang.job.phase in ENDED_PHASES or gang.job.phase is JobPhase.FINISHING:
            return True
        if followed.recovery.running_at is None:
            return False
        if followed.recovery.step_before is None:
            # A job that tells no steps: when all run there is nothing more to see.
            return True
        step = _first_step(followed, state)
        if step is None:
            return False
        told = replace(followed.recovery, first_step_at=turn.ended_at, step_after=step)
        self._followed = replace(followed, recovery=told)
        return True

    def _end(self) -> Iterator[Recovery]:
        followed, self._followed = self._followed, None
        if followed is not None:
            yield followed.recovery


def _begun(turn: Turn, before: ServiceState, was: Gang, gang: Gang) -> _Followed:
    job = gang.job
    newest = job.incidents[-1] if job.incidents else None
    # What has failed while all ran is what they restart for.
    incident = newest if newest is not None and newest.at >= was.job.phase_since else None
    deciding = frozenset(deciding_tasks(before.spec))
    members = [name for name in job.restart.members or gang.tasks if name in deciding]
    tasks = tuple(members[:_MOST_TASKS])
    steps = [step for _, report in _reports(before, tasks) if (step := step_of(report)) is not None]
    recovery = Recovery(
        cause=incident.kind if incident is not None else PLANNED,
        incident=incident,
        members=len(job.restart.members),
        decision=turn,
        began_at=min(incident.at, job.trained_until) if incident else job.trained_until,
        step_before=max(steps, default=None),
        running_at=job.phase_since if job.phase is JobPhase.RUNNING else None,
    )
    told = {name: _told(before, name, report) for name, report in _reports(before, tasks)}
    return _Followed(recovery, tasks, told)


def _moved(followed: _Followed, was: Gang, gang: Gang) -> _Followed:
    """Note which phase is over, and since when all run."""
    job, recovery = gang.job, followed.recovery
    if job.phase is was.job.phase:
        return followed
    passage = Passage(str(was.job.phase), was.job.phase_since, job.phase_since)
    if was.job.phase in RESTARTING_PHASES and recovery.running_at is None:
        recovery = replace(recovery, phases=(*recovery.phases, passage)[:_MOST_PHASES])
    if job.phase is JobPhase.RUNNING and recovery.running_at is None:
        recovery = replace(recovery, running_at=job.phase_since)
    return replace(followed, recovery=recovery)


def _first_step(followed: _Followed, state: ServiceState) -> int | None:
    """Return the first step that a task has told since; what it had told before stays a while."""
    for name, report in _reports(state, followed.tasks):
        record, step = state.gangs[MAIN].tasks[name], step_of(report)
        again = report.get("start") == record.start
        if step is not None and again and _told(state, name, report) != followed.told.get(name):
            return step
    return None


def _reports(state: ServiceState, tasks: Sequence[str]) -> Iterator[tuple[str, Report]]:
    known = state.gangs[MAIN].tasks
    for name in tasks:
        report = state.told.reports.get(known[name].task_id) if name in known else None
        if report is not None:
            yield name, report


def _told(state: ServiceState, name: str, report: Report) -> tuple[str, object]:
    progress = report.get("progress")
    at = progress.get("at") if isinstance(progress, Mapping) else None
    return state.gangs[MAIN].tasks[name].task_id, at
