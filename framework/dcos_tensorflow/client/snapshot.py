"""A job at one moment, as the API tells it: the source of every view of the command line.

Whether the scheduler runs in this process (``run``) or in another (``status``), the views get the
same two documents, ``/v1/job`` and ``/v1/why`` (docs/api.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.json_numbers import as_number
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.task import COMING_UP, TERMINAL_STATES, TaskState
from dcos_tensorflow.core.spec.service_spec import GANG_ROLES, TaskRole
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.service_state import ServiceState

Json = Mapping[str, Any]

#: How long the first report of a task runner is waited for before its process is said to run.
_REPORT_SECONDS = 60.0

#: What a task does whose container was ended.
_ENDED = "ended"


@dataclass(frozen=True)
class TaskLine:
    """One task: what it does in one word, and whatever is known beyond that.

    ``detail`` says why it waits, where it runs or how it ended.
    """

    name: str
    doing: str
    detail: str = ""
    step: int | None = None
    loss: float | None = None
    accuracy: float | None = None
    epoch: int | None = None
    epochs: int | None = None
    attempt: int = 0
    failed: bool = False
    #: What else it tells by name.
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_progress(self) -> bool:
        """Say whether the job has told anything about this task's training."""
        return bool(self.metrics) or any(
            v is not None for v in (self.step, self.loss, self.accuracy, self.epoch)
        )


@dataclass(frozen=True)
class StorageProblem:
    """What keeps a task from S3, as a sentence; of the same ``kind`` it is the same problem."""

    task: str
    kind: tuple[str, str]
    text: str


@dataclass(frozen=True)
class Snapshot:
    """The documents ``/v1/job`` and ``/v1/why`` of one moment."""

    job: Json
    why: Json

    @property
    def service(self) -> str:
        """Return the service's name."""
        return str(self.job["service"])

    @property
    def run(self) -> int:
        """Return which job of the service it is, counted from 1."""
        return int(self.job.get("run", 1))

    @property
    def phase(self) -> str:
        """Return the job's phase."""
        return str(self.job["phase"])

    def standing(self, now: float) -> tuple[str, str]:
        """Return phase and why as a person is told: a job runs once its processes do.

        To the scheduler it runs with its containers, which is all that Mesos knows. ``now`` is unix
        seconds.
        """
        if self.phase == JobPhase.RUNNING and any(
            _comes_up(task, now)
            for name, task in self.job["tasks"].items()
            if name.rpartition("-")[0] in GANG_ROLES
        ):
            return str(JobPhase.STARTING), "all tasks have their containers; the processes begin"
        return self.phase, str(self.job.get("why", ""))

    @property
    def done(self) -> bool:
        """Say whether the job has ended and nothing of it runs."""
        return self.phase == JobPhase.DONE

    @property
    def verdict(self) -> Json | None:
        """Return how the job ended; None while that is not known."""
        verdict: Json | None = self.job.get("verdict")
        return verdict

    @property
    def units(self) -> Json | None:
        """Return how many units of work there are in each state; None for a job of its own."""
        units: Json | None = self.job.get("units")
        return units

    @property
    def tasks(self) -> tuple[TaskLine, ...]:
        """Return one line per task, in the order of the roles."""
        return tuple(self._line(name, task) for name, task in self.job["tasks"].items())

    @property
    def storage_problems(self) -> tuple[StorageProblem, ...]:
        """Return what keeps tasks from S3."""
        found = self.why.get("storage") or {}
        return tuple(
            StorageProblem(name, (str(p["part"]), str(p["kind"])), str(p["why"]))
            for name, problems in found.items()
            for p in problems
        )

    @property
    def waits(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Return who waits though the job runs, and the sentence that tells it."""
        found = self.why.get("waits") or ()
        return tuple((tuple(w["tasks"]), f"{w['why']} ({w['ends']})") for w in found)

    def result(self) -> Json:
        """Return what the job called its result: the deciding task's, else the first there is."""
        tasks = self.job["tasks"]
        names = [*self.job.get("deciding_tasks", ()), *tasks]
        for name in names:
            found = ((tasks.get(name) or {}).get("report") or {}).get("result")
            if found:
                return dict(found)
        return {}

    @property
    def _culprit(self) -> str | None:
        """Return the id of the attempt whose failure has ended the job; None where none has."""
        incidents = self.job.get("incidents") or ()
        failed = (self.verdict or {}).get("outcome") == Outcome.FAILED
        return str(incidents[-1]["task_id"]) if failed and incidents else None

    def _members(self) -> dict[str, str]:
        """Return the tasks by the address that their peers know them under."""
        return {
            f"{task['address']}:{task['ports'][0]}": name
            for name, task in self.job["tasks"].items()
            if task.get("address") and task.get("ports")
        }

    def _line(self, name: str, task: Json) -> TaskLine:
        waiting = self.why.get("tasks", {}).get(name, {})
        state = task.get("state")
        if state is None or (self.phase == JobPhase.PLACING and state in TERMINAL_STATES):
            reason = "" if self.verdict is not None else str(waiting.get("why", ""))
            doing = "not started" if self.verdict is not None else "placing"
            return TaskLine(name, doing, reason.removeprefix(f"{name}: "))
        report = task.get("report") or {}
        shows = name.rpartition("-")[0] == TaskRole.TENSORBOARD
        doing, detail = _standing(state, task, report, self._members(), shows=shows)
        is_culprit = doing == _ENDED and task.get("task_id") == self._culprit
        if is_culprit:
            # Its container was ended afterwards: that is not how the task ended.
            code = (self.verdict or {}).get("exit_code")
            doing, detail = str(TaskState.FAILED), f"with exit code {code}"
        progress = report.get("progress") or {}
        return TaskLine(
            name=name,
            doing=doing,
            detail=detail,
            step=progress.get("step"),
            loss=as_number(progress.get("loss")),
            accuracy=as_number(progress.get("accuracy")),
            epoch=progress.get("epoch"),
            epochs=progress.get("epochs"),
            attempt=task.get("attempt", 0),
            failed=is_culprit or state in (TaskState.FAILED, TaskState.LOST) or _has_failed(report),
            metrics={
                name: value
                for name, told in (progress.get("metrics") or {}).items()
                if (value := as_number(told)) is not None
            },
        )


def snapshot_of(state: ServiceState) -> Snapshot:
    """Return the documents that the API would answer now."""
    # Only the scheduler has a state; a client gets documents, and need not know how they are made.
    from dcos_tensorflow.api.redaction import redact, secret_values
    from dcos_tensorflow.api.views import job as job_view

    secrets = secret_values(state)
    return Snapshot(redact(job_view.job(state), secrets), redact(job_view.why(state), secrets))


def _has_failed(report: Json) -> bool:
    """Say whether the task's process has failed by itself, as its runner said last."""
    return report.get("state") == contract.RUNNER_FAILED


def _comes_up(task: Json, now: float) -> bool:
    """Say whether a task has its container, and its process does not run yet."""
    if task.get("state") != TaskState.RUNNING:
        return False
    report = task.get("report")
    if not report:
        # A runner that cannot be asked must not hide that the job runs.
        return now - (task.get("changed_at") or 0.0) < _REPORT_SECONDS
    return report.get("state") in (contract.RUNNER_PREPARING, contract.RUNNER_WAITING)


def _other_port(task: Json) -> str:
    """Return why a task listens on another port than its options name; empty where it does not."""
    asked = task.get("asked_port")
    return f" (its agent does not offer port {asked}, or it is taken)" if asked else ""


def _standing(
    state: str, task: Json, report: Json, members: Mapping[str, str], *, shows: bool
) -> tuple[str, str]:
    """Return what a task does, and where or why; ``shows`` that people look at it in a browser."""
    where = f"on {task['hostname']}" if task.get("hostname") else ""
    if shows and task.get("address") and task.get("ports"):
        where = f"at http://{task['address']}:{task['ports'][0]}{_other_port(task)}"
    if state in COMING_UP:
        return "starting", where
    if state == TaskState.UNREACHABLE:
        return "unreachable", f"its agent {task.get('hostname', '')} does not answer the master"
    if state == TaskState.RUNNING:
        runner = report.get("state", "")
        if runner == "waiting":
            peers = [members.get(peer, peer) for peer in report.get("waiting_for") or ()]
            return "waiting", f"for {', '.join(peers) or 'its peers'}"
        if runner in ("preparing", "stopping"):
            # What it does is said once.
            return str(runner), str(report.get("summary") or where).removeprefix("Stopping: ")
        if task.get("kill_reason"):
            return "stopping", str(task["kill_reason"])
        return ("running", where) if runner else ("starting", where)
    if state == TaskState.FINISHED:
        return "finished", ""
    if _has_failed(report):
        # Its container was ended afterwards: that is not how the task ended.
        return str(TaskState.FAILED), f"with exit code {report.get('exit_code')}"
    if task.get("kill_reason"):
        return _ENDED, str(task["kill_reason"])
    evidence = task.get("evidence") or {}
    return str(state), str(evidence.get("summary") or task.get("message") or task.get("reason"))
