"""Flags that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dcos_tensorflow.cli.completion import service_names

F = TypeVar("F", bound=Callable[..., Any])


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
