"""The commands ``package ...``: their arguments and flags."""

from __future__ import annotations

from pathlib import Path

import click

from dcos_tensorflow.cli.flags import OPTIONS_FILE, json_flag, overrides_flag


@click.group()
def package() -> None:
    """Look at the DC/OS package, and use it on a Marathon without DC/OS."""


@package.command()
@click.option(
    "--options",
    "options_file",
    type=OPTIONS_FILE,
    required=True,
    metavar="OPTIONS.json",
    help="The options of the service.",
)
@overrides_flag
@click.option(
    "--artifact-url",
    metavar="URL",
    help="Where the files of 'make package' are served from.",
)
@click.option(
    "--repository",
    type=OPTIONS_FILE,
    metavar="FILE",
    help="The repository document of 'make package', in place of --artifact-url.",
)
@click.option("--app-id", default="", metavar="ID", help="Id of the app; else the service's name.")
@click.option(
    "--master",
    default="",
    metavar="MASTER",
    help="Mesos masters in place of those of DC/OS: zk://HOST:PORT,.../mesos or HOST:PORT,...",
)
@click.option(
    "--state",
    default="",
    metavar="STATE",
    help="State store in place of the ZooKeeper of DC/OS: zk://HOST:PORT,...",
)
@json_flag
def render(
    options_file: Path,
    *,
    overrides: tuple[str, ...],
    artifact_url: str | None,
    repository: Path | None,
    app_id: str,
    master: str,
    state: str,
    as_json: bool,
) -> int:
    """Print the Marathon app that the package makes of these options, as JSON in any case."""
    from dcos_tensorflow.cli.package_command import RenderRequest, render

    return render(
        RenderRequest(options_file, overrides, artifact_url, repository, app_id, master, state)
    )
