"""``run`` and ``resume`` deploy a job and follow it; ``scheduler`` serves one as a daemon."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dcos_tensorflow.cli.flags import (
    OPTIONS_FILE,
    GroupedCommand,
    ScriptCommand,
    agent_flags,
    json_flag,
    overrides_flag,
    script_flags,
    takes_service,
    work_dir_flag,
)
from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.settings import (
    RUN_SETTINGS,
    SETTINGS,
    Settings,
    collect,
    collect_for_run,
    setting_flags,
    with_cosmos_wish,
)

if TYPE_CHECKING:
    from dcos_tensorflow.deploy.job.given_options import GivenOptions
    from dcos_tensorflow.deploy.job.script_job import ScriptFlags

_AGENTS = ("agents", "cpus", "mem", "disk", "gpus", "attributes")

F = TypeVar("F", bound=Callable[..., Any])


def run_flags(settings: Collection[str] = RUN_SETTINGS) -> Callable[[F], F]:
    """Add what says where and how a job is run, whatever it is: ``deployed`` takes all of it.

    ``settings`` are those of its scheduler that have a flag.
    """
    flags: tuple[Callable[[F], F], ...] = (
        click.option("--local", is_flag=True, hidden=True, help="Run on the embedded cluster."),
        click.option(
            "--follow/--detach",
            default=True,
            help="Follow the job to its end, or run it in the background.",
        ),
        click.option(
            "--logs", is_flag=True, help="Show the output of the tasks beside the progress."
        ),
        overrides_flag,
        setting_flags(settings, shown=("master",)),
        functools.partial(agent_flags, shown=False),
        click.option("--fresh", is_flag=True, help="Remove the checkpoints of earlier runs first."),
        click.option(
            "--strict",
            is_flag=True,
            hidden=True,
            help="Refuse a job that is larger than this machine.",
        ),
        click.option(
            "--yes", "-y", is_flag=True, help="Ask nothing: Ctrl-C stops, --fresh removes."
        ),
    )

    def decorate(function: F) -> F:
        for add in reversed(flags):
            function = add(function)
        return function

    return decorate


_GROUPS = {
    "A script": ("workers", "ps", "gpus", "strategy", "tensorflow", "name"),
    "A search for its parameters": ("parameters", "trials", "metric"),
    "The job": ("overrides", "fresh", "resume", "update"),
    "Where it runs": ("master", "agents", "cpus", "mem", "work"),
    "While it runs": ("follow", "logs", "yes", "as_json"),
}
_EXAMPLES = """\b
Examples:
  dcos-tensorflow run train.py
  dcos-tensorflow run train.py --workers 2 --logs -- --epochs 10
  dcos-tensorflow run train.py --set worker.cpus=4 --set worker.mem=8000
  dcos-tensorflow run OPTIONS.json --master zk://10.0.0.1:2181/mesos --detach
"""


@click.command(cls=ScriptCommand, option_groups=_GROUPS, epilog=_EXAMPLES)
@click.argument("job", metavar="SCRIPT.py|OPTIONS.json", type=click.Path(path_type=Path))
@script_flags
@run_flags()
@work_dir_flag
@click.option("--resume", is_flag=True, help="Run only the missing units of a batch or a sweep.")
@click.option("--update", is_flag=True, help="Change a job that has not ended to these options.")
@json_flag
def run(
    job: Path,
    *,
    said: ScriptFlags,
    overrides: tuple[str, ...],
    work: WorkDirectory,
    resume: bool,
    update: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Run a job, follow it to its end, exit with its exit code.

    SCRIPT.py runs unchanged, on one worker or on --workers many; the arguments after -- are the
    script's. OPTIONS.json can set all other options. Flags for the connection to Mesos, ZooKeeper
    and S3 are those of the scheduler; DCOS_TENSORFLOW_* variables set them, too (docs/cli.md).
    """
    from dcos_tensorflow.deploy.job.script_job import given_options

    if job.suffix == ".py":
        # Of a script's job they are the workers', not the embedded cluster's.
        if resume and said.sweep is None:
            raise UsageError(
                "--resume is for a batch, which an options file asks for, and for a search"
                " (--sweep); a script goes on from its checkpoints by itself."
            )
        said, given = replace(said, gpus=given["gpus"]), {**given, "gpus": None}

    def read(settings: Settings) -> GivenOptions:
        defaults = settings["published_defaults"]
        return given_options(job, said, overrides, published_defaults=defaults)

    return deployed(read, work, given, as_json=as_json, resume=resume, update=update)


#: The settings of a run of a service that is named: --api-token-file is the token of its own API.
SERVICE_SETTINGS = tuple(name for name in RUN_SETTINGS if name != "api_token_file")


@click.command(
    cls=GroupedCommand, option_groups={title: _GROUPS[title] for title in (*_GROUPS,)[1:]}
)
@run_flags(SERVICE_SETTINGS)
@takes_service(required=True)
def resume(choice: ServiceChoice, overrides: tuple[str, ...], **flags: Any) -> int:
    """Run the job of a service once more, with the options that it had.

    The job goes on from its last checkpoint; a sweep or a batch runs its missing units. --set
    changes single options.
    """
    from dcos_tensorflow.deploy.job.kept_options import master_of, resumed_options, state_of_last

    service = choice.service()
    given, has_units = resumed_options(service, overrides)
    return deployed(
        lambda _: given,
        choice.work,
        {**flags, "state": flags["state"] or state_of_last(service.directory) or None},
        as_json=choice.as_json,
        resume=has_units,
        master=master_of(service, is_said=bool(flags["local"] or flags["master"])),
    )


def deployed(
    read: Callable[[Settings], GivenOptions],
    work: WorkDirectory,
    flags: Mapping[str, Any],
    *,
    as_json: bool,
    resume: bool = False,
    update: bool = False,
    master: str = "",
) -> int:
    """Run what ``read`` returns as ``flags`` say, those of ``run_flags``; return the exit code.

    ``master`` is where it goes when no flag says it. Raises CliError and OptionsError.
    """
    from dcos_tensorflow.deploy.embedded.machine import AgentWishes
    from dcos_tensorflow.deploy.job.deployment import RunRequest
    from dcos_tensorflow.deploy.run import run

    other = {*_AGENTS, "local", "follow", "fresh", "strict", "yes", "logs"}
    settings = {name: value for name, value in flags.items() if name not in other}
    if flags["local"] and settings["master"] is not None:
        raise UsageError("--local and --master exclude each other.")
    if flags["logs"] and not flags["follow"]:
        raise UsageError(
            "--logs is for a job that is followed; with --detach, dcos-tensorflow logs SERVICE"
            " --follow shows the output of its tasks."
        )
    wishes = AgentWishes(**{name: flags[name] for name in _AGENTS})
    collected = collect_for_run(os.environ, settings, local=flags["local"])
    if master and not flags["local"]:
        collected = collected.with_value("master", master, f"the cluster at {master}")
    if collected["master"] and wishes.given:
        raise UsageError(
            "--agents, --cpus, --mem, --disk, --gpus and --attributes are for the embedded cluster;"
            f" this job goes to {collected.origin('master')}."
        )
    typed: tuple[str, ...] = click.get_current_context().obj or ()
    return run(
        RunRequest(
            given=read(collected),
            settings=collected,
            wishes=wishes,
            work=work,
            detach=not flags["follow"],
            resume=resume,
            fresh=flags["fresh"],
            update=update,
            strict=flags["strict"],
            yes=flags["yes"],
            logs=flags["logs"],
            json=as_json,
            typed=typed,
        )
    )


@click.command()
@click.argument("options_file", metavar="[OPTIONS.json]", type=OPTIONS_FILE, required=False)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="JSON file of settings; the environment overrides it, flags override both.",
)
@click.option("--options-folder", type=click.Path(path_type=Path), hidden=True)
@overrides_flag
@setting_flags([s.name for s in SETTINGS if s.name != "options"])
def scheduler(
    *,
    options_file: Path | None,
    config: Path | None,
    options_folder: Path | None,
    overrides: tuple[str, ...],
    **settings: Any,
) -> int:
    """Serve a job as a daemon.

    Each flag can also stand as DCOS_TENSORFLOW_<NAME> in the environment, or as <name> in the
    --config file. The tasks run on when this process ends.
    """
    from dcos_tensorflow.deploy.daemon import serve
    from untrusted_input.shield import keep_memory_private

    keep_memory_private()
    flags = with_cosmos_wish(settings, os.environ)
    return serve(options_file, overrides, collect(config, os.environ, flags), options_folder)
