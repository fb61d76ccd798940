"""``logs``: what the tasks of a service print, all of them interleaved line by line."""

from __future__ import annotations

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
from dcos_tensorflow.client.following.line_printer import LinePrinter
from dcos_tensorflow.client.following.logs import Follower
from dcos_tensorflow.client.following.task_output import refuse_nonsense
from dcos_tensorflow.client.service_choice import KnownService, ServiceChoice
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class _Wanted:
    """The tasks whose output is shown, and what of it. No tasks are all tasks."""

    tasks: tuple[str, ...]
    file: str | None
    lines: int
    as_json: bool


@click.command()
@click.argument("tasks", metavar="[SERVICE] [TASK]...", nargs=-1, shell_complete=task_names)
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
    metavar="PATH",
    help="stdout, stderr, or another file of the sandbox; default both streams.",
)
@service_flags
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, one object a line.")
@with_service_choice
def logs(
    choice: ServiceChoice, tasks: tuple[str, ...], follow: bool, lines: int, file: str | None
) -> int:
    """Show the output of single tasks, roles, or the whole job."""
    refuse_nonsense(file)
    service, tasks = choice.service_in(tasks)
    wanted = _Wanted(tasks, file, lines, choice.as_json)
    try:
        found = served_output(service, tasks)
    except SchedulerAway as away:
        if follow and not isinstance(away, NoScheduler):
            return _follow(wanted, service)
        found = left_output(service, tasks, away)
        return _print_last(wanted, found, LinePrinter(found.chosen, as_json=choice.as_json))
    if follow:
        return _follow(wanted, service, found.chosen)
    sink = LinePrinter(found.chosen, as_json=choice.as_json)
    launched = {attempt.task for attempt in found.attempts}
    for task in found.chosen if tasks else ():
        if task not in launched:
            sink.note(f"{task} has not been launched.")
    return _print_last(wanted, found, sink)


def _follow(wanted: _Wanted, service: KnownService, chosen: Sequence[str] = ()) -> int:
    """Print all lines until the job is done. ``chosen`` are the tasks, where they are known."""
    sink = LinePrinter(chosen, as_json=wanted.as_json)
    Follower(FollowedOutput(service, wanted.tasks), sink, wanted.file, wanted.lines).run()
    return 0


def _print_last(wanted: _Wanted, found: JobOutput, sink: LinePrinter) -> int:
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
