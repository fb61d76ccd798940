"""``open``: the page of a service, its TensorBoard, or the embedded cluster's page, in a browser.

A service of this machine is shown by the window (``window``), running or finished; one that an
address names by its own API. ``dashboard serve`` serves a window in the foreground, for a host of
many.

``dashboard`` and ``tensorboard`` are its older names: they print the address and open nothing
unless they are told to.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dcos_tensorflow.cli.flags import GroupWithDefault, takes_service, work_dir_flag
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.api_address import IN_CLEAR_VARIABLE
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import Page, complain, show_page
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.settings import ZOOKEEPER_SETTINGS, collect_for_run, setting_flags
from dcos_tensorflow.zookeeper_address import is_open

if TYPE_CHECKING:
    from dcos_tensorflow.window.services import Services

_ADDRESS = "address"
#: The settings of ``dashboard serve``.
_SERVED_BY = (
    *("state", *ZOOKEEPER_SETTINGS, "api_host", "api_port", "api_token_file"),
    *("api_cert", "api_key", "s3_places"),
)


@click.command()
@click.option("--tensorboard", "is_board", is_flag=True, help="Open the service's TensorBoard.")
@click.option("--cluster", "is_cluster", is_flag=True, help="Open the embedded cluster's page.")
@click.option("--token", "with_token", is_flag=True, help="Print the API's token, open nothing.")
@click.option("--no-browser", is_flag=True, help="Print the address, open nothing.")
@takes_service()
def open(
    choice: ServiceChoice, *, is_board: bool, is_cluster: bool, with_token: bool, no_browser: bool
) -> int:
    """Open a dashboard or a TensorBoard in the browser.

    Without a flag it opens the dashboard of the service, or of all services of this machine,
    finished ones too. The link logs one browser in, once.
    """
    if is_board and is_cluster:
        raise UsageError("--tensorboard and --cluster exclude each other.")
    if is_board:
        page = _board(choice)
    elif is_cluster:
        page = _cluster(choice)
    elif with_token or choice.api is not None:
        page = _dashboard(choice)
    else:
        page = _window(choice)
    in_browser = not (no_browser or with_token or choice.as_json)
    return show_page(page, as_json=choice.as_json, with_token=with_token, in_browser=in_browser)


@click.group(cls=GroupWithDefault, default=_ADDRESS)
def dashboard() -> None:
    """Serve one page for all services; print the address of one service's.

    dashboard NAME means dashboard address NAME.
    """


@dashboard.command(name=_ADDRESS)
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@click.option("--token", "with_token", is_flag=True, help="Print the token for the page.")
@takes_service()
def dashboard_address(choice: ServiceChoice, in_browser: bool, with_token: bool) -> int:
    """Show the address of the dashboard."""
    page = _dashboard(choice)
    return show_page(page, as_json=choice.as_json, with_token=with_token, in_browser=in_browser)


@dashboard.command()
@setting_flags(_SERVED_BY)
@click.option(
    "--api-token-in-clear",
    "in_clear",
    is_flag=True,
    envvar=IN_CLEAR_VARIABLE,
    help="Send the token without TLS to schedulers on other machines.",
)
@work_dir_flag
def serve(in_clear: bool, work: WorkDirectory, **flags: str | None) -> int:
    """Serve one page of all services to every browser with the token, until a signal comes.

    With --state it shows the services with their state there, on all machines; else those of this
    machine. The token is that of the services' APIs: a browser says it once.
    """
    from dcos_tensorflow.window import host
    from dcos_tensorflow.window.process import PORT
    from untrusted_input.server_tls import ServerTls
    from untrusted_input.shield import keep_memory_private

    keep_memory_private()
    settings = collect_for_run(os.environ, flags).with_default("api_port", PORT)
    cert, token = settings["api_cert"], settings.secret("api_token")
    tls = ServerTls(Path(cert), Path(settings["api_key"])) if cert else None
    services: Services
    if settings["state"]:
        from dcos_tensorflow.scheduler.gate import Allowed, Gate
        from dcos_tensorflow.window.copied_runs import CopiedRuns
        from dcos_tensorflow.window.of_state import OfState

        if token and is_open(settings["state"]):
            complain(
                "ZooKeeper is used without a login: every client that reaches it can name another"
                " address, and would be sent the token; see --zookeeper-login-file."
            )
        places = frozenset(filter(None, settings["s3_places"].split(",")))
        runs = CopiedRuns(Gate(Allowed(s3=places)))
        services = OfState(settings["state"], token, runs, in_clear=in_clear)
    else:
        from dcos_tensorflow.window.of_this_machine import OfThisMachine

        services = OfThisMachine(work)
    host.serve(services, settings["api_host"], settings["api_port"], token, tls)
    return 0


@click.command(hidden=True)
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@takes_service()
def tensorboard(choice: ServiceChoice, in_browser: bool) -> int:
    """Show the address of TensorBoard."""
    return show_page(_board(choice), as_json=choice.as_json, in_browser=in_browser)


def _dashboard(choice: ServiceChoice) -> Page:
    client = choice.client()
    # An address without an answer, or one that refuses the command's token, is told here.
    client.get("/v1/plans")
    return Page(f"{client.api.url}/", client.api.token, "the service's token")


def _window(choice: ServiceChoice) -> Page:
    from dcos_tensorflow.window import process

    names = registry.service_names(choice.work)
    service = ""
    if choice.name is not None or len(names) == 1:
        _, directory = registry.choose(choice.work, choice.name)
        service = directory.path.name
    return Page(process.link(choice.work, service))


def _cluster(choice: ServiceChoice) -> Page:
    from dcos_tensorflow.deploy.embedded import lasting

    return lasting.page(choice.work, choice.name or "")


def _board(choice: ServiceChoice) -> Page:
    client = choice.client()
    answer = client.ask("GET", "/v1/endpoints/tensorboard")
    if answer.is_missing:
        raise CliError(f"{client.service} has no TensorBoard: set service.use_tensorboard.")
    addresses = answer.expected()["address"]
    if not addresses:
        waits = client.get("/v1/why")["tasks"].get("tensorboard-0", {}).get("why", "")
        raise CliError(f"TensorBoard does not run{': ' + waits if waits else ''}.")
    board = client.get("/v1/job")["tasks"].get("tensorboard-0", {})
    if port := board.get("asked_port"):
        complain(f"Its agent does not offer port {port}, or it is taken.")
    return Page(f"http://{addresses[0]}")
