"""``validate``: what a job would run, or everything that is wrong, without starting anything."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dcos_tensorflow.cli.errors import EXIT_USAGE, UsageError
from dcos_tensorflow.cli.flags import OPTIONS_FILE, json_flag, overrides_flag, work_dir_flag
from dcos_tensorflow.cli.output import say_lines, show_json
from dcos_tensorflow.cli.settings import collect, setting_flags
from dcos_tensorflow.cli.work_directory import WorkDirectory

_MASTER_VARIABLE = "DCOS_TENSORFLOW_MASTER"


@click.command()
@click.argument("options_file", metavar="OPTIONS.json", type=OPTIONS_FILE)
@click.option("--local", is_flag=True, help="As run on the embedded cluster, the default.")
@overrides_flag
@setting_flags(("master",))
@work_dir_flag
@json_flag
def validate(
    options_file: Path,
    *,
    local: bool,
    overrides: tuple[str, ...],
    master: str | None,
    work: WorkDirectory,
    as_json: bool,
) -> int:
    """Show what a job would run, or everything that is wrong with its options."""
    from dcos_tensorflow.cli.serving import describing
    from dcos_tensorflow.cli.serving.preparation import PreparedJob, settled
    from dcos_tensorflow.core.cluster.cluster_spec import illegal_mix
    from dcos_tensorflow.options import load

    if local and master is not None:
        raise UsageError("--local and --master exclude each other.")
    environ = {k: v for k, v in os.environ.items() if k == _MASTER_VARIABLE and not local}
    settings = collect(None, environ, {"master": master})
    here = not settings["master"]
    options = load(options_file, overrides=overrides)

    def prepared() -> PreparedJob:
        directory = work.service(options.service.name)
        found, _ = settled(options, directory, os.environ, local=here)
        wrong = illegal_mix(found.spec)
        if wrong:
            raise UsageError(f"This cannot run: {wrong}.")
        return found

    try:
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
