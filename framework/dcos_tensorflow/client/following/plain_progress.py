"""Progress as plain lines, one per change: for logs, pipes and whatever is no terminal.

Pure: ``job`` hands it one snapshot after the other and the time, and prints its lines.
"""

from __future__ import annotations

from datetime import datetime

from dcos_tensorflow.client.snapshot import Snapshot, TaskLine
from dcos_tensorflow.client.wording import (
    detailed,
    numbers,
    unit_failure,
    units_done,
    without_repeats,
)
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.task import TERMINAL_STATES
from dcos_tensorflow.core.spec.service_spec import is_slot

#: Steps and losses of one task are told no more often than this.
PROGRESS_SECONDS = 5.0
#: Why something waits may change with each offer; it is told no more often than this.
WAITING_SECONDS = 5.0

#: What a task does once nothing of it runs.
_ENDED = frozenset({"ended", *map(str, TERMINAL_STATES)})
#: What it does from one unit of work to the next.
_OF_UNITS = frozenset({"preparing", "waiting", "running", "stopping"})


def _at_work(task: TaskLine) -> TaskLine:
    """Return a slot's task without what differs from unit to unit."""
    if not is_slot(task.name) or task.doing not in _OF_UNITS:
        return task
    where = task.detail if task.doing == "running" else ""
    return TaskLine(task.name, "running", where, attempt=task.attempt)


class PlainProgress:
    """Turns snapshots into lines. Times are unix seconds."""

    def __init__(self) -> None:
        self._phase: tuple[str, str] | None = None
        self._incidents: dict[tuple[str, float], str] = {}
        self._standing: dict[str, tuple[str, int]] = {}
        self._told: dict[str, tuple[str, float]] = {}
        self._units: tuple[str, float] = ("", 0.0)
        self._unit_failure: tuple[str, float] = ("", 0.0)
        self._waits: dict[str, tuple[str, ...]] = {}
        #: What keeps tasks from S3, as it was told last: no longer than until they run without.
        self._storage: dict[tuple[str, tuple[str, str]], str] = {}

    def lines(self, snapshot: Snapshot, now: float) -> list[str]:
        """Return what is new since the last call, with the time of day in front."""
        phase, why = snapshot.standing(now)
        failures = self._incidents_in(snapshot)
        job = self._phase_line(phase, without_repeats(why, self._told_of(snapshot)))
        # A slot goes from unit to unit all the time: how many are done is told in their place.
        seen = map(_at_work, snapshot.tasks) if snapshot.units else snapshot.tasks
        tasks = [line for task in seen for line in self._task(task, why, now)]
        # A job runs and is done after the last of its tasks; all else they do because it does.
        last = phase in (JobPhase.RUNNING, JobPhase.DONE)
        found = [*failures, *tasks, *job] if last else [*failures, *job, *tasks]
        found += self._units_in(snapshot, now)
        found += [*self._waits_in(snapshot), *self._problems(snapshot)]
        stamp = datetime.fromtimestamp(now).strftime("%H:%M:%S")
        return [f"{stamp} {line}" for line in found]

    def _incidents_in(self, snapshot: Snapshot) -> list[str]:
        found = []
        verdict = str((snapshot.verdict or {}).get("summary", ""))
        for incident in snapshot.job.get("incidents") or []:
            key, summary = (incident["task_id"], incident["at"]), str(incident["summary"])
            # Why a process ended may be read from its sandbox a moment after the failure is known.
            before = self._incidents.get(key)
            if before == summary:
                continue
            self._incidents[key] = summary
            if verdict.startswith(summary.partition(": ")[0]):
                # What has ended the job is told with its end.
                continue
            if before is not None and summary.startswith(before):
                summary = f"{incident['task']}: {without_repeats(summary, [before])}"
            found.append(f"failure: {summary}")
        return found

    def _told_of(self, snapshot: Snapshot) -> list[str]:
        """Return the sentences that a failure has by itself, or that the job's end will have."""
        verdict = snapshot.verdict or {}
        failed = [str(verdict["summary"])] if verdict.get("outcome") == Outcome.FAILED else []
        return [*self._incidents.values(), *failed]

    def _phase_line(self, phase: str, why: str) -> list[str]:
        if (phase, why) == self._phase:
            return []
        self._phase = (phase, why)
        return [f"{phase}: {why}" if why else phase]

    def _units_in(self, snapshot: Snapshot, now: float) -> list[str]:
        """Tell how many units are done, and the newest that failed, now and then."""
        found = []
        failure, (before, at) = unit_failure(snapshot.units or {}), self._unit_failure
        # What has failed in the end is told with the job's.
        if failure != before and now - at >= WAITING_SECONDS and not snapshot.done:
            self._unit_failure = (failure, now)
            found.append(f"failure: {failure}")
        text, (before, at) = units_done(snapshot.units) if snapshot.units else "", self._units
        if text == before or (now - at < PROGRESS_SECONDS and not snapshot.done):
            return found
        self._units = (text, now)
        return [*found, text]

    def _waits_in(self, snapshot: Snapshot) -> list[str]:
        """Tell who waits, once, and when that is over."""
        before, self._waits = self._waits, {told: tasks for tasks, told in snapshot.waits}
        found = [told for told in self._waits if told not in before]
        waiting = {name for tasks in self._waits.values() for name in tasks}
        over = {name for told in before.keys() - self._waits.keys() for name in before[told]}
        ended = sorted(over - waiting) if snapshot.phase == JobPhase.RUNNING else []
        return [*found, *(f"{name} waits no more" for name in ended)]

    def _problems(self, snapshot: Snapshot) -> list[str]:
        """Tell what keeps tasks from S3, once, and when that is over.

        A task that is started again of it has no problem at first. It has got over it when it runs.
        """
        problems = {(p.task, p.kind): p.text for p in snapshot.storage_problems}
        found = [f"{key[0]}: {text}" for key, text in problems.items() if key not in self._storage]
        having = {task for task, _ in problems}
        known = {task for task, _ in self._storage}
        run = {task.name for task in snapshot.tasks if task.doing == "running"}
        mended = sorted((known - having) & run)
        kept = {key: text for key, text in self._storage.items() if key[0] not in having | run}
        self._storage = {**kept, **problems}
        return [*found, *(f"{task}: S3 answers again" for task in mended)]

    def _task(self, task: TaskLine, why: str, now: float) -> list[str]:
        standing = (task.doing, task.attempt)
        changed = self._standing.get(task.name) != standing
        self._standing[task.name] = standing
        ended = task.doing in _ENDED
        if changed and not ended:
            self._told.pop(task.name, None)
        if task.doing == "not started":
            return []
        if task.doing in ("placing", "waiting", "preparing"):
            # What holds for the whole job was told with its phase.
            told = why in (task.detail, f"{task.name}: {task.detail}")
            return [] if told else self._waiting(task, now)
        progress = self._progress(task, now, 0.0 if ended else PROGRESS_SECONDS)
        if not changed:
            return progress
        line = f"{task.name} {detailed(task.doing, task.detail)}"
        return [*progress, line] if ended else [line, *progress]

    def _waiting(self, task: TaskLine, now: float) -> list[str]:
        if not task.detail or not self._due(task.name, task.detail, now, WAITING_SECONDS):
            return []
        if task.doing == "waiting":
            return [f"{task.name} waits {task.detail}"]
        return [f"{task.name} {task.doing}: {task.detail}"]

    def _progress(self, task: TaskLine, now: float, seconds: float) -> list[str]:
        text = numbers(task)
        if not text or not self._due(task.name, text, now, seconds):
            return []
        return [f"{task.name} {text}"]

    def _due(self, name: str, text: str, now: float, seconds: float) -> bool:
        told, at = self._told.get(name, ("", 0.0))
        if text == told or now - at < seconds:
            return False
        self._told[name] = (text, now)
        return True
