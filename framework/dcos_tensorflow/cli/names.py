"""What completion in a shell proposes where a command takes a name of this machine or of a service.

Used by ``flags`` and the commands. Nothing here asks a scheduler: a key press must not wait for
one.
"""

from __future__ import annotations

import os

import click

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.work_directory import WorkDirectory, work_directory

#: Roles that listen.
ENDPOINTS = ("ps", "chief", "worker", "gpu-worker", "tensorboard")
PLANS = ("deploy", "recovery", "update", "decommission")


def service_names(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the services of this machine whose names begin so."""
    try:
        names = registry.service_names(_work(context))
    except (OSError, CliError):
        # A completion shows no error message; the command itself tells it.
        return []
    return [name for name in names if name.startswith(incomplete)]


def task_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the tasks whose sandboxes lie in the service's folder, whose names begin so."""
    try:
        _, directory = registry.choose(_work(context), context.params.get("name"))
        tasks = sorted(path.name for path in directory.task_logs.iterdir())
    except (OSError, CliError):
        return []
    return [task for task in tasks if task.startswith(incomplete)]


def endpoint_names(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the endpoints that a service can have, whose names begin so."""
    return [name for name in ENDPOINTS if name.startswith(incomplete)]


def plan_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the plans that a service can have, whose names begin so."""
    return [name for name in PLANS if name.startswith(incomplete)]


def _work(context: click.Context) -> WorkDirectory:
    found = context.params.get("work")
    return found if isinstance(found, WorkDirectory) else work_directory(None, os.environ)
