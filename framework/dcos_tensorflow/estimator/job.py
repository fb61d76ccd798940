"""``Job``: a job that was begun, asked and steered from Python.

It answers as ``status``, ``logs`` and ``stop`` do, by the same functions; it knows no more of the
job than the service's name. ``unit_jobs`` has the jobs that work on many units.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from dcos_tensorflow.client import ending
from dcos_tensorflow.client.api_client import SchedulerAway, connect
from dcos_tensorflow.client.errors import EXIT_FAILED, CliError
from dcos_tensorflow.client.following.job import follow_service
from dcos_tensorflow.client.following.job_output import JobOutput, left_output, served_output
from dcos_tensorflow.client.following.task_output import (
    Attempt,
    Lost,
    NotThere,
    Output,
    Unreadable,
    refuse_nonsense,
    whole_file,
)
from dcos_tensorflow.client.kept.stored import state_url, stored_state
from dcos_tensorflow.client.output import say, say_formatted
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place
from dcos_tensorflow.core.contract import NOT_FINITE
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.deploy.stopping import stop_job
from dcos_tensorflow.estimator import metric_rows
from dcos_tensorflow.estimator.display import ShownJob, shown
from dcos_tensorflow.estimator.notebook import Drawing
from dcos_tensorflow.estimator.notebook_curves import NotebookCurves
from dcos_tensorflow.plugin.log_lines import LineFormat

_STOP_SECONDS = 120.0
_WHY_STOPPED = "stopped from Python"

_Told = TypeVar("_Told")
_Kind = TypeVar("_Kind", bound="Job")


class JobFailed(CliError):
    """A job that was waited for has not succeeded. The text is what the command line tells."""

    def __init__(self, job: Job, ended: Mapping[str, Any]) -> None:
        super().__init__("\n".join(ending.lines(ended)), int(ended.get("exit_code", EXIT_FAILED)))
        #: The job, to look further into.
        self.job = job
        #: ``failed`` or ``stopped``.
        self.outcome = str(ended.get("outcome"))
        #: Why, in one sentence.
        self.verdict = str(ended.get("summary", ""))
        #: What the task that failed has said last.
        self.last_lines = tuple((ended.get("failure") or {}).get("last_lines") or ())


class Job:
    """The newest job of a service of this machine. ``TensorFlow.fit`` and ``attach`` make it."""

    def __init__(self, name: str, work: WorkDirectory) -> None:
        self.name = name
        self._work = work
        self._directory: ServiceDirectory = work.service(name)
        self._service = KnownService(name, self._directory, partial(connect, self._directory, name))

    def __repr__(self) -> str:
        try:
            told = self.status
        except CliError as unknown:
            told = str(unknown)
        return f"<{type(self).__name__.lower()} {self.name}: {told}>"

    @property
    def status(self) -> str:
        """Return where the job stands: its phase, and once it has ended its outcome.

        Phases are placing, starting, running and others, outcomes succeeded, failed and stopped.
        Raises CliError where no scheduler serves it and it has not ended.
        """
        return self._told(_standing, lambda ended: str(ended["outcome"]))

    @property
    def result(self) -> Mapping[str, Any]:
        """Return what the job called its result; empty where it has said none yet.

        A number that is not finite, which JSON holds by its name, is a float.
        """
        told = self._told(Snapshot.result, lambda ended: dict(ended["result"]))
        return {k: float(v) if v in NOT_FINITE else v for k, v in told.items()}

    @property
    def output_dir(self) -> str:
        """Return where lies what the run leaves in OUTPUT_DIR, a path or a URL; empty for nothing.

        While the job runs it is the directory of all its tasks.
        """

        def left(ended: Mapping[str, Any]) -> str:
            return str(ended["places"].get("output", ""))

        def now(snapshot: Snapshot) -> str:
            # Its scheduler may still answer when what the job left is known already.
            ended = self._service.last_end() if snapshot.done else None
            return left(ended) if ended else str(snapshot.job.get("output") or "")

        return self._told(now, left)

    @property
    def checkpoint_dir(self) -> str:
        """Return where the checkpoints lie, a path or a URL; empty for the tasks' sandboxes."""
        spec = kept_spec(self._directory, self.name)
        return checkpoints_place(spec) if spec is not None else ""

    @property
    def model_dir(self) -> str:
        """Return where the model lies: in the run's output where it left any, else checkpoints."""
        return self.output_dir or self.checkpoint_dir

    def metrics(self, task: str | None = None) -> Any:
        """Return what the tasks have told of their training, as a frame of pandas.

        Where pandas is not installed it is the list of the frame's rows. Each has the task's name,
        the step, and what was told beside it. ``task`` is one task, or all of a role. Of a task
        that was moved to another machine it is what it has told there.
        """
        found = self._output(task)
        rows: list[metric_rows.MetricRow] = []
        for attempt in found.attempts:
            records, printed = (
                _lines(found.output, attempt, file) for file in ("progress.jsonl", "stdout")
            )
            rows += metric_rows.rows_of(attempt.task, printed, records)
        return metric_rows.frame(rows)

    def logs(self, task: str | None = None, *, lines: int = 10, file: str | None = None) -> None:
        """Print the last lines of each task; ``task`` is one task, or all of a role.

        They are those of stdout and stderr together, or of a ``file`` of the sandbox.
        Raises CliError for a task that is not there.
        """
        refuse_nonsense(file)
        found = self._output(task)
        form = LineFormat(found.chosen)
        for attempt, told in found.last(file, lines):
            if isinstance(told, Exception):
                say(f"{attempt.task}: {told}")
                continue
            for line in told:
                say_formatted(form.line(attempt.task, line))

    def wait(self: _Kind, timeout: float | None = None, *, logs: bool = False) -> _Kind:
        """Follow the job to its end and return it. ``logs`` shows what the tasks print, too.

        Raises JobFailed when it does not succeed, TimeoutError when it has not ended within
        ``timeout`` seconds. Neither that nor Ctrl-C ends the job.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with shown(self._service, self._drawing(), logs=logs) as view:
            try:
                ended = follow_service(
                    self._service,
                    view,
                    left=lambda: self._is_late(deadline),
                    tell=view.tell,
                    pause=view.pause,
                )
            except KeyboardInterrupt:
                view.tell(self._goes_on())
                raise
            if ended is None:
                raise TimeoutError(f"{self.name} has not ended within {timeout:g} s. It goes on.")
            self._judge(ended, view)
        return self

    def stop(self, timeout: float = _STOP_SECONDS) -> None:
        """End the job, and wait until it has ended. Nothing is done for one that has.

        Raises CliError when it has not within ``timeout`` seconds.
        """
        if self._service.last_end() is None:
            stop_job(self._work, self._service, _WHY_STOPPED, wait=True, seconds=timeout, tell=say)

    def _is_late(self, deadline: float | None) -> bool:
        """Say whether the job has not ended, and should have."""
        late = deadline is not None and time.monotonic() > deadline
        return late and self._service.last_end() is None

    def _judge(self, ended: Mapping[str, Any], view: ShownJob) -> None:
        view.finish(ended)
        if ended["outcome"] != Outcome.SUCCEEDED:
            raise JobFailed(self, ended)
        for line in ending.lines(ended):
            view.tell(line)

    def _goes_on(self) -> str:
        return (
            f"{self.name} goes on. To follow it again: TensorFlow.attach({self.name!r}).wait();"
            f" to end it: TensorFlow.attach({self.name!r}).stop(), or dcos-tensorflow stop"
            f" {self.name}."
        )

    def _drawing(self) -> Drawing:
        """Return what a notebook draws below the tasks while the job is followed."""
        return NotebookCurves(self._directory.history)

    def _told(
        self, now: Callable[[Snapshot], _Told], ended: Callable[[Mapping[str, Any]], _Told]
    ) -> _Told:
        """Return what the job's scheduler tells ``now``, or what was kept when it had ``ended``.

        Raises CliError where no scheduler serves it and it has not ended.
        """
        try:
            return now(self._service.snapshot())
        except SchedulerAway:
            last = self._service.last_end()
            if last is None:
                raise
            return ended(last)

    def _output(self, task: str | None) -> JobOutput:
        tasks = () if task is None else (task,)
        try:
            return served_output(self._service, tasks)
        except SchedulerAway as away:
            return left_output(self._service, tasks, away)


def kept_spec(directory: ServiceDirectory, name: str) -> ServiceSpec | None:
    """Return what the newest job of a service is, of its state; None where there is none."""
    state = stored_state(state_url(directory), name)
    return state.spec if state is not None else None


def _standing(snapshot: Snapshot) -> str:
    if snapshot.done:
        return str((snapshot.verdict or {}).get("outcome"))
    return snapshot.standing(time.time())[0]


def _lines(output: Output, attempt: Attempt, file: str) -> Iterator[str]:
    """Yield the whole lines of a file; none where there is no such file. Raises CliError."""
    try:
        yield from whole_file(output, attempt, file)
    except NotThere:
        return
    except (Unreadable, Lost) as error:
        raise CliError(f"{attempt.task}: {error}") from error
