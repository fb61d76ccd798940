"""``scheduler``: the daemon alone, as Marathon or systemd start it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.flags import OPTIONS_FILE, overrides_flag
from dcos_tensorflow.deploy.settings import SETTINGS, collect, setting_flags, with_cosmos_wish


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
