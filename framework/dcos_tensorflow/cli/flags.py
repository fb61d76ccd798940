"""Flags and arguments that many commands share, and what they are handed over as."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dcos_tensorflow.cli.names import service_names
from dcos_tensorflow.cli.services.asked import Asked
from dcos_tensorflow.cli.work_directory import WorkDirectory, work_directory

F = TypeVar("F", bound=Callable[..., Any])

#: An options file that is there.
OPTIONS_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def asks(function: F) -> F:
    """Add ``--name``, ``--work-dir`` and ``--json``; hand them over as ``asked``."""
    return name_flag(work_dir_flag(json_flag(with_asked(function))))


def asks_about(*, required: bool = False) -> Callable[[F], F]:
    """Add the argument SERVICE, ``--work-dir`` and ``--json``; hand them over as ``asked``."""

    def decorate(function: F) -> F:
        add = click.argument("service", required=required, shell_complete=service_names)
        return add(work_dir_flag(json_flag(with_asked(function, of="service"))))

    return decorate


def with_asked(function: F, of: str = "name") -> F:
    """Hand over which service is meant, where it is looked for, and how the answer is wanted."""

    @functools.wraps(function)
    def call(*, work: WorkDirectory, as_json: bool, **given: Any) -> Any:
        return function(Asked(work, given.pop(of), as_json), **given)

    return call  # type: ignore[return-value]


def work_dir_flag(function: F) -> F:
    """Add ``--work-dir``, handed over as ``work``."""
    return click.option(
        "--work-dir",
        "work",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        callback=lambda _context, _parameter, given: work_directory(given, os.environ),
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


def timeout_flags(what: str, seconds: float) -> Callable[[F], F]:
    """Add ``--wait`` and ``--timeout``, handed over as ``wait`` and ``seconds``."""

    def decorate(function: F) -> F:
        timeout = click.option(
            "--timeout",
            "seconds",
            type=click.FloatRange(min=0),
            default=seconds,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait.",
        )
        return click.option("--wait/--no-wait", default=True, help=what)(timeout(function))

    return decorate


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
        click.option("--agents", type=int, help="Agents of the embedded cluster.", default=1),
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
