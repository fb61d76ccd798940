"""``init``: writes a first options file for a script."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dcos_tensorflow.cli.flags import ScriptCommand, gpus_flag, json_flag, script_flags
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import say_lines, show_json

if TYPE_CHECKING:
    from dcos_tensorflow.deploy.job.script_job import ScriptFlags


@click.command(cls=ScriptCommand)
@click.argument("script", metavar="[SCRIPT.py]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    default=Path("options.json"),
    show_default=True,
    metavar="FILE",
    help="The file to write; - is the terminal.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@script_flags
@gpus_flag
@json_flag
def init(
    script: Path | None,
    *,
    output: Path,
    force: bool,
    said: ScriptFlags,
    gpus: int | None,
    as_json: bool,
) -> int:
    """Write a first options file for a script, with comments.

    Without SCRIPT.py, init takes train.py or main.py of this folder, or its only script.
    """
    from dcos_tensorflow.deploy.job.commented_options import first_options, said_of
    from dcos_tensorflow.deploy.job.script_job import check_is_script, only_script, read_script

    path = script or only_script(Path())
    check_is_script(path)
    read = read_script(path)
    in_terminal = output == Path("-")
    text = first_options(
        read, replace(said, gpus=gpus), Path("options.json") if in_terminal else output
    )
    if in_terminal:
        click.echo(text, nl=False)
        return 0
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"{output} exists already: --force overwrites it, -o names another file."
        ) from None
    except OSError as error:
        raise CliError(f"{output} cannot be written: {error.strerror}.") from error
    if as_json:
        show_json({"file": str(output), "script": str(path), "options": json.loads(text)})
        return 0
    say_lines(
        [
            f"Wrote {output} for {path}: {said_of(read)}.",
            f"  look at it  dcos-tensorflow validate {output}",
            f"  run it      dcos-tensorflow run {output}",
        ]
    )
    return 0
