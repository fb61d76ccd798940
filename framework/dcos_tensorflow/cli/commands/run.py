"""``run``: deploys a job, on the embedded cluster or on Mesos, and follows it to its end."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.errors import UsageError
from dcos_tensorflow.cli.flags import (
    ScriptCommand,
    agent_flags,
    json_flag,
    overrides_flag,
    script_arguments,
    script_flags,
    work_dir_flag,
)
from dcos_tensorflow.cli.settings import RUN_SETTINGS, collect_for_run, setting_flags
from dcos_tensorflow.cli.work_directory import WorkDirectory

_AGENTS = ("agents", "cpus", "mem", "disk", "gpus", "attributes")


@click.command(cls=ScriptCommand)
@click.argument("job", metavar="SCRIPT.py|OPTIONS.json", type=click.Path(path_type=Path))
@script_flags
@click.option("--local", is_flag=True, help="Run on the embedded cluster, the default.")
@click.option("--follow/--detach", default=True, help="Show progress to the end, or go on alone.")
@overrides_flag
@setting_flags(RUN_SETTINGS)
@agent_flags
@work_dir_flag
@click.option("--fresh", is_flag=True, help="Remove the checkpoints of earlier runs first.")
@click.option("--strict", is_flag=True, help="Refuse a job that is larger than this machine.")
@click.option(
    "--update", is_flag=True, help="Let a job that has not ended go over to these options."
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: Ctrl-C stops, --fresh removes.")
@json_flag
def run(
    job: Path,
    *,
    workers: int | None,
    ps: int | None,
    tensorflow: str | None,
    name: str | None,
    local: bool,
    follow: bool,
    overrides: tuple[str, ...],
    work: WorkDirectory,
    fresh: bool,
    strict: bool,
    update: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Deploy a job, follow it to its end, and exit as it did.

    SCRIPT.py is run as it is, by one worker unless --workers says how many; what stands behind --
    are its arguments. OPTIONS.json says everything else that there is to say.
    """
    from dcos_tensorflow.cli.embedded.machine import AgentWishes
    from dcos_tensorflow.cli.serving.run_request import RunRequest
    from dcos_tensorflow.cli.serving.script_job import ScriptFlags, given_options
    from dcos_tensorflow.cli.serving.starting import run

    said = ScriptFlags(workers, ps, None, tensorflow, name, script_arguments())
    if job.suffix == ".py":
        # Of a script's job they are the workers', not the embedded cluster's.
        said, given = replace(said, gpus=given["gpus"]), {**given, "gpus": None}
    settings = {name: value for name, value in given.items() if name not in _AGENTS}
    if local and settings["master"] is not None:
        raise UsageError("--local and --master exclude each other.")
    wishes = AgentWishes(**{name: given[name] for name in _AGENTS})
    collected = collect_for_run(os.environ, settings, local=local)
    if collected["master"] and wishes.given:
        raise UsageError(
            "--agents, --cpus, --mem, --disk, --gpus and --attributes are for the embedded cluster;"
            f" this job goes to {collected.origin('master')}."
        )
    return run(
        RunRequest(
            given=given_options(
                job,
                said,
                overrides,
                published_defaults=collected["published_defaults"],
            ),
            settings=collected,
            wishes=wishes,
            work=work,
            detach=not follow,
            fresh=fresh,
            update=update,
            strict=strict,
            yes=yes,
            json=as_json,
            typed=tuple(click.get_current_context().obj or ()),
        )
    )
