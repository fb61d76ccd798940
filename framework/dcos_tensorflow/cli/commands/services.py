"""The commands that look at one service, and ``stop``: their arguments and flags."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dcos_tensorflow.cli.completion import service_names
from dcos_tensorflow.cli.flags import json_flag, work_dir_flag
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
