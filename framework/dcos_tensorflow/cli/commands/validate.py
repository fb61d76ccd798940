"""``validate``: the tasks that a job would run, or all its mistakes, without starting anything."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dcos_tensorflow.cli.flags import (
    ScriptCommand,
    gpus_flag,
    json_flag,
    overrides_flag,
    script_flags,
    work_dir_flag,
)
from dcos_tensorflow.client.errors import EXIT_USAGE, UsageError, explaining_refusals
from dcos_tensorflow.client.output import say_lines, show_json
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.settings import collect, setting_flags

if TYPE_CHECKING:
    from dcos_tensorflow.deploy.job.script_job import ScriptFlags

_MASTER_VARIABLE = "DCOS_TENSORFLOW_MASTER"
_VARIABLES = (_MASTER_VARIABLE, "DCOS_TENSORFLOW_PUBLISHED_DEFAULTS")


@click.command(cls=ScriptCommand)
@click.argument("job", metavar="SCRIPT.py|OPTIONS.json", type=click.Path(path_type=Path))
@script_flags
@gpus_flag
@click.option("--local", is_flag=True, help="For the embedded cluster, the default.")
@overrides_flag
@setting_flags(("master", "published_defaults"))
@work_dir_flag
@json_flag
def validate(
    job: Path,
    *,
    said: ScriptFlags,
    gpus: int | None,
    local: bool,
    overrides: tuple[str, ...],
    master: str | None,
    published_defaults: bool | None,
    work: WorkDirectory,
    as_json: bool,
) -> int:
    """Show the tasks that a job would run, or all mistakes."""
    from dcos_tensorflow.core.cluster.rendering import illegal_mix
    from dcos_tensorflow.deploy.job import describing
    from dcos_tensorflow.deploy.job.deployment import PreparedJob
    from dcos_tensorflow.deploy.job.preparation import preview
    from dcos_tensorflow.deploy.job.script_job import given_options
    from dcos_tensorflow.options.default_tasks import came_by_default

    if local and master is not None:
        raise UsageError("--local and --master exclude each other.")
    environ = {k: v for k, v in os.environ.items() if k in _VARIABLES}
    if local:
        environ.pop(_MASTER_VARIABLE, None)
    flags = {"master": master, "published_defaults": published_defaults}
    settings = collect(None, environ, flags)
    here = not settings["master"]
    published = settings["published_defaults"]
    given = given_options(job, replace(said, gpus=gpus), overrides, published_defaults=published)
    options = given.load()

    def prepared() -> PreparedJob:
        directory = work.service(options.service.name)
        found, _ = preview(options, directory, os.environ, local=here)
        wrong = illegal_mix(found.spec)
        if wrong:
            raise UsageError(f"This cannot run: {wrong}.")
        return replace(found, notes=(*given.notes, *found.notes))

    try:
        with explaining_refusals(came_by_default(options)):
            described = describing.document(prepared(), local=here)
    except UsageError as error:
        if not as_json:
            raise
        show_json({"valid": False, "problems": [{"path": "", "message": str(error)}]})
        return EXIT_USAGE
    if as_json:
        show_json({"valid": True, **described})
    else:
        say_lines(describing.lines(described))
    return 0
