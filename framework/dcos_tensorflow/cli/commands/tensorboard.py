"""``tensorboard``: where TensorBoard is, and a browser on it."""

from __future__ import annotations

import click

from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import complain, say, show_json


@click.command()
@click.option("--open", "in_browser", is_flag=True, help="Open it in a browser.")
@asks_about()
def tensorboard(asked: Asked, in_browser: bool) -> int:
    """Show the address of TensorBoard."""
    client = asked.client()
    answer = client.ask("GET", "/v1/endpoints/tensorboard")
    if answer.is_missing:
        raise CliError(f"{client.service} has no TensorBoard: set service.use_tensorboard.")
    addresses = answer.expected()["address"]
    if not addresses:
        waits = client.get("/v1/why")["tasks"].get("tensorboard-0", {}).get("why", "")
        raise CliError(f"TensorBoard does not run{': ' + waits if waits else ''}.")
    url = f"http://{addresses[0]}"
    board = client.get("/v1/job")["tasks"].get("tensorboard-0", {})
    port = board.get("asked_port")
    if asked.as_json:
        show_json({"url": url})
    else:
        say(url)
        if port:
            complain(f"Its agent does not offer port {port}, or it is taken.")
    if in_browser:
        import webbrowser

        if not webbrowser.open(url):
            raise CliError(f"No browser could be opened; the address is {url}.")
    return 0
