"""``logs``: what the tasks of a service print, all of them interleaved line by line."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence

import click

from dcos_tensorflow.cli.flags import service_flags, with_service_choice
from dcos_tensorflow.cli.names import task_names
from dcos_tensorflow.client.api_client import NoScheduler, SchedulerAway
from dcos_tensorflow.client.errors import EXIT_FAILED
from dcos_tensorflow.client.following.job_output import (
    FollowedOutput,
    JobOutput,
    left_output,
    served_output,
)
from dcos_tensorflow.client.following.logs import Follower
from dcos_tensorflow.client.following.task_output import Attempt, refuse_nonsense
from dcos_tensorflow.client.output import complain, say_formatted
from dcos_tensorflow.client.service_choice import KnownService, ServiceChoice
from dcos_tensorflow.plugin.log_lines import LineFormat
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class _Wanted:
    """The tasks whose output is shown, and what of it. No tasks are all tasks."""

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
    help="Number of last lines of each task.",
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
@with_service_choice
def logs(choice: ServiceChoice, tasks: tuple[str, ...], follow: bool, lines: int, file: str) -> int:
    """Show the output of single tasks, roles, or the whole job."""
    refuse_nonsense(file)
    wanted = _Wanted(tasks, file, lines, choice.as_json)
    service = choice.service()
    try:
        found = served_output(service, tasks)
    except SchedulerAway as away:
        if follow and not isinstance(away, NoScheduler):
            return _follow(wanted, service)
        found = left_output(service, tasks, away)
        return _print_last(wanted, found, _Printer(found.chosen, choice.as_json))
    if follow:
        return _follow(wanted, service, found.chosen)
    sink = _Printer(found.chosen, choice.as_json)
    launched = {attempt.task for attempt in found.attempts}
    for task in found.chosen if tasks else ():
        if task not in launched:
            sink.note(f"{task} has not been launched.")
    return _print_last(wanted, found, sink)


def _follow(wanted: _Wanted, service: KnownService, chosen: Sequence[str] = ()) -> int:
    """Print all lines until the job is done. ``chosen`` are the tasks, where they are known."""
    sink = _Printer(chosen, wanted.as_json)
    Follower(FollowedOutput(service, wanted.tasks), sink, wanted.file, wanted.lines).run()
    return 0


def _print_last(wanted: _Wanted, found: JobOutput, sink: _Printer) -> int:
    """Print the last lines, task by task. Return 1 when those of a task could not be read."""
    failed = False
    for attempt, lines in found.last(wanted.file, wanted.lines):
        if isinstance(lines, Exception):
            failed = True
            sink.note(f"{attempt.task}: {lines}")
            continue
        for line in lines:
            sink.line(attempt, line)
    return EXIT_FAILED if failed else 0


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
        """Say whether the reader of our output has gone; a quiet job would never let us know."""
        try:
            watched = select.poll()
            watched.register(sys.stdout.fileno(), 0)
            return any(event & select.POLLERR for _, event in watched.poll(0))
        except (OSError, ValueError):
            return False
