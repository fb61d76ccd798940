"""``local``: keeps an embedded cluster running, and a local DC/OS in front of it if wanted."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.flags import OPTIONS_FILE, agent_flags, json_flag, work_dir_flag
from dcos_tensorflow.cli.names import service_names
from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import WorkDirectory


@click.group()
def local() -> None:
    """Run an embedded cluster on this machine."""


@local.command()
@agent_flags
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the master.")
@click.option("--dcos", is_flag=True, help="Also serve a local DC/OS for the dcos command line.")
@click.option("--dcos-port", type=click.IntRange(0, 65535), help="Port of the local DC/OS.")
@click.option(
    "--dcos-variant",
    type=click.Choice(["open", "enterprise", "old-open"]),
    help="enterprise allows updates to other package versions, old-open has no /cosmos/service.",
)
@click.option("--dcos-login", is_flag=True, help="Require DCOS_USERNAME and DCOS_PASSWORD.")
@click.option(
    "--dcos-core-cli", type=OPTIONS_FILE, metavar="ZIP", help="The plugin dcos-core-cli to serve."
)
@work_dir_flag
@json_flag
def up(
    *,
    port: int,
    dcos: bool,
    dcos_port: int | None,
    dcos_variant: str | None,
    dcos_login: bool,
    dcos_core_cli: Path | None,
    work: WorkDirectory,
    as_json: bool,
    **agents: Any,
) -> int:
    """Start the embedded cluster."""
    from dcos_tensorflow.deploy.embedded import lasting
    from dcos_tensorflow.deploy.embedded.machine import AgentWishes

    given = any((dcos_port is not None, dcos_variant, dcos_login, dcos_core_cli))
    if given and not dcos:
        raise UsageError("The flags --dcos-... describe the local DC/OS: add --dcos.")
    local_dcos = lasting.DcosWishes(
        dcos_port or 0, dcos_variant or "open", dcos_core_cli, dcos_login
    )
    return lasting.up(
        work,
        AgentWishes(**agents),
        port,
        as_json=as_json,
        dcos=local_dcos if dcos else None,
        environ=os.environ,
    )


@local.command(name="status", hidden=True)
@work_dir_flag
@json_flag
def local_status(work: WorkDirectory, as_json: bool) -> int:
    """Say whether the embedded cluster runs, and where."""
    from dcos_tensorflow.deploy.embedded import lasting

    return lasting.status(work, as_json=as_json)


@local.command(name="dashboard", hidden=True)
@click.argument("service", default="", shell_complete=service_names)
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@click.option("--token", "with_token", is_flag=True, help="Print the secret for the page.")
@work_dir_flag
@json_flag
def local_dashboard(
    *, service: str, in_browser: bool, with_token: bool, work: WorkDirectory, as_json: bool
) -> int:
    """Show the address of the page of local up's cluster, or of a service's own cluster."""
    from dcos_tensorflow.client.output import show_page
    from dcos_tensorflow.deploy.embedded import lasting

    page = lasting.page(work, service)
    return show_page(page, as_json=as_json, with_token=with_token, in_browser=in_browser)


@local.command()
@click.option("--yes", is_flag=True, help="Do not ask when services run.")
@work_dir_flag
@json_flag
def down(yes: bool, work: WorkDirectory, as_json: bool) -> int:
    """End the embedded cluster and every task on it.

    On a terminal it asks first when services run.
    """
    from dcos_tensorflow.deploy.embedded import lasting

    if not yes and sys.stdin.isatty():
        running = lasting.services_that_run(work)
        if running:
            names = ", ".join(sorted(running))
            click.confirm(f"{names} run on it and end with it. End the cluster?", abort=True)
    return lasting.down(work, as_json=as_json)
