"""Completion in the shell: the script that turns it on, and what stands for names of this machine.

``completion`` is added to the command line by ``main``; ``flags`` and the commands use the rest.
Nothing here asks a scheduler: a key press must not wait for one.
"""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from dcos_tensorflow.cli import registry
from dcos_tensorflow.cli.errors import CliError, UsageError
from dcos_tensorflow.cli.output import say
from dcos_tensorflow.cli.work_directory import work_directory

#: The shell's script sets it when it asks for completions (click: shell completion).
COMPLETION_VARIABLE = "_DCOS_TENSORFLOW_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
#: Roles that listen.
ENDPOINTS = ("ps", "chief", "worker", "gpu-worker", "tensorboard")
PLANS = ("deploy", "recovery", "update", "decommission")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script that completes commands, flags and names of services in a shell."""
    root = context.find_root()
    made = get_completion_class(shell)
    if made is None:
        raise UsageError(f"There is no completion for {shell}.")
    program = root.info_name or "dcos-tensorflow"
    say(made(root.command, {}, program, COMPLETION_VARIABLE).source())
    return 0


def service_names(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the services of this machine whose names begin so."""
    given = context.params.get("work_dir")
    work = work_directory(Path(given) if given else None, os.environ)
    try:
        return [name for name in registry.service_names(work) if name.startswith(incomplete)]
    except OSError:
        # Whoever completes gets no error message; the command itself tells it.
        return []


def task_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the tasks whose sandboxes lie in the service's folder, whose names begin so."""
    given, name = context.params.get("work_dir"), context.params.get("name")
    work = work_directory(Path(given) if given else None, os.environ)
    try:
        _, directory = registry.choose(work, name)
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
