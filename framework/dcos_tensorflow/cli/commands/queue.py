"""``submit``, ``queue``, ``cancel``, ``hold``, ``release``: jobs in the queue of teams."""

from __future__ import annotations

import functools
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dcos_tensorflow.cli.flags import (
    OPTIONS_FILE,
    GroupWithDefault,
    ScriptCommand,
    gpus_flag,
    json_flag,
    overrides_flag,
    script_flags,
    work_dir_flag,
)
from dcos_tensorflow.client.api_address import named
from dcos_tensorflow.client.errors import EXIT_FAILED, EXIT_INTERRUPTED, CliError
from dcos_tensorflow.client.output import complain, say, say_lines, show_json
from dcos_tensorflow.client.wording import columns, duration, megabytes
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.deploy.settings import (
    RUN_SETTINGS,
    UNINSTALL_VARIABLE,
    collect,
    collect_for_run,
    setting_flags,
)

if TYPE_CHECKING:
    from dcos_tensorflow.deploy.job.script_job import ScriptFlags
    from dcos_tensorflow.queue_service.client import QueueClient

F = TypeVar("F", bound=Callable[..., Any])

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw]?)")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


def _seconds(_context: click.Context, parameter: click.Parameter, given: str | None) -> Any:
    """Return a span in seconds: 90, 30m, 4h, 2d."""
    if given is None:
        return None
    found = _SPAN.fullmatch(given.strip())
    if found is None or float(found[1]) <= 0:
        raise click.BadParameter(
            f"{given!r} is no time: allowed are 90, 30m, 4h, 2d", param=parameter
        )
    return float(found[1]) * _UNITS[found[2]]


def _moment(_context: click.Context, parameter: click.Parameter, given: str | None) -> Any:
    """Return a moment in unix seconds: 2026-12-01T08:00, or +6h from now."""
    if given is None:
        return None
    if given.startswith("+"):
        return time.time() + _seconds(_context, parameter, given[1:])
    try:
        return datetime.fromisoformat(given).timestamp()
    except ValueError:
        raise click.BadParameter(
            f"{given!r} is no moment: allowed are 2026-12-01T08:00 and +6h", param=parameter
        ) from None


def queue_flags(function: F) -> F:
    """Add what says which queue is meant, handed over as ``queue``: a QueueClient."""

    @functools.wraps(function)
    def call(
        *, work: WorkDirectory, queue: str | None, queue_token_file: str | None, **given: Any
    ) -> Any:
        from dcos_tensorflow.queue_service.client import queue_of

        address = named(queue, queue_token_file, in_clear=False) if queue else None
        return function(queue=queue_of(work, address), **given)

    token = click.option(
        "--queue-token-file",
        metavar="FILE",
        envvar="DCOS_TENSORFLOW_QUEUE_TOKEN_FILE",
        help="File with your team's token.",
    )
    where = click.option(
        "--queue",
        metavar="URL",
        envvar="DCOS_TENSORFLOW_QUEUE",
        help="The queue with this address; default this machine's.",
    )
    return where(token(work_dir_flag(call)))  # type: ignore[return-value]


@click.command(
    cls=ScriptCommand,
    option_groups={
        "A script": ("workers", "ps", "gpus", "strategy", "tensorflow", "name"),
        "A search for its parameters": ("parameters", "trials", "metric"),
        "In the line": ("team", "priority", "time_limit", "deadline", "after", "hold", "wait"),
        "The queue": ("queue", "queue_token_file", "work"),
    },
)
@click.argument("job", metavar="SCRIPT.py|OPTIONS.json", type=click.Path(path_type=Path))
@click.option("--team", metavar="TEAM", help="The team that it is for.")
@click.option("--priority", type=int, default=0, help="Higher goes first within the team.")
@click.option(
    "--time-limit", metavar="TIME", callback=_seconds, help="End it when it has run so long: 4h."
)
@click.option(
    "--deadline",
    metavar="WHEN",
    callback=_moment,
    help="When the result is needed: 2026-12-01T08:00, +6h.",
)
@click.option("--after", metavar="JOB", help="Run it when that job has succeeded.")
@click.option("--hold", is_flag=True, help="Let it wait until it is released.")
@click.option("--wait", is_flag=True, help="Follow it to its end, exit with its exit code.")
@script_flags
@gpus_flag
@overrides_flag
@queue_flags
@json_flag
def submit(
    job: Path,
    *,
    queue: QueueClient,
    team: str | None,
    priority: int,
    time_limit: float | None,
    deadline: float | None,
    after: str | None,
    hold: bool,
    wait: bool,
    said: ScriptFlags,
    gpus: int | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> int:
    """Put a job into the queue; it runs when its team's turn comes.

    SCRIPT.py and OPTIONS.json are as in run; its code is kept by the queue, so later changes of the
    files change nothing.
    """
    from dcos_tensorflow.deploy.job.script_job import given_options
    from dcos_tensorflow.queue_service.client import Wishes

    wishes = Wishes(team or "", priority, time_limit, deadline, after, hold)
    submitted = queue.submit(given_options(job, replace(said, gpus=gpus), overrides), wishes)
    if wait:
        return _waited(queue, submitted, as_json)
    found = queue.job(submitted)
    if as_json:
        show_json(found)
    else:
        say(f"{submitted} is in the queue: {found['why']}.")
        say(f"  see the line  dcos-tensorflow queue{_times(found)}")
    return 0


def _waited(queue: QueueClient, job: str, as_json: bool) -> int:
    """Follow a job through the line and through its runs; return its exit code."""
    from dcos_tensorflow.client import ending, registry
    from dcos_tensorflow.client.api_client import connect
    from dcos_tensorflow.client.following.job import follow_service, view_for
    from dcos_tensorflow.client.service_choice import KnownService
    from dcos_tensorflow.queue_service.client import QueueAway

    stream = sys.stderr if as_json else sys.stdout
    ended_last: dict[str, Any] = {}

    def is_over() -> bool:
        try:
            return not queue.job(job)["runs"]
        except QueueAway:
            return False

    def watch() -> None:
        # On another machine only the queue knows of it.
        directory = queue.work.service(job)
        if registry.read(directory) is not None:
            service = KnownService(job, directory, functools.partial(connect, directory, job))
            ended = follow_service(service, view_for(stream), left=is_over, tell=complain)
            # The queue may have heard of its end before it was seen here.
            ended_last.update(ended or ending.last(directory) or {})

    try:
        ended = queue.follow(job, lambda line: say(line, stream), watch)
    except KeyboardInterrupt:
        say(f"{job} stays in the queue; dcos-tensorflow cancel {job} takes it out.", sys.stderr)
        return EXIT_INTERRUPTED
    if as_json:
        show_json(ended)
    elif ended_last:
        say_lines(ending.lines(ended_last))
    if ended["state"] == "succeeded":
        return 0
    return int(ended_last.get("exit_code") or EXIT_FAILED)


@click.group(cls=GroupWithDefault, default="list")
def queue() -> None:
    """Show the line of the queue; serve one, see its teams."""


@queue.command(name="list")
@click.option("--all", "with_ended", is_flag=True, help="Show jobs that have ended, too.")
@queue_flags
@json_flag
def list_jobs(*, queue: QueueClient, with_ended: bool, as_json: bool) -> int:
    """Show the jobs that run and that wait, in the order of the line."""
    jobs = [job for job in queue.jobs() if with_ended or job["ended_at"] is None]
    if as_json:
        show_json(jobs)
    elif not jobs:
        say("The queue is empty.")
    else:
        header = ("", "JOB", "TEAM", "STATE", "WANTS", "RAN", "STARTS", "WHY")
        say_lines(columns([header, *map(_row, jobs)]))
    return 0


@queue.command()
@queue_flags
@json_flag
def teams(*, queue: QueueClient, as_json: bool) -> int:
    """Show the guarantee, the due share and the present share of each team."""
    found = queue.teams()
    if as_json:
        show_json(found)
        return 0
    header = ("TEAM", "GUARANTEE", "DUE", "HAS", "BORROWS", "HAD", "LIMIT", "RUN", "WAIT")
    say_lines(columns([header, *map(_team_row, found)]))
    return 0


@queue.command()
@click.argument("teams_file", metavar="TEAMS.json", type=OPTIONS_FILE, required=False)
@click.option("--local", is_flag=True, help="Use the embedded cluster of local up, the default.")
@setting_flags([*RUN_SETTINGS, "api_open"], shown=("master", "state", "api_host", "api_port"))
@click.option("--uninstall", is_flag=True, help="End all jobs and forget them, and end then.")
@work_dir_flag
def serve(
    teams_file: Path | None, *, local: bool, uninstall: bool, work: WorkDirectory, **flags: Any
) -> int:
    """Serve the queue of the teams in TEAMS.json, until a signal comes.

    Jobs run on when it ends. A change of TEAMS.json holds at once. Without it the teams are those
    of the DC/OS package, in the environment of its app.
    """
    from dcos_tensorflow.queue_service.process import Uninstall
    from dcos_tensorflow.queue_service.process import serve as serve_queue
    from dcos_tensorflow.queue_service.teams_file import teams_file_of
    from untrusted_input.shield import keep_memory_private

    keep_memory_private()
    if teams_file is not None:
        settings = collect_for_run(os.environ, flags, local=local)
        wish = Uninstall.AND_END if uninstall else Uninstall.NOT
    else:
        teams_file = teams_file_of(os.environ, work)
        settings = collect(None, os.environ, flags)
        wish = Uninstall.AND_STAY if UNINSTALL_VARIABLE in os.environ else Uninstall.NOT
    return serve_queue(teams_file, settings, work, local=not settings["master"], uninstall=wish)


@queue.command(hidden=True)
def attend() -> int:
    """Serve one job of a queue, in a task of its scheduler."""
    from dcos_tensorflow.queue_service.attending import attend as attend_job
    from untrusted_input.shield import keep_memory_private

    keep_memory_private()
    return attend_job(os.environ)


def _verb(name: str, does: str, done: str) -> click.Command:
    @click.command(name=name, help=does)
    @click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
    @queue_flags
    @json_flag
    def verb(jobs: tuple[str, ...], *, queue: QueueClient, as_json: bool) -> int:
        code, told = 0, []
        for job in jobs:
            try:
                queue.order(job, name)
            except CliError as error:
                complain(f"Error: {job}: {error}")
                code = error.exit_code
            else:
                told.append({"job": job, "state": done})
        if as_json:
            show_json(told)
        else:
            say_lines(f"{one['job']} is {one['state']}." for one in told)
        return code

    return verb


cancel = _verb("cancel", "Take jobs out of the queue; end those that run.", "cancelled")
hold = _verb("hold", "Let waiting jobs wait until they are released.", "held")
release = _verb("release", "Let held jobs wait for their turn.", "released")


def _row(job: Mapping[str, Any]) -> tuple[str, ...]:
    place = str(job["place"] or "")
    ran = duration(job["ran_seconds"]) if job["ran_seconds"] else ""
    slots = f", {counted(job['slots'], 'slot')}" if job["slots"] else ""
    wants = f"{_wants(job['wants'])}{slots}"
    return place, job["job"], job["team"], job["state"], wants, ran, _starts(job), job["why"]


def _wants(wants: Mapping[str, float]) -> str:
    gpus = f", {counted(wants['gpus'], 'GPU')}" if wants["gpus"] else ""
    return f"{counted(wants['cpus'], 'CPU')}, {megabytes(wants['mem'])}{gpus}"


def _starts(job: Mapping[str, Any]) -> str:
    found = job["starts_in"]
    if found is None:
        return ""
    return f"in {duration(found['likely'])} ({duration(found['low'])} to {duration(found['high'])})"


def _times(job: Mapping[str, Any]) -> str:
    starts = _starts(job)
    return f"; it is likely to start {starts}" if starts else ""


def _team_row(team: Mapping[str, Any]) -> tuple[str, ...]:
    name = f"{team['team']}{' (frozen)' if team['frozen'] else ''}"
    parts = ("guarantee", "due", "share", "borrowed", "usage", "limit")
    shares = (f"{100 * team[part]:.0f} %" for part in parts)
    return name, *shares, str(team["running"]), str(team["waiting"])
