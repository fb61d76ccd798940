"""``dashboard``: where the page of a service is, its token, and a browser on it."""

from __future__ import annotations

import click

from dcos_tensorflow.cli.errors import CliError
from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.cli.output import complain, say, show_json
from dcos_tensorflow.cli.services.asked import Asked


@click.command()
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@click.option("--token", "with_token", is_flag=True, help="Print the token that the page asks for.")
@asks_about()
def dashboard(asked: Asked, in_browser: bool, with_token: bool) -> int:
    """Show where the dashboard is."""
    client = asked.client()
    # An address at which nobody answers, or that lets this command in as little, is told here.
    client.get("/v1/plans")
    url, token = f"{client.api.url}/", client.api.token
    if asked.as_json:
        show_json({"url": url, **({"token": token} if with_token else {})})
    elif with_token:
        if not token:
            raise CliError(f"The dashboard at {url} asks for no token.")
        say(token)
    else:
        say(url)
        if token:
            complain("The page asks for the service's token: --token prints it.")
    if in_browser:
        import webbrowser

        if not webbrowser.open(url):
            raise CliError(f"No browser could be opened; the address is {url}.")
    return 0
