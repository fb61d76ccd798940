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

import click

from dcos_tensorflow.cli.errors import EXIT_FAILED, CliError
from dcos_tensorflow.cli.flags import service_flags, with_asked
from dcos_tensorflow.cli.following.logs import Follower, Standing
from dcos_tensorflow.cli.following.task_output import (
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
from dcos_tensorflow.cli.names import task_names
from dcos_tensorflow.cli.output import complain, say_formatted
from dcos_tensorflow.cli.services.asked import Asked, Service
from dcos_tensorflow.cli.services.client import NoScheduler, SchedulerAway
from dcos_tensorflow.plugin.log_lines import LineFormat

_READERS = 8


@dataclass(frozen=True)
class _Wanted:
    """What is to be shown of whose output. No tasks are all tasks."""

    tasks: tuple[str, ...]
    file: str
    lines: int
    as_json: bool


@click.command()
@click.argument("tasks", metavar="[TASK]...", nargs=-1, shell_complete=task_names)
@click.option("--follow", "-f", is_flag=True, help="Go on until the job is done.")
@click.option(
    "--lines",
    type=click.IntRange(0, 10000),
    default=10,
    show_default=True,
    metavar="N",
    help="Last lines of each task to begin with.",
)
@click.option(
    "--file",
    default="stdout",
    show_default=True,
    metavar="PATH",
    help="stdout, stderr, or another file of the sandbox.",
)
@service_flags
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, one object a line.")
@with_asked
def logs(asked: Asked, tasks: tuple[str, ...], follow: bool, lines: int, file: str) -> int:
    """Show what tasks print: the named ones, those of a role, or all of them interleaved."""
    refuse_nonsense(file)
    wanted = _Wanted(tasks, file, lines, asked.as_json)
    service = asked.service()
    try:
        job = service.connect().get("/v1/job")
    except SchedulerAway as away:
        if follow and not isinstance(away, NoScheduler):
            return _follow(wanted, service)
        return _from_folder(wanted, service, away)
    chosen = _chosen(list(job["tasks"]), tasks)
    if follow:
        return _follow(wanted, service, chosen)
    sink = _Printer(chosen, asked.as_json)
    attempts = _attempts(job, chosen)
    for task in chosen if tasks else ():
        if task not in attempts:
            sink.note(f"{task} has not been launched.")
    return _print_last(wanted, ApiOutput(service.connect), list(attempts.values()), sink)


def _follow(wanted: _Wanted, service: Service, chosen: Sequence[str] = ()) -> int:
    """Print all lines until the job is done. ``chosen`` are the tasks, where they are known."""
    sink = _Printer(chosen, wanted.as_json)
    Follower(_FollowedJob(service, wanted.tasks), sink, wanted.file, wanted.lines).run()
    return 0


def _from_folder(wanted: _Wanted, service: Service, away: SchedulerAway) -> int:
    last = service.last_end()
    if last is None or service.directory is None:
        # What lies in the folder then is the output of the job before.
        raise away
    output = FolderOutput(service.directory)
    here = output.tasks()
    if not here:
        where = last.get("places", {}).get("task logs", "")
        raise CliError(f"{away} Its output is {where}." if where else str(away))
    chosen = _chosen(here, wanted.tasks)
    attempts = [found for task in chosen if (found := output.attempt(task)) is not None]
    return _print_last(wanted, output, attempts, _Printer(chosen, wanted.as_json))


def _print_last(
    wanted: _Wanted, output: Output, attempts: Sequence[Attempt], sink: _Printer
) -> int:
    """Print the last lines, task by task. Return 1 when those of a task could not be read."""

    def read(attempt: Attempt) -> list[str] | Exception:
        try:
            part = last_lines(output, attempt, wanted.file, wanted.lines)
        except (NotThere, Unreadable, Lost) as error:
            return error
        cut = Lines()
        found = [*cut.whole(part.text), *cut.rest()]
        return found[max(0, len(found) - wanted.lines) :]

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
    """A service's job (``following.logs.Job``), wherever its scheduler is by now."""

    def __init__(self, service: Service, tasks: tuple[str, ...]) -> None:
        self._service = service
        self._tasks = tasks
        self._gone = False

    def look(self) -> Standing:
        """Return how things stand. Raises CliError when the scheduler answers what it must not."""
        try:
            answer = self._service.connect().ask("GET", "/v1/job")
        except SchedulerAway as away:
            self._gone = self._service.last_end() is not None
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
        if self._gone and self._service.directory is not None:
            return FolderOutput(self._service.directory)
        return ApiOutput(self._service.connect)


class _Printer:
    """Prints lines to standard output, and what is to be said to standard error."""

    def __init__(self, tasks: Sequence[str], as_json: bool) -> None:
        coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._as_json = as_json
        self._format = LineFormat(tasks, as_json=as_json, coloured=coloured)

    def line(self, attempt: Attempt, text: str) -> None:
        """Print a line of a task."""
        more = {"task_id": attempt.task_id} if self._as_json else {}
        say_formatted(self._format.line(attempt.task, text, **more))

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
