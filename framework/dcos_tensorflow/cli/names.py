"""The proposals of a shell's completion for names of this machine or of a service.

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
ENDPOINTS = (
    *("ps", "chief", "worker", "gpu-worker", "tensorboard"),
    *("data-dispatcher", "data-worker"),
)
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
    """Return the tasks whose sandboxes lie in the service's folder, whose names begin so.

    In the place of the first of them services are proposed, too.
    """
    before = context.params.get("tasks") or ()
    work, named = _work(context), context.params.get("name")
    try:
        services = [] if before or named else registry.service_names(work)
        if before and registry.knows(work, before[0]):
            named = named or before[0]
    except (OSError, CliError):
        services = []
    try:
        _, directory = registry.choose(work, named)
        tasks = sorted(path.name for path in directory.task_logs.iterdir())
    except (OSError, CliError):
        tasks = []
    return [name for name in (*services, *tasks) if name.startswith(incomplete)]


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
