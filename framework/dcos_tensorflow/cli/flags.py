"""Flags that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dcos_tensorflow.cli.completion import service_names

F = TypeVar("F", bound=Callable[..., Any])

#: An options file that is there.
OPTIONS_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def work_dir_flag(function: F) -> F:
    """Add ``--work-dir``."""
    return click.option(
        "--work-dir",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Folder of your services; DCOS_TENSORFLOW_HOME, else ~/.local/share/dcos-tensorflow.",
    )(function)


def json_flag(function: F) -> F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(function)


def name_flag(function: F) -> F:
    """Add ``--name``, the SDK's flag for the service that is meant."""
    return click.option(
        "--name",
        metavar="SERVICE",
        shell_complete=service_names,
        help="The service that is meant, where there is more than one.",
    )(function)


def overrides_flag(function: F) -> F:
    """Add ``--set``."""
    return click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="PATH=VALUE",
        help="Set one option, e.g. worker.count=4; wins over the file. May be repeated.",
    )(function)


def agent_flags(function: F) -> F:
    """Add the flags that say how large an embedded cluster is."""
    flags = (
        click.option("--agents", type=int, help="Agents of the embedded cluster.", default=None),
        click.option("--cpus", type=click.FloatRange(min=0, min_open=True), help="CPUs each."),
        click.option("--mem", type=click.FloatRange(min=1), help="Memory of each, in MB."),
        click.option("--disk", type=click.FloatRange(min=0), help="Disk of each, in MB."),
        click.option("--gpus", type=click.IntRange(min=0), help="GPUs of each."),
        click.option(
            "--attributes",
            default="",
            metavar="K:V;K:V",
            help="Attributes; several values, rack:r1,r2, go to the agents in turn.",
        ),
    )
    for add in reversed(flags):
        function = add(function)
    return function
