"""The output of the tasks of a service, wherever it lies by now.

Used by ``logs`` and by jobs that were begun in Python. A running scheduler is asked for it, which
reads the sandboxes through Mesos' files API. Of a local job that has ended the sandboxes lie in the
service's folder, and are read there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dcos_tensorflow.client.api_client import SchedulerAway
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following.logs import FollowedState
from dcos_tensorflow.client.following.task_output import (
    ApiOutput,
    Attempt,
    FolderOutput,
    LineCutter,
    Lost,
    NotThere,
    Output,
    Unreadable,
    last_lines,
    last_printed,
)
from dcos_tensorflow.client.service_choice import KnownService, ServiceChoice
from dcos_tensorflow.client.units import units_document
from dcos_tensorflow.core.contract import UNIT_FILE
from dcos_tensorflow.core.spec.service_spec import gang_named
from dcos_tensorflow.records import dataclass

_READERS = 8


@dataclass(frozen=True)
class JobOutput:
    """Whose output there is, and where it is read."""

    output: Output
    #: The tasks that are meant, in the order of the roles.
    chosen: Sequence[str]
    #: The newest attempt of each of them that has one.
    attempts: Sequence[Attempt]

    def last(self, file: str | None, lines: int) -> Iterator[tuple[Attempt, list[str] | Exception]]:
        """Yield the last lines of each attempt's file, or why they cannot be read.

        Without a file they are those that it has printed to stdout and stderr.
        """

        def read(attempt: Attempt) -> list[str] | Exception:
            try:
                if file is None:
                    part = last_printed(self.output, attempt, lines)
                else:
                    part = last_lines(self.output, attempt, file, lines)
            except (NotThere, Unreadable, Lost) as error:
                return error
            cut = LineCutter()
            found = [*cut.whole(part.text), *cut.rest()]
            return found[max(0, len(found) - lines) :]

        with ThreadPoolExecutor(_READERS, thread_name_prefix="logs") as pool:
            yield from zip(self.attempts, pool.map(read, self.attempts), strict=True)


def served_output(service: KnownService, tasks: Sequence[str]) -> JobOutput:
    """Return the output of a job whose scheduler runs. No tasks are all tasks.

    Raises SchedulerAway, and CliError for a task that is not there.
    """
    job = service.connect().get("/v1/job")
    chosen = _chosen(list(job["tasks"]), tasks)
    attempts = _attempts(job, chosen)
    return JobOutput(ApiOutput(service.connect), chosen, tuple(attempts.values()))


def left_output(service: KnownService, tasks: Sequence[str], away: SchedulerAway) -> JobOutput:
    """Return the output of a job that has ended, whose scheduler is ``away``.

    Raises CliError for a task that is not there, and where nothing lies on this machine.
    """
    last = service.last_end()
    if last is None or service.directory is None:
        # What lies in the folder then is the output of the job before.
        raise away
    output = FolderOutput(service.directory)
    here = output.tasks()
    if not here:
        where = last.get("places", {}).get("task logs", "")
        raise CliError(f"{away} Its output is {where}." if where else str(away))
    chosen = _chosen(here, tasks)
    attempts = [found for task in chosen if (found := output.attempt(task)) is not None]
    return JobOutput(output, chosen, tuple(attempts))


def unit_output(choice: ServiceChoice, word: str) -> tuple[JobOutput, str]:
    """Return where the output of a unit of work is, and in which file: ``trial-7``, ``shard-7``.

    It is that of the attempt that counts. Raises CliError.
    """
    kind, _, number = word.partition("-")
    units = units_document(choice, kind)["units"]
    unit = next((one for one in units if one["number"] == int(number)), None)
    if unit is None or not unit.get("task"):
        why = f"there are {len(units)}" if unit is None else "it has not run"
        raise CliError(f"There is no output of {word}: {why}.")
    slot, service = gang_named(unit["task"]), choice.service()
    try:
        found = served_output(service, ())
    except SchedulerAway as away:
        found = left_output(service, (), away)
    mine = tuple(attempt for attempt in found.attempts if gang_named(attempt.task) == slot)
    if not mine:
        raise CliError(f"The output of {word} is gone: {slot}, which ran it, is no more.")
    tasks = tuple(attempt.task for attempt in mine)
    return JobOutput(found.output, tasks, mine), UNIT_FILE.format(unit["number"])


class FollowedOutput:
    """A service's job (``following.logs.FollowedLogs``), wherever its scheduler is by now."""

    def __init__(self, service: KnownService, tasks: Sequence[str]) -> None:
        self._service = service
        self._tasks = tasks
        self._gone = False

    def look(self) -> FollowedState:
        """Return how things stand.

        Raises CliError when the scheduler answers what it must not, or its cluster has ended.
        """
        try:
            answer = self._service.connect().ask("GET", "/v1/job")
        except SchedulerAway as away:
            self._gone = self._service.last_end() is not None
            if self._gone:
                return FollowedState(self._left(), done=True)
            self._service.check_cluster()
            return FollowedState(away=f"{away} Waiting for it to come back.")
        if answer.status == 503:
            return FollowedState()
        job = answer.expected()
        self._gone = False
        chosen = _meant(list(job["tasks"]), self._tasks)
        return FollowedState(_attempts(job, chosen), done=job["phase"] == "done")

    def _left(self) -> dict[str, Attempt]:
        """Return the attempts that lie here: a job may begin and end between two looks."""
        if self._service.directory is None:
            return {}
        folder = FolderOutput(self._service.directory)
        found = {task: folder.attempt(task) for task in _meant(folder.tasks(), self._tasks)}
        return {task: attempt for task, attempt in found.items() if attempt is not None}

    def output(self) -> Output:
        """Return where files can be read now."""
        if self._gone and self._service.directory is not None:
            return FolderOutput(self._service.directory)
        return ApiOutput(self._service.connect)


def _attempts(job: Mapping[str, Any], chosen: Sequence[str]) -> dict[str, Attempt]:
    return {
        name: Attempt(name, task["task_id"], task["agent_id"])
        for name, task in job["tasks"].items()
        if name in chosen and task.get("task_id") and task.get("agent_id")
    }


def _meant(known: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Return the tasks that are meant: by name, or all of a role."""
    return [n for n in known if not asked or n in asked or n.rpartition("-")[0] in asked]


def _chosen(known: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Return the tasks that are meant. Raises CliError for a name that none has."""
    unknown = [name for name in asked if not _meant(known, [name])]
    if unknown:
        there = ", ".join(known) or "none"
        raise CliError(f"There is no task {', '.join(unknown)}; there are {there}.")
    return _meant(known, asked)
