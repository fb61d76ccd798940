"""The commands ``run``, ``scheduler`` and ``validate``: their arguments and flags."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.errors import UsageError
from dcos_tensorflow.cli.flags import (
    OPTIONS_FILE,
    F,
    agent_flags,
    json_flag,
    overrides_flag,
    work_dir_flag,
)
from dcos_tensorflow.cli.settings import SETTINGS, collect
from dcos_tensorflow.cli.work_directory import work_directory

#: Settings that ``run`` takes too; the rest are the daemon's.
_RUN_SETTINGS = (
    *("master", "state", "principal", "secret_file", "ca_file", "client_cert", "client_key"),
    *("verify", "api_host", "api_port", "api_token_file", "advertise", "secrets_dir"),
    "service_account_file",
)
_RUN_VARIABLES = frozenset(s.variable for s in SETTINGS if s.name in _RUN_SETTINGS or s.secret)


def _setting_flags(names: Sequence[str]) -> Callable[[F], F]:
    """Return a decorator that adds the flags of these settings."""

    def decorate(function: F) -> F:
        for setting in reversed([s for s in SETTINGS if s.name in names and not s.secret]):
            flag = setting.flag
            if isinstance(setting.default, bool):
                flag = f"{flag}/--no-{flag.removeprefix('--')}"
                add = click.option(flag, setting.name, default=None, help=_help(setting.meaning))
            else:
                metavar = setting.name.rpartition("_")[2].upper()
                add = click.option(
                    flag, setting.name, default=None, metavar=metavar, help=_help(setting.meaning)
                )
            function = add(function)
        return function

    return decorate


def _help(meaning: str) -> str:
    return f"{meaning[:1].upper()}{meaning[1:]}."


@click.command()
@click.argument("options_file", metavar="OPTIONS.json", type=OPTIONS_FILE)
@click.option("--local", is_flag=True, help="Run on the embedded cluster, the default.")
@click.option("--follow/--detach", default=True, help="Show progress to the end, or go on alone.")
@overrides_flag
@_setting_flags(_RUN_SETTINGS)
@agent_flags
@work_dir_flag
@click.option("--fresh", is_flag=True, help="Remove the checkpoints of earlier runs first.")
@click.option("--update", is_flag=True, help="Let a job that has not ended go over to OPTIONS.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: Ctrl-C stops, --fresh removes.")
@json_flag
def run(
    options_file: Path,
    *,
    local: bool,
    follow: bool,
    overrides: tuple[str, ...],
    agents: int | None,
    cpus: float | None,
    mem: float | None,
    disk: float | None,
    gpus: int | None,
    attributes: str,
    work_dir: Path | None,
    fresh: bool,
    update: bool,
    yes: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Deploy a job, follow it to its end, and exit as it did."""
    from dcos_tensorflow.cli.machine import AgentWishes
    from dcos_tensorflow.cli.run_command import RunRequest, run

    if local and settings["master"] is not None:
        raise UsageError("--local and --master exclude each other.")
    wishes = AgentWishes.of(agents, cpus, mem, disk, gpus, attributes)
    environ = {k: v for k, v in os.environ.items() if k in _RUN_VARIABLES}
    if local:
        environ.pop("DCOS_TENSORFLOW_MASTER", None)
    collected = collect(None, environ, settings)
    if collected["master"] and wishes.given:
        raise UsageError(
            "--agents, --cpus, --mem, --disk, --gpus and --attributes are for the embedded cluster;"
            f" this job goes to {collected.origin('master')}."
        )
    return run(
        RunRequest(
            options=options_file,
            overrides=overrides,
            settings=collected,
            wishes=wishes,
            work=work_directory(work_dir, os.environ),
            detach=not follow,
            fresh=fresh,
            update=update,
            yes=yes,
            json=as_json,
        )
    )


@click.command()
@click.argument("options_file", metavar="[OPTIONS.json]", type=OPTIONS_FILE, required=False)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="JSON file of settings; the environment wins over it, flags win over both.",
)
@overrides_flag
@_setting_flags([s.name for s in SETTINGS if s.name != "options"])
def scheduler(
    options_file: Path | None, config: Path | None, overrides: tuple[str, ...], **settings: Any
) -> int:
    """Serve a job as a daemon.

    Each flag can also be given as DCOS_TENSORFLOW_<NAME> in the environment, or as <name> in the
    --config file. Ending this process leaves all tasks running.
    """
    from dcos_tensorflow.cli.scheduler_command import serve

    return serve(options_file, overrides, collect(config, os.environ, settings))


@click.command()
@click.argument("options_file", metavar="OPTIONS.json", type=OPTIONS_FILE)
@overrides_flag
@json_flag
def validate(options_file: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Show what a job would run, or everything that is wrong with its options."""
    from dcos_tensorflow.cli.validate_command import validate

    return validate(options_file, overrides, as_json=as_json)
