"""``dashboard``: where the page of a service is, its token, and a browser on it."""

from __future__ import annotations

import click

from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.page import show_page


@click.command()
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@click.option("--token", "with_token", is_flag=True, help="Print the token for the page.")
@asks_about()
def dashboard(asked: Asked, in_browser: bool, with_token: bool) -> int:
    """Show the address of the dashboard."""
    client = asked.client()
    # An address without an answer, or one that lets this command in as little, is told here.
    client.get("/v1/plans")
    return show_page(
        f"{client.api.url}/",
        client.api.token,
        asks_for="the service's token",
        as_json=asked.as_json,
        with_token=with_token,
        in_browser=in_browser,
    )
