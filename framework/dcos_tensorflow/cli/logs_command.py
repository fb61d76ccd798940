"""``logs``: what the tasks of a service print, all of them interleaved line by line.

A running scheduler is asked for it, which reads the sandboxes through Mesos' files API. Of a local
job that has ended the sandboxes lie in the service's folder, and are read there.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from dcos_tensorflow.cli import ending, registry
from dcos_tensorflow.cli.client import SchedulerAway, connect
from dcos_tensorflow.cli.errors import EXIT_FAILED, CliError
from dcos_tensorflow.cli.log_following import Follower, Standing
from dcos_tensorflow.cli.output import complain, say
from dcos_tensorflow.cli.task_output import (
    ApiOutput,
    Attempt,
    FolderOutput,
    Lines,
    Lost,
    NotThere,
    Output,
    Unreadable,
    last_lines,
    refuse_nonsense,
)
from dcos_tensorflow.cli.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.plugin.log_lines import LineFormat

_READERS = 8


@dataclass(frozen=True)
class LogsRequest:
    """What ``logs`` was asked for. No tasks are all tasks."""

    work: WorkDirectory
    name: str | None
    tasks: tuple[str, ...]
    file: str
    lines: int
    follow: bool
    json: bool


def logs(request: LogsRequest) -> int:
    """Print the last lines of each task; with ``follow`` go on until the job is done."""
    refuse_nonsense(request.file)
    service, directory = registry.choose(request.work, request.name)
    try:
        job = connect(directory, service).get("/v1/job")
    except SchedulerAway as away:
        return _from_folder(request, directory, away)
    chosen = _chosen(list(job["tasks"]), request.tasks)
    sink = _Printer(chosen, request.json)
    if request.follow:
        Follower(
            _FollowedJob(directory, service, request.tasks), sink, request.file, request.lines
        ).run()
        return 0
    attempts = _attempts(job, chosen)
    for task in chosen if request.tasks else ():
        if task not in attempts:
            sink.note(f"{task} has not been launched.")
    return _print_last(request, ApiOutput(directory, service), list(attempts.values()), sink)


def _from_folder(request: LogsRequest, directory: ServiceDirectory, away: SchedulerAway) -> int:
    last = ending.last(directory)
    if last is None:
        # What lies in the folder then is the output of the job before.
        raise away
    output = FolderOutput(directory)
    here = output.tasks()
    if not here:
        where = last.get("places", {}).get("task logs", "")
        raise CliError(f"{away} Its output is {where}." if where else str(away))
    chosen = _chosen(here, request.tasks)
    attempts = [found for task in chosen if (found := output.attempt(task)) is not None]
    return _print_last(request, output, attempts, _Printer(chosen, request.json))


def _print_last(
    request: LogsRequest, output: Output, attempts: Sequence[Attempt], sink: _Printer
) -> int:
    """Print the last lines, task by task. Return 1 when those of a task could not be read."""

    def read(attempt: Attempt) -> list[str] | Exception:
        try:
            part = last_lines(output, attempt, request.file, request.lines)
        except (NotThere, Unreadable, Lost) as error:
            return error
        cut = Lines()
        found = [*cut.whole(part.text), *cut.rest()]
        return found[max(0, len(found) - request.lines) :]

    failed = False
    with ThreadPoolExecutor(_READERS, thread_name_prefix="logs") as pool:
        for attempt, found in zip(attempts, pool.map(read, attempts), strict=True):
            if isinstance(found, Exception):
                failed = True
                sink.note(f"{attempt.task}: {found}")
                continue
            for line in found:
                sink.line(attempt, line)
    return EXIT_FAILED if failed else 0


class _FollowedJob:
    """A service on this machine (``log_following.Job``), wherever its scheduler is by now."""

    def __init__(self, directory: ServiceDirectory, service: str, tasks: tuple[str, ...]) -> None:
        self._directory = directory
        self._service = service
        self._tasks = tasks
        self._gone = False

    def look(self) -> Standing:
        """Return how things stand. Raises CliError when the scheduler answers what it must not."""
        try:
            client = connect(self._directory, self._service)
            answer = client.ask("GET", "/v1/job")
        except SchedulerAway as away:
            self._gone = ending.last(self._directory) is not None
            if self._gone:
                return Standing(done=True)
            return Standing(away=f"{away} Waiting for it to come back.")
        if answer.status == 503:
            return Standing()
        job = answer.expected()
        self._gone = False
        chosen = _meant(list(job["tasks"]), self._tasks)
        return Standing(_attempts(job, chosen), done=job["phase"] == "done")

    def output(self) -> Output:
        """Return where files can be read now."""
        if self._gone:
            return FolderOutput(self._directory)
        return ApiOutput(self._directory, self._service)


class _Printer:
    """Prints lines to standard output, and what is to be said to standard error."""

    def __init__(self, tasks: Sequence[str], as_json: bool) -> None:
        coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._as_json = as_json
        self._format = LineFormat(tasks, as_json=as_json, coloured=coloured)

    def line(self, attempt: Attempt, text: str) -> None:
        """Print a line of a task."""
        more = {"task_id": attempt.task_id} if self._as_json else {}
        say(self._format.line(attempt.task, text, **more))

    def note(self, text: str) -> None:
        """Tell something that no task has printed."""
        complain(text)

    def gone(self) -> bool:
        """Say whether whoever read our output has gone; a quiet job would never let us know."""
        try:
            watched = select.poll()
            watched.register(sys.stdout.fileno(), 0)
            return any(event & select.POLLERR for _, event in watched.poll(0))
        except (OSError, ValueError):
            return False


def _attempts(job: Mapping[str, Any], chosen: Sequence[str]) -> dict[str, Attempt]:
    """Return the newest attempt of each task that has one."""
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
