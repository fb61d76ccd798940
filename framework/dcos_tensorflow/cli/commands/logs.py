"""``logs``: the output of a service's tasks, interleaved line by line; or of a unit of work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import click

from dcos_tensorflow.cli.flags import service_flags, with_service_choice
from dcos_tensorflow.cli.names import task_names
from dcos_tensorflow.client.api_client import NoScheduler, SchedulerAway
from dcos_tensorflow.client.errors import EXIT_FAILED, UsageError
from dcos_tensorflow.client.following.job_output import (
    FollowedOutput,
    JobOutput,
    left_output,
    served_output,
    unit_output,
)
from dcos_tensorflow.client.following.line_printer import LinePrinter
from dcos_tensorflow.client.following.logs import Follower
from dcos_tensorflow.client.following.task_output import NotThere, refuse_nonsense
from dcos_tensorflow.client.service_choice import KnownService, ServiceChoice
from dcos_tensorflow.records import dataclass

#: How a unit of work is named.
_UNIT = re.compile(r"(?:trial|shard)-[0-9]{1,9}")


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
    """Show the output of single tasks, roles, or the whole job.

    TASK may be a trial or a shard: trial-7 stands for the output of the tasks that worked on it.
    """
    refuse_nonsense(file)
    service, tasks = choice.service_in(tasks)
    if any(map(_UNIT.fullmatch, tasks)):
        named = replace(choice, name=service.name)
        return _print_units(_Wanted(tasks, file, lines, choice.as_json), named, follow=follow)
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


def _print_units(wanted: _Wanted, choice: ServiceChoice, *, follow: bool) -> int:
    """Print the last lines of units of work. Return 1 when those of one could not be read."""
    if follow or wanted.file or not all(map(_UNIT.fullmatch, wanted.tasks)):
        raise UsageError(
            "The output of trials and shards stands alone: name no tasks beside them, and neither"
            " --follow nor --file. To follow one, name the task that works on it."
        )
    code = 0
    for word in wanted.tasks:
        found, file = unit_output(choice, word)
        sink = LinePrinter(found.chosen, as_json=wanted.as_json)
        code = max(code, _print_last(replace(wanted, file=file), found, sink, _gone(word)))
    return code


def _gone(word: str) -> str:
    return f"the output of {word} is gone: newer ones took its place, or its container was replaced"


def _follow(wanted: _Wanted, service: KnownService, chosen: Sequence[str] = ()) -> int:
    """Print all lines until the job is done. ``chosen`` are the tasks, where they are known."""
    sink = LinePrinter(chosen, as_json=wanted.as_json)
    Follower(FollowedOutput(service, wanted.tasks), sink, wanted.file, wanted.lines).run()
    return 0


def _print_last(wanted: _Wanted, found: JobOutput, sink: LinePrinter, if_missing: str = "") -> int:
    """Print the last lines, task by task. Return 1 when those of a task could not be read.

    ``if_missing`` is told of a file that is not there.
    """
    failed = False
    for attempt, lines in found.last(wanted.file, wanted.lines):
        if isinstance(lines, Exception):
            failed = True
            is_missing = isinstance(lines, NotThere) and if_missing
            sink.note(f"{attempt.task}: {if_missing if is_missing else lines}")
            continue
        for line in lines:
            sink.line(attempt, line)
    return EXIT_FAILED if failed else 0
