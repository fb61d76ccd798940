"""``status``: where a job stands, or how the last one ended."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from dcos_tensorflow.cli.errors import EXIT_FAILED, CliError
from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.cli.output import say, say_lines, show_json
from dcos_tensorflow.cli.services import ending
from dcos_tensorflow.cli.services.asked import Asked
from dcos_tensorflow.cli.services.client import SchedulerAway, SchedulerClient
from dcos_tensorflow.cli.services.registry import Registration
from dcos_tensorflow.cli.wording import numbers, table
from dcos_tensorflow.cli.work_directory import ServiceDirectory

if TYPE_CHECKING:
    from dcos_tensorflow.cli.services.snapshot import Snapshot

_LOOK_SECONDS = 0.5


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Show progress until the job ends.")
@asks_about()
def status(asked: Asked, follow: bool) -> int:
    """Show where a job stands, or how it ended."""
    service, directory = asked.service()
    try:
        client = asked.client()
        snapshot = client.snapshot()
    except SchedulerAway as away:
        code = _last_end(asked, directory, service, away)
        return code if follow else 0
    if follow:
        return _follow(asked, client, directory, service)
    if asked.as_json:
        show_json(dict(snapshot.job))
    else:
        say_lines(_lines(snapshot, client.registration))
    return 0


def _follow(
    asked: Asked, client: SchedulerClient, directory: ServiceDirectory, service: str
) -> int:
    from dcos_tensorflow.cli.following.job import caught_signals, view_for

    view = view_for(sys.stderr if asked.as_json else sys.stdout)
    with caught_signals() as signals:
        try:
            while not signals.interrupts and not signals.ending:
                snapshot = client.snapshot_if_there()
                if snapshot is None:
                    break
                view.show(snapshot, time.time())
                if snapshot.done and ending.last(directory) is not None:
                    break
                time.sleep(_LOOK_SECONDS)
        finally:
            view.close()
    if signals.interrupts or signals.ending:
        say(f"{service} goes on.", sys.stderr)
        return 128 + (signals.ending or 2)
    away = SchedulerAway(f"The scheduler of {service} has ended.")
    return _last_end(asked, directory, service, away)


def _last_end(asked: Asked, directory: ServiceDirectory, service: str, away: SchedulerAway) -> int:
    """Show how the last job ended and return its exit code. Raises CliError."""
    last = ending.last(directory)
    if last is None:
        raise CliError(f"{away} {_stored(directory, service)}")
    if asked.as_json:
        show_json(last)
    else:
        say_lines(ending.lines(last))
    return int(last.get("exit_code", EXIT_FAILED))


def _stored(directory: ServiceDirectory, service: str) -> str:
    """Say what the state in the service's own folder tells."""
    from dcos_tensorflow.cli.services.stored import stored_state

    if not directory.database.exists():
        return "Nothing is known of an ended job of it either."
    state = stored_state(directory.state_url, service)
    if state is None:
        return "Its state is empty."
    return f"By its state the job is {state.job.phase}; run takes it up again, and stop ends it."


def _lines(snapshot: Snapshot, registration: Registration) -> list[str]:
    rows = []
    for task in snapshot.tasks:
        parts = [task.doing, task.detail, numbers(task)]
        rows.append((task.name, ", ".join(part for part in parts if part)))
    return [
        f"{snapshot.service} is {snapshot.phase}: {snapshot.job['why']}",
        *table(rows),
        *table([(problem.task, problem.text) for problem in snapshot.storage_problems]),
        f"  scheduler pid {registration.pid}, API http://{registration.api}",
    ]
