"""``open``: the page of a service, its TensorBoard, or the embedded cluster's page, in a browser.

A service of this machine is shown by the window (``window``), running or finished; one that an
address names by its own API.

``dashboard`` and ``tensorboard`` are its older names: they print the address and open nothing
unless they are told to.
"""

from __future__ import annotations

import click

from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import complain
from dcos_tensorflow.client.page import Page, shown


@click.command()
@click.option("--tensorboard", "is_board", is_flag=True, help="Open the service's TensorBoard.")
@click.option("--cluster", "is_cluster", is_flag=True, help="Open the embedded cluster's page.")
@click.option("--token", "with_token", is_flag=True, help="Print the API's token, open nothing.")
@click.option("--no-browser", is_flag=True, help="Print the address, open nothing.")
@asks_about()
def open(
    asked: Asked, *, is_board: bool, is_cluster: bool, with_token: bool, no_browser: bool
) -> int:
    """Open a dashboard or a TensorBoard in the browser.

    Without a flag it opens the dashboard of the service, or of all services of this machine,
    finished ones too. The link logs one browser in, once.
    """
    if is_board and is_cluster:
        raise UsageError("--tensorboard and --cluster exclude each other.")
    if is_board:
        page = _board(asked)
    elif is_cluster:
        page = _cluster(asked)
    elif with_token or asked.api is not None:
        page = _dashboard(asked)
    else:
        page = _window(asked)
    in_browser = not (no_browser or with_token or asked.as_json)
    return shown(page, as_json=asked.as_json, with_token=with_token, in_browser=in_browser)


@click.command(hidden=True)
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@click.option("--token", "with_token", is_flag=True, help="Print the token for the page.")
@asks_about()
def dashboard(asked: Asked, in_browser: bool, with_token: bool) -> int:
    """Show the address of the dashboard."""
    page = _dashboard(asked)
    return shown(page, as_json=asked.as_json, with_token=with_token, in_browser=in_browser)


@click.command(hidden=True)
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@asks_about()
def tensorboard(asked: Asked, in_browser: bool) -> int:
    """Show the address of TensorBoard."""
    return shown(_board(asked), as_json=asked.as_json, in_browser=in_browser)


def _dashboard(asked: Asked) -> Page:
    client = asked.client()
    # An address without an answer, or one that refuses the command's token, is told here.
    client.get("/v1/plans")
    return Page(f"{client.api.url}/", client.api.token, "the service's token")


def _window(asked: Asked) -> Page:
    from dcos_tensorflow.window import process

    names = registry.service_names(asked.work)
    service = ""
    if asked.name is not None or len(names) == 1:
        _, directory = registry.choose(asked.work, asked.name)
        service = directory.path.name
    return Page(process.link(asked.work, service))


def _cluster(asked: Asked) -> Page:
    from dcos_tensorflow.deploy.embedded import lasting

    return lasting.page(asked.work, asked.name or "")


def _board(asked: Asked) -> Page:
    client = asked.client()
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
