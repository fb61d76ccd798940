"""The commands that look at one service, and ``stop``: their arguments and flags."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.completion import endpoint_names, service_names, task_names
from dcos_tensorflow.cli.flags import json_flag, name_flag, work_dir_flag
from dcos_tensorflow.cli.work_directory import work_directory


@click.command()
@click.argument("service", required=False, shell_complete=service_names)
@click.option("--follow", "-f", is_flag=True, help="Show progress until the job ends.")
@work_dir_flag
@json_flag
def status(service: str | None, follow: bool, work_dir: Path | None, as_json: bool) -> int:
    """Show where a job stands, or how it ended."""
    from dcos_tensorflow.cli import service_commands

    return service_commands.status(
        work_directory(work_dir, os.environ), service, follow=follow, as_json=as_json
    )


@click.command()
@click.argument("service", required=False, shell_complete=service_names)
@work_dir_flag
@json_flag
def why(service: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Say why a job is not further, per task and per offer."""
    from dcos_tensorflow.cli import service_commands

    return service_commands.why(work_directory(work_dir, os.environ), service, as_json=as_json)


@click.command()
@click.argument("service", required=False, shell_complete=service_names)
@work_dir_flag
@json_flag
def cluster(service: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show the ClusterSpec of a running job."""
    from dcos_tensorflow.cli import service_commands

    return service_commands.cluster(work_directory(work_dir, os.environ), service, as_json=as_json)


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
@name_flag
@work_dir_flag
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, one object a line.")
def logs(
    tasks: tuple[str, ...],
    *,
    follow: bool,
    lines: int,
    file: str,
    name: str | None,
    work_dir: Path | None,
    as_json: bool,
) -> int:
    """Show what tasks print: the named ones, those of a role, or all of them interleaved."""
    from dcos_tensorflow.cli.logs_command import LogsRequest, logs

    work = work_directory(work_dir, os.environ)
    return logs(LogsRequest(work, name, tasks, file, lines, follow, as_json))


def _asked(work_dir: Path | None, name: str | None, as_json: bool) -> Any:
    from dcos_tensorflow.cli.steering import Asked

    return Asked(work_directory(work_dir, os.environ), name, as_json)


@click.command()
@click.argument("endpoint", metavar="[NAME]", required=False, shell_complete=endpoint_names)
@name_flag
@work_dir_flag
@json_flag
def endpoints(endpoint: str | None, name: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show the names of the endpoints, or where the tasks of one listen."""
    from dcos_tensorflow.cli import inspection

    return inspection.endpoints(_asked(work_dir, name, as_json), endpoint)


@click.command()
@click.argument("service", required=False, shell_complete=service_names)
@work_dir_flag
@json_flag
def options(service: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show the options in force, defaults included and secrets hidden, as JSON in any case."""
    from dcos_tensorflow.cli import inspection

    return inspection.options(_asked(work_dir, service, as_json))


@click.command()
@click.argument("service", required=False, shell_complete=service_names)
@work_dir_flag
@json_flag
def describe(service: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show the options in force sorted by name, as JSON in any case."""
    from dcos_tensorflow.cli import inspection

    return inspection.describe(_asked(work_dir, service, as_json))


@click.command()
@click.argument("service", required=False, shell_complete=service_names)
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@work_dir_flag
@json_flag
def tensorboard(service: str | None, in_browser: bool, work_dir: Path | None, as_json: bool) -> int:
    """Show where TensorBoard is."""
    from dcos_tensorflow.cli import inspection

    return inspection.tensorboard(_asked(work_dir, service, as_json), in_browser=in_browser)


@click.command()
@click.argument("service", shell_complete=service_names)
@click.option("--wait/--no-wait", default=True, help="Wait until the job has ended.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)
@work_dir_flag
@json_flag
def stop(service: str, wait: bool, timeout: float, work_dir: Path | None, as_json: bool) -> int:
    """End a job: its tasks are ended and its resources given back."""
    from dcos_tensorflow.cli import service_commands

    return service_commands.stop(
        work_directory(work_dir, os.environ), service, wait=wait, seconds=timeout, as_json=as_json
    )
